package policytests_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// The policies judge in the gate that runs them, on the document it builds, as their own tests say.
func TestGate(t *testing.T) {
	in := func(kind, id, verb, namespace string) *policy.Input {
		return &policy.Input{
			Verb: verb, Pack: "kg", Category: "assertive",
			Token:   policy.Token{Namespace: namespace, Read: []string{namespace}, Actor: policy.Actor{Kind: kind, ID: id}},
			Params:  map[string]any{},
			Context: policy.Context{Source: "mcp", Transport: "stdio", Time: time.Unix(0, 0).UTC(), Mode: "single", Count: 1},
		}
	}
	agent := func(verb, limit string) *policy.Input {
		i := in("agent", "a1", verb, "team-a:bots")
		i.Token.Actor.Claims = map[string]any{"tree": "team-a:bots"}
		i.Params["limit"] = json.Number(limit)
		return i
	}
	placed := func(i *policy.Input, exists policy.Existence, namespace string) *policy.Input {
		i.Resource = &policy.Resource{Param: "id", ID: "0b4c1e6e-7c8f-4c53-9d8e-2f5f5a3b9a10", Exists: exists, Namespace: namespace, Kind: "note"}
		return i
	}
	cases := []struct {
		name, dir string
		in        *policy.Input
		verdict   policy.Verdict
		code      string
	}{
		{"OKStarter", "starter", in("user", "ann", "create", "local"), policy.Allow, ""},
		{"OKStarterAbsent", "starter", placed(in("user", "ann", "get", "local"), policy.Absent, ""), policy.Allow, ""},
		{"ErrStarterNamespace", "starter", in("user", "ann", "create", "team-a"), policy.Deny, "starter.namespace"},
		{"ErrStarterRecord", "starter", placed(in("user", "ann", "get", "local"), policy.Present, "team-a"), policy.Deny, "starter.record"},
		{"ErrStarterRecordUnknown", "starter", placed(in("user", "ann", "get", "local"), policy.Unknown, ""), policy.Deny, "starter.record_unknown"},
		{"OKRoles", "roles", in("user", "bob", "create", "team-a"), policy.Allow, ""},
		{"ErrRoles", "roles", in("user", "bob", "create", "team-b"), policy.Deny, "roles.namespace"},
		{"ErrRolesNoClaims", "roles", in("user", "ann", "delete", "team-a"), policy.Deny, "roles.assurance"},
		{"OKAgent", "fenced_agent", agent("search", "50"), policy.Allow, ""},
		{"ErrAgentLimit", "fenced_agent", agent("search", "51"), policy.Deny, "fence.page"},
		{"ErrAgentRecordUnknown", "fenced_agent", placed(agent("get", "1"), policy.Unknown, ""), policy.Deny, "fence.record_unknown"},
		{"ErrAgentNoClaims", "fenced_agent", in("agent", "a1", "get", "team-a:bots"), policy.Deny, "fence.incomplete"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gate, err := opa.New(opa.Config{Path: c.dir, PollInterval: -1, Timeout: time.Minute})
			require.NoError(t, err)
			require.NoError(t, gate.Open(context.Background()))
			defer func() { require.NoError(t, gate.Close()) }()
			decision := gate.Decide(context.Background(), c.in)
			require.Equal(t, c.verdict, decision.Verdict, "%s: %v", decision.Reason, decision.Cause)
			require.Equal(t, c.code, decision.Code)
			require.False(t, decision.PolicyError)
			require.Equal(t, c.verdict == policy.Deny, decision.Reason != "")
		})
	}
}
