package verbgate.gate

default decision := {"decision": "deny", "reason": "no match"}

decision if regex.match(input.params.r, input.params.s)

decision if count(regex.find_n(input.params.r, input.params.s, 3)) > 1

decision if regex.replace(input.params.s, input.params.r, "$0$0") == "x"

decision if regex.is_valid(input.params.s)

decision if glob.match(input.params.r, [":"], input.params.s)
