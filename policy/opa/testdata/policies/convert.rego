package verbgate.gate

default decision := false

decision if to_number(input.params.s) == 1

decision if format_int(input.params.a, 16) == "ff"

decision if units.parse_bytes(input.params.s) > 10

decision if units.parse(input.params.s) > 10

decision if semver.compare(input.params.s, "1.0.0") == 0
