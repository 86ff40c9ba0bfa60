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
	"context": {"source": "cli", "transport": "embedded", "mode": "single", "index": 0, "count": 1, "via": []},
}

in_namespace(namespace) := {"token": {"namespace": namespace, "explicit": true, "read": [namespace]}}

record(exists, namespace) := {"resource": {
	"param": "id",
	"id": "0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10",
	"exists": exists,
	"namespace": namespace,
	"kind": "entity",
}}

unknown_record(id) := {"resource": {"param": "id", "id": id, "exists": null, "namespace": null, "kind": null}}

full_id := "0B4C1E6E-7c8f-4c53-9d8e-2f5f5a3b9a10"

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
	"update a record of local": [{"verb": "update"}, record(true, "local")],
	"get a record below local": [{"verb": "get"}, record(true, "local:notes")],
	"get a record that is not there": [{"verb": "get"}, record(false, null)],
	"delete a record that is not there": [{"verb": "delete"}, record(false, null)],
	"get by an abbreviated id that may fit several": [{"verb": "get"}, unknown_record("0b4c1e6e")],
	"delete by an abbreviated id, looked up in local only": [{"verb": "delete"}, unknown_record("0b4c1e6e")],
	"get by an abbreviated id with a child visible": [{"verb": "get"}, unknown_record("0b4c1e6e"), {"token": {"read": ["local", "local:notes"]}}],
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
	"update a record of another namespace": {"changes": [{"verb": "update"}, record(true, "team-a")], "code": "starter.record", "reason": "where update is not allowed"},
	"get a record of another namespace": {"changes": [{"verb": "get"}, record(true, "team-a")], "code": "starter.record", "reason": "where get is not allowed"},
	"delete a record below local": {"changes": [{"verb": "delete"}, record(true, "local:notes")], "code": "starter.record", "reason": "work with records of \"local\""},
	"a record of another namespace, found by an abbreviated id": {"changes": [{"verb": "get", "resource": {"param": "id", "id": "0b4c1e6e", "exists": true, "namespace": "team-a", "kind": "entity"}}], "code": "starter.record", "reason": "get"},
	"a record nobody can place": {"changes": [{"verb": "get"}, unknown_record(full_id)], "code": "starter.record_unknown", "reason": "try again"},
	"delete by an abbreviated id with a child visible": {"changes": [{"verb": "delete"}, unknown_record("0b4c1e6e"), {"token": {"read": ["local", "local:notes"]}}], "code": "starter.record_unknown", "reason": "try again"},
	"an agent": {"changes": [{"token": {"actor": {"kind": "agent", "id": "a1"}}}], "code": "starter.actor", "reason": "agent:a1"},
	"anonymous over HTTP": {"changes": [{"token": {"actor": {"kind": "anonymous", "id": "http"}}}], "code": "starter.actor", "reason": "anonymous:http"},
	"anonymous that claims to be a user": {"changes": [{"token": {"actor": {"kind": "anonymous", "id": "http", "claims": {"kind": "user"}}}}], "code": "starter.actor", "reason": "anonymous:http"},
	"a nested call elsewhere": {"changes": [in_namespace("team-a"), {"context": {"via": ["memory.remember"]}}], "code": "starter.namespace", "reason": "team-a"},
	"a record without a namespace": {"changes": [{"verb": "get"}, record(true, "")], "code": "starter.record", "reason": "get"},
}

test_refuses[note] if {
	some note, want in refused
	result := gate.decision with input as decide(want.changes)
	result.decision == "deny"
	result.code == want.code
	contains(result.reason, want.reason)
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

# A call that lacks what the rules ask for is refused, whatever is missing.
missing := {
	"everything": {},
	"token": object.remove(call, ["token"]),
	"actor": json.remove(call, ["token/actor"]),
	"actor kind": json.remove(call, ["token/actor/kind"]),
	"namespace": json.remove(call, ["token/namespace"]),
	"readable namespaces": json.remove(call, ["token/read"]),
}

test_refuses_without[note] if {
	some note, document in missing
	result := gate.decision with input as document
	result.decision == "deny"
	result.reason != ""
}
