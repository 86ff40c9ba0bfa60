package opa_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// spin keeps the engine busy for hours, but can be interrupted between its expressions.
const spin = `decision if count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == 0]) == 0`

// stuck is one call of a built-in function that takes seconds and cannot be interrupted.
const stuck = `decision if count(regex.replace(input.params.s, "(a?){100}b", "x")) >= 0`

func stuckCall() *policy.Input { return call(map[string]any{"s": strings.Repeat("a", 1<<15)}) }

// faultyStore fails or panics when data.trap is read.
type faultyStore struct {
	storage.Store
	fault func() error
}

func (s faultyStore) Read(ctx context.Context, txn storage.Transaction, path storage.Path) (any, error) {
	if len(path) > 0 && path[0] == "trap" {
		return nil, s.fault()
	}
	return s.Store.Read(ctx, txn, path)
}

func brokenGate(t *testing.T, rego string, fault func() error) *opa.Gate {
	t.Helper()
	g, err := opa.New(opa.Config{FS: files(rego, "data.json", `{"trap": {"x": 1}}`), Timeout: time.Minute})
	require.NoError(t, err)
	opa.BreakStore(g, func(s storage.Store) storage.Store { return faultyStore{s, fault} })
	require.NoError(t, g.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// The table of dispatch.md 4, row by row: what a caller can provoke is a deny with PolicyError.
func TestErrFailureTable(t *testing.T) {
	deep := func(levels int) any {
		var v any = "x"
		for range levels {
			v = []any{v}
		}
		return v
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	cases := []struct {
		name, rego string
		in         *policy.Input
		reason     string
		cause      string
	}{
		{name: "Err undefined entry point", rego: `decision if input.verb == "other"`, reason: "the entry point is undefined for this call"},
		{name: "Err conflicting rules", in: call(map[string]any{"x": json.Number("2")}),
			rego:   "decision := {\"decision\": \"allow\"} if input.params.x == 2\n\ndecision := false if input.params.x % 2 == 0",
			reason: "rules of the policy contradict each other", cause: "eval_conflict_error"},
		{name: "Err conflicting functions", rego: "f(x) := 1 if x\n\nf(x) := 2 if x\n\ndecision if f(true) == 1", reason: "rules of the policy contradict each other"},
		{name: "Err conflicting keys", rego: `decision if {"a": v | some v in [1, 2]} == {}`, reason: "rules of the policy contradict each other"},
		{name: "Err built-in function", rego: `decision if to_number(input.params.s) == 1`, in: call(map[string]any{"s": "secret"}),
			reason: "a built-in function failed (see the server log, decision d1)", cause: "gate.rego:3:13: eval_builtin_error: to_number"},
		{name: "Err division by zero", rego: `decision if 1 / input.params.n == 1`, in: call(map[string]any{"n": json.Number("0")}), reason: "a built-in function failed"},
		{name: "Err operand of another type", rego: `decision if count(input.params.n) == 1`, in: call(map[string]any{"n": json.Number("0")}), reason: "a built-in function failed"},
		{name: "Err invalid pattern", rego: `decision if regex.match(input.params.s, "x")`, in: call(map[string]any{"s": "("}), reason: "a built-in function failed"},
		{name: "Err deny rule that fails silently", in: call(map[string]any{"s": "secret"}),
			rego:   "default decision := true\n\ndecision := false if to_number(input.params.s) > 1",
			reason: "a built-in function failed"},
		{name: "Err negated condition that fails silently", in: call(map[string]any{"s": "secret"}),
			rego:   "decision if not risky\n\nrisky if to_number(input.params.s) > 1",
			reason: "a built-in function failed"},
		{name: "Err comprehension that fails silently", in: call(map[string]any{"list": []any{"1", "secret"}}),
			rego:   "decision if count([x | some s in input.params.list; x := to_number(s); x > 5]) == 0",
			reason: "a built-in function failed"},
		{name: "Err wrong shape", rego: `decision := "allow"`, reason: "the policy returned an unrecognised decision"},
		{name: "Err bad obligation", rego: `decision := {"decision": "allow", "obligations": [{"kind": "audit"}]}`, reason: "the policy returned a malformed obligation"},
		{name: "Err input over 2 MiB", rego: `decision := true`, in: call(map[string]any{"s": strings.Repeat("a", 2<<20)}), reason: "params.s: the input is over 2 MiB"},
		{name: "Err input over 2 MiB in many values", rego: `decision := true`, in: call(map[string]any{"s": make([]any, 500_000)}), reason: "params.s: the input is over 2 MiB"},
		{name: "Err input over 2 MiB in keys", rego: `decision := true`, in: call(map[string]any{strings.Repeat("a", 2<<20): true}), reason: "params.(a member): the input is over 2 MiB"},
		{name: "Err input over 80 deep", rego: `decision := true`, in: call(map[string]any{"a": deep(79)}), reason: "params.a: the input is nested over 80 levels deep"},
		{name: "Err input that never ends", rego: `decision := true`, in: call(map[string]any{"a": cyclic}), reason: "params.a: the input is nested over 80 levels deep"},
		{name: "Err input of another type", rego: `decision := true`, in: call(map[string]any{"a": []any{json.Number("1"), 2}}), reason: "params.a: int is not a JSON value"},
		{name: "Err input with a huge number", rego: `decision := true`, in: call(map[string]any{"a": json.Number("1e3000000")}), reason: "params.a: the number is not one that a policy can read"},
		{name: "Err input that is no text", rego: `decision := true`, in: call(map[string]any{"a": "a\xff"}), reason: "params.a: the text is not valid UTF-8"},
		{name: "Err key that is nobody's business", rego: `decision := true`, in: call(map[string]any{"secret": "a\xff"}), reason: "params.secret: the text", cause: "params: the text is not valid UTF-8"},
		{name: "Err key that is no text", rego: `decision := true`, in: call(map[string]any{"a\xff": "a"}), reason: "params.(a member): the text is not valid UTF-8"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.in == nil {
				tc.in = call(map[string]any{})
			}
			g := gateOf(t, tc.rego)
			d := g.Decide(t.Context(), tc.in)
			requirePolicyError(t, d, tc.reason)
			require.Contains(t, d.Cause.Error(), tc.cause)
			require.NotContains(t, d.Cause.Error(), "secret")
			require.Equal(t, g.Status().Revision, d.Revision)
		})
	}
}

func TestErrTimeout(t *testing.T) {
	g := opened(t, opa.Config{FS: files(spin), Timeout: 20 * time.Millisecond, Grace: time.Minute})
	d := g.Decide(t.Context(), call(nil))
	requirePolicyError(t, d, "evaluation took longer than 20ms")
	require.Zero(t, g.Status().Abandoned, "it obeyed within the grace")
	require.Equal(t, g.Status().Revision, d.Revision)
}

// Unless the configuration says otherwise an evaluation has the time that the contract gives it.
func TestDefaultTimeLimits(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, opa.DefaultTimeout)
	require.Equal(t, 100*time.Millisecond, opa.DefaultGrace)
	g := opened(t, opa.Config{FS: files(spin)})
	timeout, grace := opa.Limits(g)
	require.Equal(t, opa.DefaultTimeout, timeout)
	require.Equal(t, opa.DefaultGrace, grace)
	requirePolicyError(t, g.Decide(t.Context(), call(nil)), "evaluation took longer than 250ms")
}

// An evaluation that cannot be interrupted is given up; past a few of them the gate refuses at once,
// until they have ended.
func TestErrAbandoned(t *testing.T) {
	g, err := opa.New(opa.Config{FS: files(stuck), Timeout: time.Millisecond, Grace: time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, g.Open(t.Context()))
	refused := false
	for range 20 {
		d := g.Decide(t.Context(), stuckCall())
		require.Equal(t, policy.Deny, d.Verdict)
		require.True(t, d.PolicyError)
		if strings.Contains(d.Reason, "too many evaluations run past their time limit") {
			refused = true
			break
		}
		require.Contains(t, d.Reason, "evaluation took longer than 1ms")
	}
	require.True(t, refused)
	require.GreaterOrEqual(t, g.Status().Abandoned, uint64(4))
	require.Eventually(t, func() bool { return g.Status().Running == 0 }, time.Minute, 10*time.Millisecond)
	d := g.Decide(t.Context(), call(map[string]any{"s": "a"}))
	require.NotContains(t, d.Reason, "too many evaluations")
	require.Eventually(t, func() bool { return g.Close() == nil }, time.Minute, 10*time.Millisecond)
}

func TestErrPanic(t *testing.T) {
	g := brokenGate(t, "default decision := true\n\ndecision := data.trap.x if input.verb == \"get\"", func() error { panic("secret") })
	d := g.Decide(t.Context(), call(nil))
	requirePolicyError(t, d, "the policy could not be evaluated")
	require.Contains(t, d.Cause.Error(), "panic (string)")
	require.NotContains(t, d.Cause.Error(), "secret")
	other := call(nil)
	other.Verb = "list"
	require.Equal(t, policy.Allow, g.Decide(t.Context(), other).Verdict, "the gate lives on")
}

// Only the policy store itself makes the gate unavailable.
func TestUnavailable(t *testing.T) {
	g := brokenGate(t, `decision := data.trap.x`, func() error { return errors.New("disk on fire") })
	d := g.Decide(t.Context(), call(nil))
	require.Equal(t, policy.Unavailable, d.Verdict)
	require.False(t, d.PolicyError)
	require.NotContains(t, d.Reason, "fire")
	require.ErrorContains(t, d.Cause, "disk on fire")

	// What the caller provokes beside it is a deny all the same.
	g = brokenGate(t, "decision := x if {\n\tnot odd\n\tx := data.trap[input.params.k]\n}\n\nodd if to_number(input.params.s) == 1", func() error { return errors.New("disk on fire") })
	requirePolicyError(t, g.Decide(t.Context(), call(map[string]any{"s": "secret", "k": "x"})), "a built-in function failed")

	// Something that is not there is no failure.
	g = brokenGate(t, "default decision := true\n\ndecision := data.trap.x", func() error { return &storage.Error{Code: storage.NotFoundErr} })
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)
}

func TestStopped(t *testing.T) {
	g := opened(t, opa.Config{FS: files(spin), Timeout: time.Minute, Grace: time.Minute})
	require.Equal(t, policy.Deny, policy.Decision{}.Verdict)
	requireStopped := func(d policy.Decision, cause error) {
		t.Helper()
		require.Equal(t, policy.Stopped, d.Verdict, "%+v", d)
		require.ErrorIs(t, d.Cause, cause)
		require.False(t, d.PolicyError)
		require.Equal(t, g.Status().Revision, d.Revision)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	requireStopped(g.Decide(gone, call(nil)), context.Canceled)

	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	requireStopped(g.Decide(late, call(nil)), context.DeadlineExceeded)
	cancel()

	late, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	requireStopped(g.Decide(late, call(nil)), context.DeadlineExceeded)
	cancel()

	gone, cancel = context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	requireStopped(g.Decide(gone, call(nil)), context.Canceled)

	running := make(chan policy.Decision)
	go func() { running <- g.Decide(context.Background(), call(nil)) }()
	require.Eventually(t, func() bool { return g.Status().Decisions == 5 }, time.Minute, time.Millisecond)
	require.NoError(t, g.Close())
	requireStopped(<-running, policy.ErrGateClosed)
	requireStopped(g.Decide(t.Context(), call(nil)), policy.ErrGateClosed)
	require.NoError(t, g.Close())
}

// When every evaluation is busy a caller waits its turn, but not for ever.
func TestErrOverloaded(t *testing.T) {
	waiting := func(timeout time.Duration) *opa.Gate {
		g := opened(t, opa.Config{FS: files("decision := true"), Timeout: timeout})
		opa.SetLimit(g, 0)
		return g
	}
	requirePolicyError(t, waiting(time.Millisecond).Decide(t.Context(), call(nil)), "the gate is overloaded; no evaluation could start within 1ms")

	gone, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	d := waiting(time.Minute).Decide(gone, call(nil))
	require.Equal(t, policy.Stopped, d.Verdict)
	require.ErrorIs(t, d.Cause, context.Canceled)

	g := waiting(time.Minute)
	time.AfterFunc(10*time.Millisecond, func() { _ = g.Close() })
	d = g.Decide(t.Context(), call(nil))
	require.Equal(t, policy.Stopped, d.Verdict)
	require.ErrorIs(t, d.Cause, policy.ErrGateClosed)
}

// A built-in function that waits for the network is cut short by the time limit, and by the caller.
func TestErrSlowNetwork(t *testing.T) {
	hang := make(chan struct{})
	asked := make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	for _, raise := range []string{"true", "false"} {
		cfg := opa.Config{AllowBuiltins: []string{"http.send"}, AllowHosts: []string{"127.0.0.1"}, Timeout: 100 * time.Millisecond, Grace: time.Minute,
			FS: files(`default decision := true` + "\n\n" + `decision := false if http.send({"method": "get", "url": "` + server.URL + `", "raise_error": ` + raise + `}).status_code == 200`)}
		d := opened(t, cfg).Decide(t.Context(), call(nil))
		requirePolicyError(t, d, "evaluation took longer than 100ms")
		<-asked

		cfg.Timeout = time.Minute
		gone, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		d = opened(t, cfg).Decide(gone, call(nil))
		require.Equal(t, policy.Stopped, d.Verdict, "%+v", d)
		require.ErrorIs(t, d.Cause, context.Canceled)
	}
}

func TestErrNotOpen(t *testing.T) {
	g, err := opa.New(opa.Config{FS: files("decision := true")})
	require.NoError(t, err)
	requirePolicyError(t, g.Decide(t.Context(), call(nil)), "the gate has no policy yet")
	require.ErrorContains(t, g.Reload(t.Context()), "it is not open")
	require.NoError(t, g.Open(t.Context()))
	require.ErrorContains(t, g.Open(t.Context()), "opened before")
	requirePolicyError(t, g.Decide(t.Context(), nil), "there is nothing to judge")
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Open(t.Context()), policy.ErrGateClosed)
	require.ErrorIs(t, g.Reload(t.Context()), policy.ErrGateClosed)
}
