package verbgate.gate

decision := {"decision": "allow"} if input.params.a > 1

decision := {"decision": "deny", "reason": "odd"} if input.params.a % 2 == 1

decision := x if x := input.params.decision
