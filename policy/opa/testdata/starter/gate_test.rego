package verbgate.gate_test

import data.verbgate.gate

test_local_user_may if {
	gate.decision.decision == "allow" with input as {"verb": "get", "token": {"namespace": "local", "read": ["local", "local:x"], "actor": {"kind": "user", "id": "ada"}}, "params": {}}
}

test_agent_may_not if {
	gate.decision.decision == "deny" with input.token.actor.kind as "agent"
}

test_reading_elsewhere if {
	gate.decision.decision == "deny" with input as {"verb": "get", "token": {"namespace": "local", "read": ["local", "locals"], "actor": {"kind": "user", "id": "ada"}}, "params": {}}
}
