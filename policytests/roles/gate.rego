# Roles from data, per namespace.
#
# data.rights says which verbs need which right, data.roles which rights a role has, and data.members
# who has which role where: a user ("user:ann") or everybody in a group ("group:support"). A role in a
# namespace holds below it too, so that an editor of "team-a" is one of "team-a:drafts".
#
# A call needs the verb's right in the namespace it acts in and in the namespace of the record it
# names, and the right to read in every other namespace it may read. A verb nobody gave a right to is
# refused. Destroying also needs a sign-in of high assurance, and is marked in the audit record.
#
# A policy is shown one record of a call. Verbs that name a second one are in data.unseen with the param:
# there only a shortened id will do, for it is looked up only where the caller may read, and a full id
# anywhere. A refusal does tell that a record exists; fenced_agent shows how to keep even that.
package verbgate.gate

default decision := {
	"decision": "deny",
	"code": "roles.incomplete",
	"reason": "the call does not say who calls or where, and roles belong to somebody somewhere; that is a fault of the server, so report it to whoever runs it",
}

decision := answer if {
	has(right, input.token.namespace)
	every namespace in input.token.read { has("read", namespace) }
	record_ok
	not unseen
	assured
} else := deny("roles.unknown_verb", sprintf(
	"no right covers the verb %s; ask for it to be added to the policy's data",
	[input.verb],
)) if {
	not right
} else := deny("roles.namespace", sprintf(
	"%s needs the right to %s in namespace %q, and you have %s there; name a namespace where you have it, or ask for a role in this one",
	[input.verb, right, input.token.namespace, shown(input.token.namespace)],
)) if {
	not has(right, input.token.namespace)
} else := deny("roles.read", sprintf(
	"the call could read namespace %q, and you have %s there; name the one namespace you mean",
	[closed[0], shown(closed[0])],
)) if {
	count(closed) > 0
} else := deny("roles.record_unknown", sprintf(
	"nobody can tell which record %q is; give the full id, or try again",
	[input.resource.id],
)) if {
	input.resource.exists == null
} else := deny("roles.record", sprintf(
	"record %q is in a namespace where you have no right to %s; ask for a role there, or look for another record with search or list",
	[input.resource.id, right],
)) if {
	not record_ok
} else := deny("roles.unseen", sprintf(
	"nobody can tell this policy where the full id in %s leads; give only its first 23 characters, which are looked for where you may read",
	[unseen],
)) if {
	unseen
} else := deny("roles.assurance", sprintf(
	"%s cannot be undone and needs a sign-in of high assurance; sign in again with a second factor",
	[input.verb],
)) if {
	not assured
}

answer := {"decision": "allow", "obligations": [{"kind": "audit", "tag": "destroy"}]} if right == "destroy"

answer := {"decision": "allow"} if right != "destroy"

# The right the verb needs. Two rights that name one verb contradict each other: no decision then.
right := need if {
	some need, verbs in data.rights
	input.verb in verbs
}

# Under which names the members' table knows the caller. No actor can pass for a group.
names contains sprintf("%s:%s", [input.token.actor.kind, input.token.actor.id]) if input.token.actor.kind != "group"

names contains sprintf("group:%s", [group]) if some group in input.token.actor.groups

# holds[namespace]: the caller's rights by roles given in that very namespace.
holds[namespace] contains one if {
	some namespace, members in data.members
	some name, roles in members
	name in names
	some role in roles
	some one in data.roles[role]
}

has(need, namespace) if {
	some given, rights in holds
	covers(given, namespace)
	need in rights
}

covers(parent, namespace) if parent == namespace

covers(parent, namespace) if startswith(namespace, concat("", [parent, ":"]))

# The readable namespaces that the caller has no right to read.
closed := [namespace |
	some namespace in input.token.read
	not has("read", namespace)
]

record_ok if not input.resource

record_ok if input.resource.exists == false

record_ok if {
	input.resource.exists == true
	has(right, input.resource.namespace)
}

# The param with a second record that could be anywhere. A full id has 32 hex digits, however it is spelled;
# what has fewer characters of any kind is none.
unseen := param if {
	param := data.unseen[input.verb]
	not shortened(param)
}

shortened(param) if {
	is_string(input.params[param])
	count(input.params[param]) < 32
}

assured if right != "destroy"

assured if input.token.actor.claims.assurance == "high"

# What the caller may do in a namespace, in words.
shown(namespace) := concat(" and ", sort(list)) if {
	list := {one | some one in ["read", "write", "destroy"]; has(one, namespace)}
	count(list) > 0
} else := "no role"

deny(code, reason) := {"decision": "deny", "code": code, "reason": reason}
