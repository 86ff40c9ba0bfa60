package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
)

// The zero value of everything refuses or knows nothing.
func TestZeroValues(t *testing.T) {
	require.Equal(t, policy.Deny, policy.Decision{}.Verdict)
	require.Equal(t, policy.Unknown, policy.Resource{}.Exists)
}

// Every verdict has its own spelling in the audit record, and a value outside the set is a deny.
func TestVerdictString(t *testing.T) {
	require.Equal(t, "deny", policy.Deny.String())
	require.Equal(t, "allow", policy.Allow.String())
	require.Equal(t, "gate_unavailable", policy.Unavailable.String())
	require.Equal(t, "refused", policy.Stopped.String())
	require.Equal(t, "deny", policy.Verdict(99).String())
}

func TestActorString(t *testing.T) {
	require.Equal(t, "user:ada", policy.Actor{Kind: "user", ID: "ada"}.String())
}

// readOnly is a gate written by hand: it lets everybody look and nobody touch.
type readOnly struct{}

func (readOnly) Decide(_ context.Context, in *policy.Input) policy.Decision {
	if in.Category == "assertive" {
		return policy.Decision{Verdict: policy.Allow, Gate: "read-only"}
	}
	return policy.Decision{Reason: "this server only answers questions", Gate: "read-only"}
}

func Example() {
	var gate policy.Gate = readOnly{}
	for _, in := range []policy.Input{{Verb: "get", Category: "assertive"}, {Verb: "delete", Category: "declaration"}} {
		d := gate.Decide(context.Background(), &in)
		fmt.Printf("%s: %s %q\n", in.Verb, d.Verdict, d.Reason)
	}
	// Output:
	// get: allow ""
	// delete: deny "this server only answers questions"
}
