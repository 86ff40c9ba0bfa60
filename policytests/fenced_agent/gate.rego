# An agent that stays in one namespace tree.
#
# Whoever lets the agent in says which tree is its own, in the claim "tree", as in "team-a:bots". The
# agent reads and writes there and below, and nowhere else: not by namespace, not by what it may read,
# and not by the id of a record. It destroys nothing, and it takes at most a page at a time.
#
# A record outside and a record that does not exist are refused alike, so that asking teaches nothing.
# link is not among the verbs, nor are the merges: they name two records, and a policy is shown one.
package verbgate.gate

default decision := {
	"decision": "deny",
	"code": "fence.incomplete",
	"reason": "this policy is for agents whose sign-in names their tree in the claim \"tree\"; ask whoever runs the agent to set it",
}

decision := {"decision": "allow"} if {
	input.token.actor.kind == "agent"
	input.verb in verbs
	inside(input.token.namespace)
	every namespace in input.token.read { inside(namespace) }
	record_inside
	count(too_many) == 0
} else := deny("fence.destructive", sprintf(
	"%s destroys or rewrites records, which agents may not; ask a person to do it",
	[input.verb],
)) if {
	input.verb in destructive
} else := deny("fence.verb", sprintf(
	"%s is not a verb for agents; they have %s",
	[input.verb, concat(", ", sort(verbs))],
)) if {
	not input.verb in verbs
} else := deny("fence.namespace", sprintf(
	"namespace %q is outside of %q; name your own namespace or one below it",
	[input.token.namespace, tree],
)) if {
	not inside(input.token.namespace)
} else := deny("fence.read", sprintf(
	"the call could read namespace %q, outside of %q; name the one namespace you mean",
	[outside[0], tree],
)) if {
	count(outside) > 0
} else := deny("fence.record_unknown", sprintf(
	"nobody can tell which record %q is; give the full id, or try again",
	[input.resource.id],
)) if {
	input.resource.exists == null
} else := deny("fence.record", sprintf(
	"there is no record %q in %q; look for it with search or list",
	[input.resource.id, tree],
)) if {
	not record_inside
} else := deny("fence.page", concat("; ", sort(too_many))) if {
	count(too_many) > 0
}

verbs := {
	"verbs",
	"get",
	"list",
	"search",
	"neighbors",
	"stats",
	"create",
	"update",
	"memory.recall",
	"memory.remember",
}

# Named only to be refused in their own words.
destructive := {
	"delete",
	"merge_entity",
	"merge_note",
	"memory.forget",
}

# The verbs that answer with a page, of a size the caller gives.
paged := {"list", "search", "neighbors", "memory.recall"}

page := 50

# Not "limit <= page" alone: null and true compare as smaller than any number.
limited if {
	is_number(input.params.limit)
	input.params.limit <= page
}

# The agent's own tree. A claim that is not one non-empty text is no tree.
tree := input.token.actor.claims.tree if {
	is_string(input.token.actor.claims.tree)
	input.token.actor.claims.tree != ""
}

inside(namespace) if namespace == tree

inside(namespace) if startswith(namespace, concat("", [tree, ":"]))

outside := [namespace |
	some namespace in input.token.read
	not inside(namespace)
]

record_inside if not input.resource

record_inside if {
	input.resource.exists == true
	inside(input.resource.namespace)
}

too_many contains sprintf("%s needs a limit of at most %d; write limit=%d", [input.verb, page, page]) if {
	input.verb in paged
	not limited
}

too_many contains sprintf("at most %d items may be created at once; split them into several calls", [page]) if {
	some "items", items in input.params
	not short(items)
}

short(items) if {
	is_array(items)
	count(items) <= page
}

deny(code, reason) := {"decision": "deny", "code": code, "reason": reason}
