package verbgate.gate

decision := {"decision": "deny", "reason": sprintf("%v %d %s %30.10f", [input.params, input.params.a, input.params.s, input.params.b])} if input.params.a

decision := {"decision": "deny", "reason": concat(",", input.params.list)} if not input.params.a

odd if substring(input.params.s, input.params.a, -1) == lower(trim(input.params.s, input.params.r))
