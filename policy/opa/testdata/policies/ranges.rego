package verbgate.gate

default decision := false

decision if count(numbers.range(1, input.params.a)) > 3

decision if count(net.cidr_expand(input.params.s)) > 3

decision if count(graph.reachable(input.params, {input.params.k})) > 2

decision if some x in numbers.range_step(input.params.a, input.params.b, 7)
