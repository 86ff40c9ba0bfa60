# METADATA
# title: A small policy of the kind most people start from
package verbgate.gate

default decision := {"decision": "deny", "reason": "no rule allows this", "code": "no_rule"}

decision := {"decision": "allow"} if {
	local_user
	writes_local
	reads_local
	not forbidden
}

decision := {"decision": "deny", "reason": reason, "code": "forbidden", "obligations": [{"kind": "audit", "tag": "forbidden"}]} if {
	some reason in forbidden_reasons
}

local_user if input.token.actor.kind == "user"

writes_local if data.writers[input.token.namespace][_] == input.token.actor.id

reads_local if {
	every ns in input.token.read {
		within(ns, "local")
	}
}

within(ns, top) if ns == top

within(ns, top) if startswith(ns, concat("", [top, ":"]))

forbidden if count(forbidden_reasons) > 0

forbidden_reasons contains "limit is capped at 100" if {
	is_number(input.params.limit)
	input.params.limit > 100
}
