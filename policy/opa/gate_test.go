package opa_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files makes a policy of one module of package verbgate.gate, or of name-content pairs.
func files(rego string, more ...string) fstest.MapFS {
	m := fstest.MapFS{"gate.rego": {Data: []byte("package verbgate.gate\n\n" + rego)}}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return m
}

// opened is a gate that is closed with the test.
func opened(t testing.TB, cfg opa.Config) *opa.Gate {
	t.Helper()
	g, err := opa.New(cfg)
	require.NoError(t, err)
	require.NoError(t, g.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// gateOf opens a gate on one module. The time limit is generous, so that a slow machine fails no test.
func gateOf(t testing.TB, rego string, more ...string) *opa.Gate {
	t.Helper()
	return opened(t, opa.Config{FS: files(rego, more...), Timeout: time.Minute})
}

// call is an operation as a user of the local namespace makes it.
func call(params map[string]any) *policy.Input {
	return &policy.Input{
		Verb: "get", Pack: "kg", Category: "assertive",
		Token: policy.Token{
			Namespace: "local", Read: []string{"local", "local:notes"},
			Actor: policy.Actor{Kind: "user", ID: "ada", Groups: []string{"staff"}, Claims: map[string]any{"sub": "ada"}},
		},
		Params:   params,
		Resource: &policy.Resource{Param: "id", ID: "0190", Exists: policy.Present, Namespace: "local", Kind: "entity"},
		Context: policy.Context{
			Source: "mcp", Transport: "stdio", SessionID: "s1", RequestID: "r1", DecisionID: "d1",
			Time: time.Date(2026, 11, 30, 20, 1, 2, 3000, time.UTC), Mode: "single", Count: 1,
		},
	}
}

func params(t testing.TB, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var m map[string]any
	require.NoError(t, dec.Decode(&m))
	return m
}

// requirePolicyError asserts a deny that says so and that keeps the engine's text to itself.
func requirePolicyError(t testing.TB, d policy.Decision, reason string) {
	t.Helper()
	require.Equal(t, policy.Deny, d.Verdict, "%+v", d)
	require.True(t, d.PolicyError, "%+v", d)
	require.Contains(t, d.Reason, "policy error: "+reason)
	for _, leak := range []string{"eval_", "rego", "storage", "goroutine", "panic"} {
		require.NotContains(t, d.Reason, leak)
	}
	require.Error(t, d.Cause)
	require.Equal(t, "opa", d.Gate)
}

func TestStarter(t *testing.T) {
	g := opened(t, opa.Config{FS: os.DirFS("testdata/starter"), RunTests: true, Timeout: time.Minute})
	allowed := g.Decide(t.Context(), call(params(t, `{"id":"0190","limit":100}`)))
	require.Equal(t, policy.Decision{Verdict: policy.Allow, Gate: "opa", Revision: g.Status().Revision}, allowed)

	denied := g.Decide(t.Context(), call(params(t, `{"id":"0190","limit":101}`)))
	require.Equal(t, policy.Decision{
		Reason: "limit is capped at 100", Code: "forbidden", Obligations: []policy.Obligation{policy.AuditTag{Tag: "forbidden"}},
		Gate: "opa", Revision: g.Status().Revision,
	}, denied)

	elsewhere := call(nil)
	elsewhere.Token.Read = append(elsewhere.Token.Read, "locals")
	require.Equal(t, "no rule allows this", g.Decide(t.Context(), elsewhere).Reason)
	require.EqualValues(t, 3, g.Status().Decisions)
}

func writeFiles(t testing.TB, dir string, files fstest.MapFS) {
	t.Helper()
	for name, f := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
}

func fsOf(name string) fs.FS { return os.DirFS(filepath.Join("testdata", name)) }

func contextGone(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}
