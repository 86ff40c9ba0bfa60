package verbgate.gate

default decision := false

decision if {
	some path, value
	walk(input, [path, value])
	count(path) > 10
	is_string(value)
}

decision if count([v | walk(input.params, [_, v]); is_number(v); v > 1000]) > 3
