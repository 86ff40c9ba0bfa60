package policytests_test

import (
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
	"github.com/verbgate/verbgate/policytests"
)

// BenchmarkStarter is one decision of the starter policy, as a running server makes it.
func BenchmarkStarter(b *testing.B) {
	folder, err := fs.Sub(policytests.Starter, "starter")
	require.NoError(b, err)
	gate, err := opa.New(opa.Config{FS: folder, Timeout: time.Minute})
	require.NoError(b, err)
	require.NoError(b, gate.Open(b.Context()))
	b.Cleanup(func() { require.NoError(b, gate.Close()) })
	in := &policy.Input{
		Verb: "get", Pack: "kg", Category: "assertive",
		Token:  policy.Token{Namespace: "local", Read: []string{"local"}, Actor: policy.Actor{Kind: "user", ID: "ann"}},
		Params: map[string]any{"id": "1b4e28ba-2fa1-4d2b-883f-0016d3cca427", "limit": json.Number("3")},
		Resource: &policy.Resource{
			Param: "id", ID: "1b4e28ba-2fa1-4d2b-883f-0016d3cca427", Exists: policy.Present, Namespace: "local", Kind: "entity",
		},
		Context: policy.Context{Source: "mcp", Transport: "stdio", RequestID: "r", DecisionID: "d", Time: time.Now().UTC(), Mode: "single", Count: 1},
	}
	b.ReportAllocs()
	for b.Loop() {
		if d := gate.Decide(b.Context(), in); d.Verdict != policy.Allow {
			b.Fatal(d.Reason)
		}
	}
}
