package verbgate.gate_test

import data.verbgate.gate

agent := {"kind": "agent", "id": "a1", "groups": [], "claims": {"tree": "team-a:bots"}}

call := {
	"verb": "get",
	"pack": "kg",
	"category": "assertive",
	"token": {
		"namespace": "team-a:bots",
		"explicit": false,
		"read": ["team-a:bots"],
		"actor": agent,
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

verb(name) := {"verb": name}

limit(value) := {"params": {"limit": value}}

claims(value) := {"token": {"actor": {"claims": value}}}

decide(changes) := object.union_n(array.concat([call], changes))

allowed := {
	"get a record of the tree": [record("team-a:bots")],
	"get a record below": [record("team-a:bots:scout")],
	"update a record of the tree": [verb("update"), record("team-a:bots")],
	"create": [verb("create")],
	"create below": [verb("create"), in_namespace("team-a:bots:scout")],
	"create a page of items": [verb("create"), {"params": {"items": numbers.range(1, 50)}}],
	"search with a limit": [verb("search"), limit(10)],
	"search with the largest limit": [verb("search"), limit(50)],
	"recall with a limit": [verb("memory.recall"), limit(5)],
	"remember": [verb("memory.remember")],
	"remember needs no limit": [verb("memory.remember"), {"params": {"content": "x"}}],
	"the catalogue": [verb("verbs")],
	"the numbers": [verb("stats")],
	"the tree and what is below are readable": [verb("list"), limit(50), {"token": {"read": ["team-a:bots", "team-a:bots:scout"]}}],
	"a nested call": [verb("create"), {"context": {"via": ["memory.remember"]}}],
}

test_allows[note] if {
	some note, changes in allowed
	result := gate.decision with input as decide(changes)
	result == {"decision": "allow"}
}

# what differs, code, a part of the reason
refused := {
	"the parent of the tree": [[in_namespace("team-a")], "fence.namespace", "namespace \"team-a\" is outside of \"team-a:bots\""],
	"a sister of the tree": [[in_namespace("team-a:people")], "fence.namespace", "team-a:people"],
	"a name that begins like the tree": [[in_namespace("team-a:bots2")], "fence.namespace", "team-a:bots2"],
	"the tree in another case": [[in_namespace("team-a:Bots")], "fence.namespace", "team-a:Bots"],
	"another team": [[in_namespace("team-b")], "fence.namespace", "name your own namespace"],
	"the parent is readable": [[verb("list"), limit(5), {"token": {"read": ["team-a:bots", "team-a"]}}], "fence.read", "namespace \"team-a\""],
	"a stranger is readable": [[verb("list"), limit(5), {"token": {"read": ["team-a:bots", "team-a:bots:scout", "team-b"]}}], "fence.read", "team-b"],
	"get a record of another namespace": [[record("team-b")], "fence.record", "there is no record"],
	"update a record of the parent": [[verb("update"), record("team-a")], "fence.record", "there is no record"],
	"get a record that does not exist": [[absent], "fence.record", "there is no record"],
	"get a record nobody can place": [[unplaced(full_id)], "fence.record_unknown", "give the full id"],
	"update a record nobody can place": [[verb("update"), unplaced(full_id)], "fence.record_unknown", "try again"],
	"delete in the tree": [[verb("delete"), record("team-a:bots")], "fence.destructive", "delete destroys"],
	"delete outside": [[verb("delete"), record("team-b")], "fence.destructive", "ask a person"],
	"merge entities": [[verb("merge_entity"), record("team-a:bots")], "fence.destructive", "merge_entity"],
	"merge notes": [[verb("merge_note"), record("team-a:bots")], "fence.destructive", "merge_note"],
	"forget": [[verb("memory.forget"), record("team-a:bots")], "fence.destructive", "memory.forget"],
	"link, whose target is not shown": [[verb("link"), record("team-a:bots")], "fence.verb", "link is not a verb for agents"],
	"a verb no pack owns": [[verb("nosuch"), {"pack": "", "category": ""}], "fence.verb", "they have create, get"],
	"a verb in another case": [[verb("Get")], "fence.verb", "Get"],
	"one more than the largest limit": [[verb("search"), limit(51)], "fence.page", "write limit=50"],
	"a fraction more": [[verb("search"), limit(50.5)], "fence.page", "write limit=50"],
	"a large limit below": [[verb("list"), in_namespace("team-a:bots:scout"), limit(1000)], "fence.page", "write limit=50"],
	"no limit": [[verb("memory.recall")], "fence.page", "write limit=50"],
	"a limit that is null": [[verb("neighbors"), limit(null), record("team-a:bots")], "fence.page", "needs a limit of at most 50"],
	"a limit that is true": [[verb("neighbors"), limit(true), record("team-a:bots")], "fence.page", "neighbors needs a limit"],
	"a limit that is a text": [[verb("neighbors"), limit("5")], "fence.page", "needs a limit of at most 50"],
	"more items than a page": [[verb("create"), {"params": {"items": numbers.range(1, 51)}}], "fence.page", "at most 50 items"],
	"items that are no list": [[verb("create"), {"params": {"items": 7}}], "fence.page", "at most 50 items"],
	"items that are null": [[verb("create"), {"params": {"items": null}}], "fence.page", "at most 50 items"],
	"items that are a text": [[verb("create"), {"params": {"items": "[]"}}], "fence.page", "at most 50 items"],
	"a shortened id that may fit several": [[unplaced("0b4c1e6e")], "fence.record_unknown", "give the full id"],
	"an id without dashes that nobody can place": [[unplaced("0b4c1e6e7c8f4c539d8e2f5f5a3b9a10")], "fence.record_unknown", "try again"],
	"a nested call elsewhere": [[verb("create"), in_namespace("team-b"), {"context": {"via": ["memory.remember"]}}], "fence.namespace", "team-b"],
	"a nested destructive call": [[verb("delete"), {"context": {"via": ["update"]}}], "fence.destructive", "delete"],
}

test_refuses[note] if {
	some note, [changes, code, reason] in refused
	result := gate.decision with input as decide(changes)
	result.decision == "deny"
	result.code == code
	contains(result.reason, reason)
}

# Outside and absent must not be told apart.
test_outside_reads_like_absent if {
	outside := gate.decision with input as decide([record("team-b")])
	gone := gate.decision with input as decide([absent])
	outside == gone
}

# The gate makes no such document. Should it ever, what lacks something is refused.
missing := {
	"everything": {},
	"the verb": object.remove(call, ["verb"]),
	"the token": object.remove(call, ["token"]),
	"the actor": json.remove(call, ["token/actor"]),
	"the claims": json.remove(call, ["token/actor/claims"]),
	"the namespace": json.remove(call, ["token/namespace"]),
	"the readable namespaces": json.remove(call, ["token/read"]),
}

test_impossible_without[note] if {
	some note, document in missing
	result := gate.decision with input as document
	result.decision == "deny"
	result.reason != ""
}

# A tree that is no name fences in nothing: no namespace is below it.
odd_trees := {
	"empty": "",
	"null": null,
	"a number": 7,
	"a list": ["team-a:bots"],
	"true": true,
}

test_refuses_odd_trees[note] if {
	some note, value in odd_trees
	result := gate.decision with input as decide([claims({"tree": value})])
	result.decision == "deny"
	result.code == "fence.incomplete"
}

test_refuses_without_a_tree if {
	result := gate.decision with input as json.remove(call, ["token/actor/claims/tree"])
	result.decision == "deny"
	result.code == "fence.incomplete"
}

# A person is not an agent, whatever the claims say.
test_refuses_a_person if {
	result := gate.decision with input as decide([{"token": {"actor": {"kind": "user"}}}])
	result.decision == "deny"
	result.code == "fence.incomplete"
}
