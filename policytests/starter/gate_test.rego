package verbgate.gate_test

import data.verbgate.gate

# A call as the command line makes it. Cases say what differs.
call := {
	"verb": "create",
	"pack": "kg",
	"category": "declaration",
	"token": {
		"namespace": "local",
		"explicit": false,
		"read": ["local"],
		"actor": {"kind": "user", "id": "ann", "groups": [], "claims": {}},
	},
	"params": {},
	"context": {
		"source": "cli",
		"transport": "embedded",
		"session_id": "4f6c2e0a-58d7-4a0b-9a53-7f1d8f6f2b11",
		"request_id": "8d0f1b57-0a57-4c2e-8c0e-54f3c1b7d9aa",
		"decision_id": "c2a7c9b4-3b7e-4df1-9f10-1f0a6c7d2e33",
		"time": "2026-03-01T12:00:00.000000000Z",
		"mode": "single",
		"index": 0,
		"count": 1,
		"plan": false,
		"save_to": null,
		"via": [],
	},
}

in_namespace(namespace) := {"token": {"namespace": namespace, "explicit": true, "read": [namespace]}}

full_id := "0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10"

record(namespace) := {"resource": {
	"param": "id",
	"id": full_id,
	"exists": true,
	"namespace": namespace,
	"kind": "entity",
}}

# What the document says of a record that is not there, and of one that nobody can place.
absent := nowhere(full_id, false)

unplaced(id) := nowhere(id, null)

nowhere(id, exists) := {"resource": {
	"param": "id",
	"id": id,
	"exists": exists,
	"namespace": "",
	"kind": "",
}}

decide(changes) := object.union_n(array.concat([call], changes))

allowed := {
	"create in local": [],
	"any verb in local": [{"verb": "merge_entity"}],
	"a verb no pack owns, so that the catalogue can answer": [{"verb": "nosuch", "pack": "", "category": ""}],
	"local named": [in_namespace("local")],
	"read with a child visible": [{"token": {"read": ["local", "local:notes"]}}],
	"get below local": [{"verb": "get"}, in_namespace("local:notes")],
	"search deep below local": [{"verb": "search"}, in_namespace("local:notes:2026")],
	"recall below local": [{"verb": "memory.recall", "pack": "memory"}, in_namespace("local:notes")],
	"update a record of local": [{"verb": "update"}, record("local")],
	"get a record below local": [{"verb": "get"}, record("local:notes")],
	"get a record that is not there": [{"verb": "get"}, absent],
	"delete a record that is not there": [{"verb": "delete"}, absent],
	"get by an abbreviated id that may fit several": [{"verb": "get"}, unplaced("0b4c1e6e")],
	"delete by an abbreviated id, looked up in local only": [{"verb": "delete"}, unplaced("0b4c1e6e")],
	"get by an abbreviated id with a child visible": [{"verb": "get"}, unplaced("0b4c1e6e"), {"token": {"read": ["local", "local:notes"]}}],
	"get by most of an id": [{"verb": "get"}, unplaced("0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3")],
	"get by all but a digit of an id": [{"verb": "get"}, unplaced("0b4c1e6e7c8f4c539d8e2f5f5a3b9a1")],
	"a memory by an abbreviated id": [{"verb": "memory.forget", "pack": "memory"}, unplaced("0B4C1E6E")],
	"link to whatever the target is": [{"verb": "link", "params": {"source_id": full_id, "target_id": full_id, "relation": "cites"}}, record("local")],
	"link from an abbreviated id that may fit several": [{"verb": "link", "params": {"source_id": "0b4c1e6e", "target_id": full_id, "relation": "cites"}}, unplaced("0b4c1e6e")],
	"a nested call in local": [{"context": {"via": ["memory.remember"]}}],
}

test_allows[note] if {
	some note, changes in allowed
	result := gate.decision with input as decide(changes)
	result == {"decision": "allow"}
}

# Each with the code of the refusal and a part of its reason.
refused := {
	"another namespace": {"changes": [in_namespace("team-a")], "code": "starter.namespace", "reason": "namespace \"team-a\" is not \"local\" or below it; leave namespace out"},
	"reading another namespace": {"changes": [{"verb": "get"}, in_namespace("team-a")], "code": "starter.namespace", "reason": "team-a"},
	"a name that begins like local": {"changes": [{"verb": "get"}, in_namespace("localhost")], "code": "starter.namespace", "reason": "localhost"},
	"local in another case": {"changes": [{"verb": "get"}, in_namespace("LOCAL")], "code": "starter.namespace", "reason": "LOCAL"},
	"a parent that ends in local": {"changes": [{"verb": "get"}, in_namespace("team:local")], "code": "starter.namespace", "reason": "team:local"},
	"create below local": {"changes": [in_namespace("local:notes")], "code": "starter.read_only", "reason": "namespace \"local:notes\" can only be read, and create is not a verb that reads"},
	"delete below local": {"changes": [{"verb": "delete"}, in_namespace("local:notes")], "code": "starter.read_only", "reason": "delete"},
	"a verb no pack owns, below local": {"changes": [{"verb": "nosuch", "pack": ""}, in_namespace("local:notes")], "code": "starter.read_only", "reason": "nosuch"},
	"the second of the readable ones is a stranger": {"changes": [{"token": {"read": ["local", "team-a"]}}], "code": "starter.read", "reason": "namespace \"team-a\""},
	"the last of the readable ones is a stranger": {"changes": [{"verb": "list", "token": {"read": ["local", "local:notes", "team-a"]}}], "code": "starter.read", "reason": "take it off visible"},
	"update a record of another namespace": {"changes": [{"verb": "update"}, record("team-a")], "code": "starter.record", "reason": "where update is not allowed"},
	"get a record of another namespace": {"changes": [{"verb": "get"}, record("team-a")], "code": "starter.record", "reason": "where get is not allowed"},
	"delete a record below local": {"changes": [{"verb": "delete"}, record("local:notes")], "code": "starter.record", "reason": "work with records of \"local\""},
	"a record of another namespace, found by an abbreviated id": {"changes": [{"verb": "get", "resource": {"param": "id", "id": "0b4c1e6e", "exists": true, "namespace": "team-a", "kind": "entity"}}], "code": "starter.record", "reason": "get"},
	"a record nobody can place": {"changes": [{"verb": "get"}, unplaced(full_id)], "code": "starter.record_unknown", "reason": "try again"},
	"link from a record of another namespace": {"changes": [{"verb": "link"}, record("team-a")], "code": "starter.record", "reason": "where link is not allowed"},
	"an abbreviated id of a pack whose ids nobody here knows": {"changes": [{"verb": "x.get", "pack": "x"}, unplaced("0b4c1e6e")], "code": "starter.record_unknown", "reason": "give its full id"},
	"an abbreviated id of no pack": {"changes": [{"verb": "get", "pack": ""}, unplaced("0b4c1e6e")], "code": "starter.record_unknown", "reason": "give its full id"},
	"delete by an abbreviated id with a child visible": {"changes": [{"verb": "delete"}, unplaced("0b4c1e6e"), {"token": {"read": ["local", "local:notes"]}}], "code": "starter.record_unknown", "reason": "try again"},
	"an agent": {"changes": [{"token": {"actor": {"kind": "agent", "id": "a1"}}}], "code": "starter.actor", "reason": "agent:a1"},
	"anonymous over HTTP": {"changes": [{"token": {"actor": {"kind": "anonymous", "id": "http"}}}], "code": "starter.actor", "reason": "anonymous:http"},
	"anonymous that claims to be a user": {"changes": [{"token": {"actor": {"kind": "anonymous", "id": "http", "claims": {"kind": "user"}}}}], "code": "starter.actor", "reason": "anonymous:http"},
	"a nested call elsewhere": {"changes": [in_namespace("team-a"), {"context": {"via": ["memory.remember"]}}], "code": "starter.namespace", "reason": "team-a"},
	"a record without a namespace": {"changes": [{"verb": "get"}, record("")], "code": "starter.record", "reason": "get"},
}

test_refuses[note] if {
	some note, want in refused
	result := gate.decision with input as decide(want.changes)
	result.decision == "deny"
	result.code == want.code
	contains(result.reason, want.reason)
}

# What could be a full id is refused when nobody can place it: a full id is found in any namespace, and a
# pack may take more spellings for one than are usual.
could_be_full := {
	"as usual": full_id,
	"upper case": upper(full_id),
	"no dashes": "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10",
	"no dashes, upper case": "0B4C1E6E7C8F4C539D8E2F5F5A3B9A10",
	"dashes left out": "0b4c1e6e-7c8f4c53-9d8e2f5f5a3b9a10",
	"dashes elsewhere": "0b4c-1e6e-7c8f-4c53-9d8e-2f5f-5a3b-9a10",
	"a dash at the end": "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10-",
	"a dash at the start": "-0b4c1e6e7c8f4c539d8e2f5f5a3b9a10",
	"only dashes beside": "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10----",
	"too long": "0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a100",
	"far too long": concat("", [full_id, full_id]),
	"in braces": "{0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10}",
	"with a prefix": "urn:uuid:0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10",
	"white space around": " 0b4c1e6e7c8f4c539d8e2f5f5a3b9a10 ",
	"a line end": "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10\n",
	"full-width digits": "０b4c1e6e7c8f4c539d8e2f5f5a3b9a10",
	"as many characters, no hex digits": "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
}

test_refuses_what_could_be_a_full_id[note] if {
	some note, id in could_be_full
	every verb in ["get", "delete", "update"] {
		result := gate.decision with input as decide([{"verb": verb}, unplaced(id)])
		result.decision == "deny"
		result.code == "starter.record_unknown"
		contains(result.reason, "give its full id, or try again")
	}
}

# What reads, reads below local; what does not, does not.
below := {
	"verbs": "allow",
	"get": "allow",
	"list": "allow",
	"search": "allow",
	"neighbors": "allow",
	"stats": "allow",
	"memory.recall": "allow",
	"memory.recall_score": "allow",
	"create": "deny",
	"update": "deny",
	"delete": "deny",
	"link": "deny",
	"merge_entity": "deny",
	"merge_note": "deny",
	"memory.remember": "deny",
	"memory.forget": "deny",
}

test_below[verb] if {
	some verb, want in below
	result := gate.decision with input as decide([{"verb": verb}, in_namespace("local:notes")])
	result.decision == want
}

# The gate makes no such document. Should it ever, what lacks something is refused.
missing := {
	"everything": {},
	"token": object.remove(call, ["token"]),
	"actor": json.remove(call, ["token/actor"]),
	"actor kind": json.remove(call, ["token/actor/kind"]),
	"namespace": json.remove(call, ["token/namespace"]),
	"readable namespaces": json.remove(call, ["token/read"]),
}

test_impossible_without[note] if {
	some note, document in missing
	result := gate.decision with input as document
	result.decision == "deny"
	result.reason != ""
}
