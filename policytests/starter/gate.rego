# The starter policy: the local user does everything in the namespace "local" and reads below it, in
# "local:notes" and the like. Everything else is refused, with a reason.
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
	"reason": "the call does not say who calls or where, and the starter policy refuses what it cannot place",
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
	"nobody can tell right now which namespace record %q is in; try again",
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

# An abbreviated id may fit several records. It is only looked up where the call may read, so nothing
# outside can be meant; the verb itself then says which records it could be.
record_ok if {
	input.resource.exists == null
	not regex.match(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`, input.resource.id)
	every namespace in input.token.read { touches(namespace) }
}

deny(code, reason) := {"decision": "deny", "code": code, "reason": reason}
