package verbgate.gate

# Reaches into params by index and by variable key.
default decision := false

decision if input.params.list[0] == 1

decision if input.params.list[input.params.i] == "x"

decision if data.rules[input.params.k][input.params.list[_]]

decision if input.params[input.params.k].a.b[_] == data.limits[input.verb]
