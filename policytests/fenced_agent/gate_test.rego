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
	"context": {"source": "mcp", "transport": "http", "mode": "single", "index": 0, "count": 1, "via": []},
}

in_namespace(namespace) := {"token": {"namespace": namespace, "explicit": true, "read": [namespace]}}

record(exists, namespace) := {"resource": {
	"param": "id",
	"id": "0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10",
	"exists": exists,
	"namespace": namespace,
	"kind": "entity",
}}

verb(name) := {"verb": name}

limit(value) := {"params": {"limit": value}}

claims(value) := {"token": {"actor": {"claims": value}}}

decide(changes) := object.union_n(array.concat([call], changes))

allowed := {
	"get a record of the tree": [record(true, "team-a:bots")],
	"get a record below": [record(true, "team-a:bots:scout")],
	"update a record of the tree": [verb("update"), record(true, "team-a:bots")],
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
	"get a record of another namespace": [[record(true, "team-b")], "fence.record", "there is no record"],
	"update a record of the parent": [[verb("update"), record(true, "team-a")], "fence.record", "there is no record"],
	"get a record that does not exist": [[record(false, null)], "fence.record", "there is no record"],
	"get a record nobody can place": [[record(null, null)], "fence.record_unknown", "give the full id"],
	"update a record nobody can place": [[verb("update"), record(null, null)], "fence.record_unknown", "try again"],
	"delete in the tree": [[verb("delete"), record(true, "team-a:bots")], "fence.destructive", "delete destroys"],
	"delete outside": [[verb("delete"), record(true, "team-b")], "fence.destructive", "ask a person"],
	"merge entities": [[verb("merge_entity"), record(true, "team-a:bots")], "fence.destructive", "merge_entity"],
	"merge notes": [[verb("merge_note"), record(true, "team-a:bots")], "fence.destructive", "merge_note"],
	"forget": [[verb("memory.forget"), record(true, "team-a:bots")], "fence.destructive", "memory.forget"],
	"link, whose target is not shown": [[verb("link"), record(true, "team-a:bots")], "fence.verb", "link is not a verb for agents"],
	"a verb no pack owns": [[verb("nosuch"), {"pack": "", "category": ""}], "fence.verb", "they have create, get"],
	"a verb in another case": [[verb("Get")], "fence.verb", "Get"],
	"one more than the largest limit": [[verb("search"), limit(51)], "fence.page", "write limit=50"],
	"a fraction more": [[verb("search"), limit(50.5)], "fence.page", "write limit=50"],
	"a large limit below": [[verb("list"), in_namespace("team-a:bots:scout"), limit(1000)], "fence.page", "write limit=50"],
	"no limit": [[verb("memory.recall")], "fence.page", "write limit=50"],
	"a limit that is null": [[verb("neighbors"), limit(null), record(true, "team-a:bots")], "fence.page", "needs a limit of at most 50"],
	"a limit that is true": [[verb("neighbors"), limit(true), record(true, "team-a:bots")], "fence.page", "neighbors needs a limit"],
	"a limit that is a text": [[verb("neighbors"), limit("5")], "fence.page", "needs a limit of at most 50"],
	"more items than a page": [[verb("create"), {"params": {"items": numbers.range(1, 51)}}], "fence.page", "at most 50 items"],
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
	outside := gate.decision with input as decide([record(true, "team-b")])
	absent := gate.decision with input as decide([record(false, null)])
	outside == absent
}

missing := {
	"everything": {},
	"the verb": object.remove(call, ["verb"]),
	"the token": object.remove(call, ["token"]),
	"the actor": json.remove(call, ["token/actor"]),
	"the claims": json.remove(call, ["token/actor/claims"]),
	"the tree among the claims": json.remove(call, ["token/actor/claims/tree"]),
	"the namespace": json.remove(call, ["token/namespace"]),
	"the readable namespaces": json.remove(call, ["token/read"]),
}

test_refuses_without[note] if {
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

# A person is not an agent, whatever the claims say.
test_refuses_a_person if {
	result := gate.decision with input as decide([{"token": {"actor": {"kind": "user"}}}])
	result.decision == "deny"
	result.code == "fence.incomplete"
}
