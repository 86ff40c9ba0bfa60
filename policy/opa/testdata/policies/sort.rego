package verbgate.gate

default decision := false

decision if sort(input.params.list) == input.params.list

decision if max(input.params.list) > min(input.params.list)

decision if sort(object.keys(input.params))[0] == "a"

decision if {x | x := input.params[_]} & {1, "x", null} != set()
