package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// Log lines never hold params (dispatch.md 7): every part that fails here quotes what it was given.
func TestLogLinesHoldNoParams(t *testing.T) {
	quoting := func(call any) error { return fmt.Errorf("cannot digest %v", call) }
	for name, tc := range map[string]struct {
		ops string
		arm func(h *house)
		log []string // what the one line about it holds
	}{
		"handler panic": {`probe.do(value="` + canary + `")`, func(h *house) {
			h.do = func(_ context.Context, call *packs.Call) (any, error) { panic(call.Params["value"]) }
		}, []string{"msg=panic", "value of type string"}},
		"handler panic with an error": {`probe.do(value="` + canary + `")`, func(h *house) {
			h.do = func(_ context.Context, call *packs.Call) (any, error) { panic(quoting(call.Params)) }
		}, []string{"msg=panic", "value of type *"}},
		"scripted panic": {`probe.fail(how="panic")`, nil, []string{"msg=panic", "value of type string"}},
		"gate panic": {`probe.echo(id="` + canary + `")`, func(h *house) {
			h.decide = func(_ context.Context, in *policy.Input) policy.Decision { panic(in.Params) }
		}, []string{"msg=panic", "value of type map"}},
		"locator error": {`probe.get(id="` + canary + `")`, func(h *house) {
			h.locate = func(_ context.Context, ref packs.ResourceRef) (packs.Location, error) {
				return packs.Location{}, quoting(ref.ID)
			}
		}, []string{"could not locate", "error_type=*"}},
		"hook error": {`probe.echo(id="` + canary + `")`, func(h *house) {
			h.hook = func(_ context.Context, e dispatcher.Event) error { return quoting(string(e.Record.Params)) }
		}, []string{"hook failed", "error_type=*", "timed_out=false"}},
		"refused params": {`probe.echo(n="` + canary + `")`, nil, nil},
		"unknown params": {`probe.echo(` + canary + `="` + canary + `")`, nil, nil},
		"namespace":      {`probe.echo(namespace="` + canary + `/")`, nil, nil},
		"substitution":   {`probe.result(json="{\"` + canary + `\":1}") | probe.echo(id=$prev.` + canary + `x)`, nil, nil},
		"write conflict": {`[probe.put(id="` + canary + `"), probe.put(id="` + canary + `")]`, nil, nil},
		"what fails a check": {`probe.echo(id="` + canary + `")`, func(h *house) {
			h.check = func(_ context.Context, in *policy.Input) error {
				return &packs.CheckError{Check: "c", Message: fmt.Sprint(in.Params)}
			}
		}, nil},
		"denial": {`probe.echo(id="` + canary + `")`, func(h *house) {
			h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
				return policy.Decision{Reason: fmt.Sprint(in.Params)}
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			if tc.arm != nil {
				tc.arm(h)
			}
			h.run(tc.ops)
			if tc.log == nil {
				require.Empty(t, h.log.lines("level=WARN"))
				require.Empty(t, h.log.lines("level=ERROR"))
			} else {
				require.Len(t, h.log.lines(tc.log...), 1)
			}
			require.Empty(t, h.log.lines(canary))
			require.Empty(t, h.log.lines("secret-value"))
		})
	}
}

// What the policy engine says about a failed evaluation quotes what it failed on. The log has the cause
// without that.
func TestPolicyErrorsAreLoggedWithoutParams(t *testing.T) {
	gate, err := opa.New(opa.Config{FS: fstest.MapFS{"p.rego": {Data: []byte("package verbgate.gate\n\ndecision if to_number(input.params.id) > 1\n")}}, Timeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, gate.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, gate.Close()) })
	h := newHouse(t, func(c *dispatcher.Config) { c.Gate = gate })
	entry := h.one(`probe.echo(id="` + canary + `")`)
	require.Equal(t, dispatcher.CodePolicyError, entry.Code)
	require.NotContains(t, entry.Error, "to_number")
	lines := h.log.lines("level=ERROR", "decision_id="+entry.DecisionID)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "to_number", "the cause")
	require.Contains(t, lines[0], "revision=")
	require.Empty(t, h.log.lines(canary))
	require.NotContains(t, h.records[0].Reason, canary)
}

func TestPolicyErrorsAreLoggedOnce(t *testing.T) {
	for name, decision := range map[string]policy.Decision{
		"policy error": {PolicyError: true, Reason: "undefined", Revision: "r9", Cause: errors.New("rule without value")},
		"no verdict":   {Verdict: 99, Revision: "r9"},
		"obligation":   {Verdict: policy.Allow, Revision: "r9", Obligations: []policy.Obligation{policy.RateLimit{Max: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.decide = deny(decision)
			env := h.run(`[probe.echo(), probe.who()]`)
			for _, entry := range env.Results {
				require.Equal(t, dispatcher.CodePolicyError, entry.Code)
				lines := h.log.lines("decision_id=" + entry.DecisionID)
				require.Len(t, lines, 1)
				require.Contains(t, lines[0], "level=ERROR")
				require.Contains(t, lines[0], "verb="+entry.Tool)
				require.Contains(t, lines[0], "revision=r9")
				require.Contains(t, lines[0], "request_id="+env.RequestID)
			}
			require.Len(t, h.log.lines(`error="`), 2)
			if decision.Cause != nil {
				require.Len(t, h.log.lines("rule without value"), 2)
				require.NotContains(t, fmt.Sprint(env.Results[0].Error), "rule without value", "the engine's text is not the caller's")
			}
			require.Len(t, h.log.lines("level=ERROR"), 2)
		})
	}
	t.Run("of subscriptions", func(t *testing.T) {
		for _, decision := range []policy.Decision{
			{PolicyError: true, Cause: errors.New("rule without value")}, {Verdict: 99}, {Verdict: policy.Allow, Obligations: []policy.Obligation{nil}},
		} {
			h := newHouse(t)
			h.decide = deny(decision)
			_, err := h.MaySubscribe(t.Context(), caller, "probe.done", nil)
			require.Error(t, err)
			require.Len(t, h.log.lines("level=ERROR", "verb=subscribe", "decision_id="+h.records[0].DecisionID), 1)
		}
	})
	t.Run("a denial is no error", func(t *testing.T) {
		h := newHouse(t)
		h.decide = deny(policy.Decision{Reason: "no"})
		h.run(`probe.echo()`)
		require.Empty(t, h.log.lines("level=ERROR"))
	})
}

// The log hears of an outage when it begins and when it ends, not of each call.
func TestOutagesAreLoggedOnce(t *testing.T) {
	for _, failOpen := range []bool{true, false} {
		t.Run(fmt.Sprintf("fail open %v", failOpen), func(t *testing.T) {
			h := newHouse(t, func(c *dispatcher.Config) { c.FailOpen = failOpen })
			state := func() string {
				var s []string
				for _, line := range h.log.lines("policy gate") {
					_, level, _ := strings.Cut(line, "level=")
					level, _, _ = strings.Cut(level, " ")
					s = append(s, level)
				}
				return strings.Join(s, " ")
			}
			out := deny(policy.Decision{Verdict: policy.Unavailable, Cause: errors.New("the store is gone")})
			h.run(`probe.echo()`)
			require.Empty(t, state())
			h.decide = out
			for range 3 {
				require.Equal(t, failOpen, h.one(`probe.echo()`).OK)
			}
			require.Equal(t, "WARN", state())
			require.Len(t, h.log.lines("the store is gone"), 1, "with its cause")
			h.decide = nil
			h.run(`[probe.echo(), probe.echo()]`)
			require.Equal(t, "WARN INFO", state())
			h.decide = out
			h.run(`[probe.echo(), probe.echo()]`)
			require.Equal(t, "WARN INFO WARN", state())
			h.decide = deny(policy.Decision{Reason: "no"})
			h.run(`probe.echo()`)
			require.Equal(t, "WARN INFO WARN INFO", state(), "a denial is an answer too")
		})
	}
}

func TestSubscriptionsEndOutagesToo(t *testing.T) {
	h := newHouse(t)
	for _, decision := range []policy.Decision{{Verdict: policy.Unavailable}, {Verdict: policy.Allow}, {Verdict: policy.Unavailable}, {Reason: "no"}} {
		h.decide = deny(decision)
		_, err := h.MaySubscribe(t.Context(), caller, "probe.done", nil)
		require.Equal(t, decision.Verdict == policy.Allow, err == nil)
	}
	require.Len(t, h.log.lines("level=WARN", "policy gate"), 2)
	require.Len(t, h.log.lines("level=INFO", "policy gate"), 2)
}
