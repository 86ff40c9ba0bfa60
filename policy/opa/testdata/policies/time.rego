package verbgate.gate

default decision := false

decision if time.parse_rfc3339_ns(input.params.s) < time.now_ns()

decision if time.add_date(input.params.a, input.params.b, 1, 1) > 0

decision if time.diff(input.params.a, input.params.b)[0] > 5

decision if time.parse_duration_ns(input.params.s) > 0

decision if time.clock([input.params.a, input.params.s])[0] > 12
