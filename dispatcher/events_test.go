package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/policy"
)

func TestEmit(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.one(`probe.emit(topic="probe.done")`).OK)
	require.Equal(t, []policy.Event{{Topic: "probe.done", Payload: json.RawMessage(`{"id":"<x>"}`)}}, h.records[0].Events)
	for how, ops := range map[string]string{
		"a topic of nobody's": `probe.emit(topic="other.done")`, "too large": `probe.emit(topic="probe.done", how="large")`,
		"not JSON": `probe.emit(topic="probe.done", how="nan")`, "too many": `probe.emit(topic="probe.done", how="many")`,
		"no object": `probe.emit(topic="probe.done", how="list")`,
	} {
		require.Equal(t, dispatcher.CodeInternal, h.one(ops).Code, how)
	}
	require.Equal(t, dispatcher.CodeConflict, h.one(`probe.emit(topic="probe.done", how="fail")`).Code)
	for _, rec := range h.records[1:] {
		require.Empty(t, rec.Events, "what failed is not told")
	}
	require.True(t, h.one(`probe.leave()`).OK)
	require.ErrorContains(t, h.leftEmit("probe.done", map[string]any{}), "ended")
}

func TestTopics(t *testing.T) {
	require.Equal(t, []string{"audit.decision", "audit.refusal", "gate.activation", "gate.outage", "gate.late_decision", "probe.done"}, newHouse(t).Topics())
}

func TestMaySubscribe(t *testing.T) {
	who := caller
	who.Namespace, who.Visible = "team", []string{"shared"}
	cursor := uint64(1<<63 + 1)
	t.Run("OK", func(t *testing.T) {
		h := newHouse(t)
		readable, err := h.MaySubscribe(t.Context(), who, "probe.done", &cursor)
		require.NoError(t, err)
		require.Equal(t, []string{"team", "shared"}, readable)
		in := h.inputs[0]
		require.Equal(t, "subscribe", in.Verb)
		require.Empty(t, in.Pack)
		require.Equal(t, map[string]any{"topic": "probe.done", "resume_cursor": json.Number("9223372036854775809")}, in.Params)
		rec := h.records[0]
		require.JSONEq(t, `{"topic":"probe.done","resume_cursor":9223372036854775809}`, string(rec.Params))
		require.Equal(t, []any{policy.KindDecision, "subscribe", "allow", "allowed", "user:ann", "team"}, []any{rec.Kind, rec.Verb, rec.Decision, rec.Effect, rec.Actor, rec.Namespace})
		_, err = h.MaySubscribe(t.Context(), who, "probe.done", nil)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"topic": "probe.done"}, h.inputs[1].Params)
	})
	for name, decision := range map[string]policy.Decision{
		"denied": {Reason: "no"}, "policy error": {PolicyError: true, Reason: "odd"}, "no verdict anybody knows": {Verdict: 99},
		"unavailable": {Verdict: policy.Unavailable}, "stopped": {Verdict: policy.Stopped, Cause: context.Canceled},
		"obligation nobody enforces": {Verdict: policy.Allow, Obligations: []policy.Obligation{policy.RateLimit{Max: 1}}},
	} {
		t.Run("Err "+name, func(t *testing.T) {
			h := newHouse(t, func(c *dispatcher.Config) { c.FailOpen = true })
			h.decide = deny(decision)
			_, err := h.MaySubscribe(t.Context(), who, "probe.done", nil)
			require.Error(t, err, "subscriptions never fail open")
			require.Equal(t, []any{"denied", "not_run"}, []any{h.records[0].Effect, h.records[0].Outcome})
		})
	}
	t.Run("Err the answer cannot be recorded", func(t *testing.T) {
		h := newHouse(t)
		h.setStoreErr(errors.New("full"))
		_, err := h.MaySubscribe(t.Context(), who, "probe.done", nil)
		require.ErrorContains(t, err, "audit")
		h.taken()
		_, err = h.MaySubscribe(t.Context(), who, "probe.done", nil)
		require.ErrorContains(t, err, "audit")
		require.Empty(t, h.taken(), "the store is known to be down")
	})
	t.Run("Err malformed namespace of the connection", func(t *testing.T) {
		bad := who
		bad.Visible = []string{"*"}
		_, err := newHouse(t).MaySubscribe(t.Context(), bad, "probe.done", nil)
		require.Error(t, err)
	})
	t.Run("Err closed", func(t *testing.T) {
		h := newHouse(t)
		require.NoError(t, h.Close())
		_, err := h.MaySubscribe(t.Context(), who, "probe.done", nil)
		require.ErrorContains(t, err, "shutting down")
	})
}

func TestFit(t *testing.T) {
	h := newHouse(t)
	env := h.run(`[probe.big(size=3000), probe.big(size=10), probe.big(size=2000), probe.fail(how="conflict"), probe.result(json="[[[[[1]]]]]")]`)
	whole, err := env.JSON()
	require.NoError(t, err)

	fits := func(size, depth int) *decodedEnvelope {
		text, ok := env.Fit(size, depth)
		require.True(t, ok)
		require.LessOrEqual(t, len(text), size)
		var out decodedEnvelope
		require.NoError(t, json.Unmarshal(text, &out))
		require.Equal(t, out.Summary.Total, out.Summary.Succeeded+out.Summary.Failed)
		return &out
	}
	text, ok := env.Fit(len(whole), 100)
	require.True(t, ok)
	require.Equal(t, string(whole), string(text), "what fits is not touched")

	out := fits(len(whole)-1, 100)
	require.Equal(t, []bool{false, true, true, false, true}, out.oks(), "the largest goes first, and no more than needed")
	require.Equal(t, "partial", out.Status)
	require.Equal(t, "response_frame_budget_exceeded", out.Results[0].Code)
	require.Contains(t, string(out.Results[0].Error), `"recoverable":"reduce_result_size"`)
	require.Equal(t, []bool{false, true, false, false, true}, fits(2000, 100).oks())

	require.Equal(t, []bool{true, true, true, false, true}, fits(len(whole), 8).oks(), "envelope, results, entry and five levels")
	require.Equal(t, []bool{true, true, true, false, false}, fits(len(whole)+200, 7).oks())
	_, ok = env.Fit(100, 100)
	require.False(t, ok)
	require.True(t, env.Results[0].OK, "the envelope itself is not changed")

	t.Run("a verb that writes", func(t *testing.T) {
		env := h.run(`probe.put(id="` + strings.Repeat("x", 5000) + `")`)
		text, ok := env.Fit(2000, 100)
		require.True(t, ok)
		require.Contains(t, string(text), `"recoverable":"read_outcome"`)
	})
	t.Run("brackets in strings are no nesting", func(t *testing.T) {
		env := h.run(`probe.result(json="\"[[[[[[\\\"[[[\"")`)
		text, ok := env.Fit(10_000, 4)
		require.True(t, ok)
		require.Contains(t, string(text), `"ok":true`)
	})
}

type decodedEnvelope struct {
	Results []struct {
		OK    bool
		Code  string
		Error json.RawMessage
	}
	Summary dispatcher.Summary
	Status  string
}

func (d *decodedEnvelope) oks() (out []bool) {
	for _, r := range d.Results {
		out = append(out, r.OK)
	}
	return out
}

// A request keeps at most 64 MiB of results for its answer, however many operations it has.
func TestResultsKeptAreBounded(t *testing.T) {
	h := newHouse(t)
	const each = 1 << 20
	big := "probe.big(size=1048574)" // and its quotes
	held := func(env *dispatcher.Envelope) (n int) {
		for _, e := range env.Results {
			n += len(e.Result)
		}
		return n
	}
	env := h.run("[" + strings.TrimSuffix(strings.Repeat(big+",", 70), ",") + "]")
	require.Equal(t, 64*each, held(env))
	require.Equal(t, dispatcher.Summary{Total: 70, Succeeded: 64, Failed: 6}, env.Summary)

	env = h.run(strings.TrimSuffix(strings.Repeat(big+"|", 70), "|"))
	require.Equal(t, 64*each, held(env))
	require.Equal(t, dispatcher.Summary{Total: 70, Succeeded: 64, Failed: 6}, env.Summary, "a chain goes on; its earliest results are let go")
	require.Equal(t, dispatcher.CodeFrameBudget, env.Results[0].Code)
	require.True(t, env.Results[69].OK)
	for _, rec := range h.records {
		require.Equal(t, "success", rec.Outcome)
	}
}
