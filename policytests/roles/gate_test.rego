package verbgate.gate_test

import data.verbgate.gate

call(who, verb, namespace) := {
	"verb": verb,
	"pack": "kg",
	"category": "assertive",
	"token": {
		"namespace": namespace,
		"explicit": true,
		"read": [namespace],
		"actor": actors[who],
	},
	"params": {},
	"context": {
		"source": "mcp",
		"transport": "http",
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

actors := {
	"ann": {"kind": "user", "id": "ann", "groups": [], "claims": {"assurance": "high"}},
	"ann, signed in with less": {"kind": "user", "id": "ann", "groups": [], "claims": {"assurance": "low"}},
	"ann, nobody knows how": {"kind": "user", "id": "ann", "groups": [], "claims": {}},
	"ann, with an odd claim": {"kind": "user", "id": "ann", "groups": [], "claims": {"assurance": ["high"]}},
	"bob": {"kind": "user", "id": "bob", "groups": [], "claims": {"assurance": "high"}},
	"support": {"kind": "user", "id": "sue", "groups": ["support", "staff"], "claims": {}},
	"stranger": {"kind": "user", "id": "eve", "groups": ["staff"], "claims": {"assurance": "high"}},
	"a group that is called like a user": {"kind": "user", "id": "eve", "groups": ["user:ann"], "claims": {"assurance": "high"}},
	"an agent with a user's id": {"kind": "agent", "id": "ann", "groups": [], "claims": {"assurance": "high"}},
	"an actor whose kind is group": {"kind": "group", "id": "support", "groups": [], "claims": {}},
}

readable(namespaces) := {"token": {"read": namespaces}}

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

linking(target) := object.union(record("team-a"), {"params": {"source_id": full_id, "target_id": target, "relation": "cites"}})

merging(from) := object.union(record("team-a"), {"params": {"into_id": full_id, "from_id": from}})

via := {"context": {"via": ["memory.remember", "create"]}}

# who, verb, namespace, what differs
allowed := {
	"a reader reads": ["support", "get", "team-a", {}],
	"an editor writes": ["bob", "create", "team-a", {}],
	"an editor reads": ["bob", "search", "team-a", {}],
	"a reader elsewhere reads there": ["bob", "list", "team-b", {}],
	"a role holds below": ["bob", "create", "team-a:notes:2026", {}],
	"a child gives more than its parent": ["support", "create", "team-a:drafts", {}],
	"a pack's verb": ["support", "memory.recall", "team-a", {}],
	"every readable namespace is covered": ["bob", "search", "team-a", readable(["team-a", "team-a:drafts", "team-b"])],
	"update a record of the same namespace": ["bob", "update", "team-a", record("team-a")],
	"update a record of another namespace where the role is right": ["bob", "update", "team-a", record("team-a:drafts")],
	"get a record where one may only read": ["bob", "get", "team-a", record("team-b")],
	"get a record that is not there": ["support", "get", "team-a", absent],
	"a nested call": ["bob", "create", "team-a", via],
	"link to what is looked up where one may read": ["bob", "link", "team-a", linking("0b4c1e6e-7c8f-4c53-9d8e")],
	"link by all but a digit of an id": ["bob", "link", "team-a", linking("0b4c1e6e7c8f4c539d8e2f5f5a3b9a1")],
}

test_allows[note] if {
	some note, [who, verb, namespace, changes] in allowed
	result := gate.decision with input as object.union(call(who, verb, namespace), changes)
	result == {"decision": "allow"}
}

destroying := {
	"delete": ["ann", "delete", "team-a", record("team-a")],
	"delete what is not there": ["ann", "delete", "team-a", absent],
	"merge": ["ann", "merge_entity", "team-a", merging("0b4c1e6e-7c8f-4c53-9d8e")],
	"merge notes": ["ann", "merge_note", "team-a", merging("0b4c1e6e")],
	"forget, below": ["ann", "memory.forget", "team-a:notes", record("team-a:notes")],
}

test_allows_and_marks_destroying[note] if {
	some note, [who, verb, namespace, changes] in destroying
	result := gate.decision with input as object.union(call(who, verb, namespace), changes)
	result == {"decision": "allow", "obligations": [{"kind": "audit", "tag": "destroy"}]}
}

# who, verb, namespace, what differs, code, a part of the reason
refused := {
	"a reader does not write": ["support", "create", "team-a", {}, "roles.namespace", "create needs the right to write in namespace \"team-a\", and you have read there"],
	"an editor does not destroy": ["bob", "delete", "team-a", {}, "roles.namespace", "you have read and write there; name a namespace where you have it"],
	"a reader elsewhere does not write there": ["bob", "create", "team-b", {}, "roles.namespace", "you have read there"],
	"no role at all": ["stranger", "get", "team-a", {}, "roles.namespace", "you have no role there"],
	"a namespace nobody has a role in": ["ann", "get", "team-c", {}, "roles.namespace", "team-c"],
	"a role does not hold above": ["support", "create", "team-a", {}, "roles.namespace", "needs the right to write"],
	"a name that begins like the namespace": ["bob", "get", "team-ab", {}, "roles.namespace", "team-ab"],
	"the namespace in another case": ["bob", "get", "Team-A", {}, "roles.namespace", "Team-A"],
	"one readable namespace is closed": ["support", "search", "team-a", readable(["team-a", "team-b"]), "roles.read", "namespace \"team-b\", and you have no role there"],
	"the last readable namespace is closed": ["bob", "search", "team-a", readable(["team-a", "team-b", "team-c"]), "roles.read", "name the one namespace you mean"],
	"update a record of a namespace where one may only read": ["bob", "update", "team-a", record("team-b"), "roles.record", "no right to write"],
	"get a record of a closed namespace": ["support", "get", "team-a", record("team-b"), "roles.record", "no right to read"],
	"delete a record of a namespace where one is not steward": ["ann", "delete", "team-a", record("team-b"), "roles.record", "no right to destroy"],
	"a record nobody can place": ["ann", "get", "team-a", unplaced(full_id), "roles.record_unknown", "give the full id"],
	"a shortened id that may fit several": ["ann", "get", "team-a", unplaced("0b4c1e6e"), "roles.record_unknown", "give the full id"],
	"an id without dashes that nobody can place": ["ann", "get", "team-a", unplaced("0b4c1e6e7c8f4c539d8e2f5f5a3b9a10"), "roles.record_unknown", "try again"],
	"link to a full id": ["bob", "link", "team-a", linking(full_id), "roles.unseen", "the full id in target_id leads; give only its first 23 characters"],
	"link to a full id in upper case": ["bob", "link", "team-a", linking(upper(full_id)), "roles.unseen", "target_id"],
	"link to a full id without dashes": ["bob", "link", "team-a", linking("0b4c1e6e7c8f4c539d8e2f5f5a3b9a10"), "roles.unseen", "target_id"],
	"link to a full id with odd dashes": ["bob", "link", "team-a", linking("0b4c-1e6e-7c8f-4c53-9d8e-2f5f-5a3b-9a10"), "roles.unseen", "target_id"],
	"link to nothing": ["bob", "link", "team-a", record("team-a"), "roles.unseen", "target_id"],
	"link to a list": ["bob", "link", "team-a", linking(["0b4c1e6e"]), "roles.unseen", "target_id"],
	"link from a record of a closed namespace": ["bob", "link", "team-a", object.union(linking("0b4c1e6e"), record("team-b")), "roles.record", "no right to write"],
	"merge with a full id": ["ann", "merge_entity", "team-a", merging(full_id), "roles.unseen", "the full id in from_id leads"],
	"merge notes with a full id": ["ann", "merge_note", "team-a", merging(full_id), "roles.unseen", "from_id"],
	"a verb without a right": ["ann", "reindex", "team-a", {}, "roles.unknown_verb", "no right covers the verb reindex"],
	"a verb no pack owns": ["ann", "nosuch", "team-a", {"pack": "", "category": ""}, "roles.unknown_verb", "nosuch"],
	"a verb in another case": ["ann", "GET", "team-a", {}, "roles.unknown_verb", "GET"],
	"destroying after a weak sign-in": ["ann, signed in with less", "delete", "team-a", record("team-a"), "roles.assurance", "second factor"],
	"destroying with the claim missing": ["ann, nobody knows how", "delete", "team-a", record("team-a"), "roles.assurance", "high assurance"],
	"destroying with an odd claim": ["ann, with an odd claim", "delete", "team-a", record("team-a"), "roles.assurance", "high assurance"],
	"a nested call has no more rights": ["support", "create", "team-a", via, "roles.namespace", "needs the right to write"],
	"a group that is called like a user": ["a group that is called like a user", "get", "team-a", {}, "roles.namespace", "no role"],
	"an agent with a user's id": ["an agent with a user's id", "get", "team-a", {}, "roles.namespace", "no role"],
	"an actor whose kind is group": ["an actor whose kind is group", "get", "team-a", {}, "roles.namespace", "no role"],
}

test_refuses[note] if {
	some note, [who, verb, namespace, changes, code, reason] in refused
	result := gate.decision with input as object.union(call(who, verb, namespace), changes)
	result.decision == "deny"
	result.code == code
	contains(result.reason, reason)
}

# The gate makes no such document. Should it ever, what lacks something is refused.
missing := {
	"everything": {},
	"the verb": object.remove(call("ann", "get", "team-a"), ["verb"]),
	"the token": object.remove(call("ann", "get", "team-a"), ["token"]),
	"the actor": json.remove(call("ann", "get", "team-a"), ["token/actor"]),
	"the actor's id": json.remove(call("ann", "get", "team-a"), ["token/actor/id"]),
	"the namespace": json.remove(call("ann", "get", "team-a"), ["token/namespace"]),
	"the readable namespaces": json.remove(call("ann", "get", "team-a"), ["token/read"]),
}

test_impossible_without[note] if {
	some note, document in missing
	result := gate.decision with input as document
	result.decision == "deny"
	result.reason != ""
}

# Without its data the policy knows nobody, and no verb.
test_refuses_without_members if {
	result := gate.decision with input as call("ann", "get", "team-a") with data.members as {}
	result.code == "roles.namespace"
}

test_refuses_without_rights if {
	result := gate.decision with input as call("ann", "get", "team-a") with data.rights as {}
	result.code == "roles.unknown_verb"
}
