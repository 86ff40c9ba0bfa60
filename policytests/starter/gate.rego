# The starter policy: the local user does everything in the namespace "local" and reads below it, in
# "local:notes" and the like. Calls in other namespaces and calls about records of other namespaces are
# refused, with a reason.
#
# What it does not fence, because a policy is shown one record of a call: the second id of link and of the
# merges. link takes the full id of any record as its target, and the edge it makes stays in "local" and
# shows that id and no more; a merge refuses by itself a record of another namespace. Whoever knows a full
# id therefore learns whether a record has it, here as from a refusal that is not "not found". If that is
# too much, ask for a shortened id as roles does, or leave such verbs out as fenced_agent does.
#
# Change it as you need it. What a policy is shown is in `input`:
#
#   input.verb, input.pack, input.category   the call; pack is "" for a verb that does not exist
#   input.token.namespace                    where the call acts
#   input.token.read                         every namespace it may read
#   input.token.actor                        who calls: kind, id, groups, claims
#   input.params                             the params, defaults filled in
#   input.resource                           the record the call names: exists, namespace, kind
#   input.context                            source, transport, time, mode, via, ...
#
# `decision` is the answer: {"decision": "allow"}, or {"decision": "deny", "reason", "code"}.
package verbgate.gate

# What no rule below has an answer for is refused.
default decision := {
	"decision": "deny",
	"code": "starter.incomplete",
	"reason": "the call does not say who calls or where, and the starter policy refuses what it cannot place; that is a fault of the server, so report it to whoever runs it",
}

decision := {"decision": "allow"} if {
	is_user
	touches(input.token.namespace)
	every namespace in input.token.read { below_home(namespace) }
	record_ok
} else := deny("starter.actor", sprintf(
	"the starter policy knows users only, and the caller is %s:%s; write a rule for such callers in your own policy",
	[input.token.actor.kind, input.token.actor.id],
)) if {
	not is_user
} else := deny("starter.namespace", sprintf(
	"namespace %q is not %q or below it; leave namespace out, or allow it in your own policy",
	[input.token.namespace, home],
)) if {
	not below_home(input.token.namespace)
} else := deny("starter.read_only", sprintf(
	"namespace %q can only be read, and %s is not a verb that reads; leave namespace out to work in %q",
	[input.token.namespace, input.verb, home],
)) if {
	not touches(input.token.namespace)
} else := deny("starter.read", sprintf(
	"the call could read namespace %q, which is not %q or below it; take it off visible in the configuration, or allow it in your own policy",
	[strangers[0], home],
)) if {
	count(strangers) > 0
} else := deny("starter.record_unknown", sprintf(
	"nobody can tell right now which record %q is and in which namespace; give its full id, or try again",
	[input.resource.id],
)) if {
	input.resource.exists == null
} else := deny("starter.record", sprintf(
	"record %q is in a namespace where %s is not allowed; work with records of %q, or allow it in your own policy",
	[input.resource.id, input.verb, home],
)) if {
	input.resource.exists
}

home := "local"

# The verbs that change nothing. A verb that is not on this list is taken for one that writes.
reading := {
	"verbs",
	"get",
	"list",
	"search",
	"neighbors",
	"stats",
	"memory.recall",
	"memory.recall_score",
}

is_user if input.token.actor.kind == "user"

below_home(namespace) if namespace == home

below_home(namespace) if startswith(namespace, concat("", [home, ":"]))

# touches(namespace): this call may act on what is in namespace.
touches(namespace) if namespace == home

touches(namespace) if {
	input.verb in reading
	below_home(namespace)
}

# The namespaces the call could read and should not.
strangers := [namespace |
	some namespace in input.token.read
	not below_home(namespace)
]

# A full id finds its record wherever it is, so the record's own namespace counts too.
record_ok if not input.resource

record_ok if input.resource.exists == false

record_ok if {
	input.resource.exists == true
	touches(input.resource.namespace)
}

# Nobody can tell where the record is: the id fits several, or the pack did not answer. A full id is found
# in any namespace, so nothing is allowed that could be one, however it is spelled. A shorter one is looked
# up only where the call may read; let the verb say which records it could be.
record_ok if {
	input.resource.exists == null
	input.pack in {"kg", "memory"} # whose ids these rules know
	shortened(input.resource.id)
	every namespace in input.token.read { touches(namespace) }
}

# A full id has 32 hex digits. What has fewer characters of any kind is none.
shortened(id) if count(id) < 32

deny(code, reason) := {"decision": "deny", "code": code, "reason": reason}
