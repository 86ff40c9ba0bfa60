package verbgate.gate

decision := {"decision": "allow", "reason": input.params.s, "obligations": array.concat(input.params.list, [
	{"kind": "redact", "paths": [input.params.r]},
	{"kind": "custom", "name": "echo", "value": input.params},
	{"kind": "rate_limit", "window_secs": input.params.a, "max": input.params.b},
])}
