package verbgate.gate

default decision := false

decision if (input.params.a * input.params.b) / input.params.a == input.params.b

decision if input.params.a % input.params.b == 0

decision if abs(round(input.params.a) - ceil(input.params.b)) < 10

decision if product(input.params.list) + sum(input.params.list) == 0

decision if bits.or(input.params.a, bits.rsh(input.params.b, 3)) == 7
