package verbgate.gate

# The params are the decision.
decision := input.params
