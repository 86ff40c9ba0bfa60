package verbgate.gate

default decision := false

decision if object.get(input, ["params", input.params.k, 0], null) == 1

decision if object.union(input.params, {"a": 1}) == object.remove(input.params, ["b"])

decision if json.filter(input.params, [input.params.s]) == {}

decision if json.patch(input.params, input.params.patch).a == 1

decision if object.subset(input.params, input.params.sub)
