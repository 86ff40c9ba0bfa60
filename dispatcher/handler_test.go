package dispatcher_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// A handler cannot widen its token: what it does to what the token shows changes nothing.
func TestHandlersCannotWidenTheirToken(t *testing.T) {
	h := newHouse(t)
	who := caller
	who.Namespace, who.Visible = "team", []string{"shared"}
	h.do = func(ctx context.Context, call *packs.Call) (any, error) {
		for i := range call.Token.Readable() {
			call.Token.Readable()[i] = "vault"
		}
		require.False(t, call.Token.CanRead("vault"))
		_, err := call.Invoke(ctx, "probe.who", packs.Params{"namespace": "vault"})
		require.ErrorContains(t, err, "stays within")
		return call.Invoke(ctx, "probe.who", nil)
	}
	for range 2 { // the caller's next request either
		env := h.runAs(who, `probe.do() | probe.who()`)
		require.Equal(t, dispatcher.Success, env.Status, env.Results)
		for _, e := range env.Results {
			require.Contains(t, string(e.Result), `"read":["team","shared"]`)
		}
	}
	require.Len(t, h.inputs, 6)
	for _, in := range h.inputs {
		require.Equal(t, []string{"team", "shared"}, in.Token.Read, "the gate sees the old list")
	}
	require.Equal(t, []string{"shared"}, who.Visible)
}

// What was judged is what is on record, and what a nested verb gets is what was judged for it, whatever
// the handlers do to the values they share.
func TestHandlersCannotChangeWhatWasJudged(t *testing.T) {
	const was, tampered = `{"a":[{"b":"judged"}]}`, "tampered"
	tamper := func(value any) {
		value.(map[string]any)["a"].([]any)[0].(map[string]any)["b"] = tampered
	}
	h := newHouse(t)
	shared := map[string]any{"a": []any{map[string]any{"b": "judged"}}}
	h.do = func(ctx context.Context, call *packs.Call) (any, error) {
		if len(h.inputs) == 2 { // the nested one
			tamper(shared) // what the outer one passed, as a goroutine of its own could at this very moment
			text, err := json.Marshal(call.Params["value"])
			require.NoError(t, err)
			require.JSONEq(t, was, string(text))
			tamper(call.Params["value"])
			return nil, nil
		}
		tamper(call.Params["value"])
		passed := packs.Params{"value": shared}
		_, err := call.Invoke(ctx, "probe.do", passed)
		require.NoError(t, err)
		passed["value"] = tampered
		return call.Params, nil
	}
	require.True(t, h.one(`probe.do(value=`+was+`)`).OK)
	require.Len(t, h.records, 2)
	for _, rec := range h.records {
		require.JSONEq(t, `{"value":`+was+`}`, string(rec.Params))
	}
	// The steps of a chain share what $prev takes from a result; each has its own copy of the result.
	h = newHouse(t)
	h.do = func(_ context.Context, call *packs.Call) (any, error) {
		tamper(call.Params["value"])
		return json.RawMessage(was), nil
	}
	env := h.run(`probe.do(value=` + was + `) | probe.do(value=$prev.a[0]) | probe.who()`)
	require.Equal(t, dispatcher.CodeInternal, env.Results[1].Code) // there is nothing to tamper with: it panics
	env = h.run(`probe.result(json="{\"x\":{\"a\":[{\"b\":\"judged\"}]}}") | probe.do(value=$prev.x) | probe.do(value=$prev)`)
	require.Equal(t, dispatcher.CodeSubstitutionError, env.Results[2].Code)
	require.JSONEq(t, was, string(env.Results[1].Result))
	for _, rec := range h.records {
		require.NotContains(t, string(rec.Params), tampered)
	}
}

// A handler owns the result of a verb it called; hooks hear the result as it was.
func TestHandlersCannotChangeWhatHooksHear(t *testing.T) {
	h := newHouse(t)
	h.do = func(ctx context.Context, call *packs.Call) (any, error) {
		result, err := call.Invoke(ctx, "probe.result", packs.Params{"json": `"judged"`})
		require.NoError(t, err)
		copy(result, `"forged"`)
		return result, nil
	}
	require.Equal(t, `"forged"`, string(h.one(`probe.do()`).Result))
	require.Equal(t, "probe.result", h.events[0].Record.Verb)
	require.Equal(t, `"judged"`, string(h.events[0].Result))
}

// Params that hold themselves end nowhere.
func TestNestedParamsWithoutEnd(t *testing.T) {
	ring, list := map[string]any{}, make([]any, 1)
	ring["a"], list[0] = ring, list
	for verb, value := range map[string]any{"probe.echo": ring, "nope": list, "probe.hidden": []any{ring}} {
		h := newHouse(t)
		h.do = func(ctx context.Context, call *packs.Call) (any, error) {
			return call.Invoke(ctx, verb, packs.Params{"value": value})
		}
		entry := h.one(`probe.do()`)
		require.Equal(t, dispatcher.CodeInvalidParams, entry.Code)
		require.Contains(t, entry.Error, "64 levels")
		require.Equal(t, []string{"check probe.do", "gate probe.do", "call probe.do", "append 2"}, h.taken())
	}
}

type badMarshaler struct{ how string }

func (m badMarshaler) MarshalJSON() ([]byte, error) {
	if m.how == "panic" {
		panic(canary)
	}
	return []byte(m.how), nil
}

// What a handler returns and nobody can encode is withheld. It ends nothing but its own operation.
func TestResultsThatCannotBeEncoded(t *testing.T) {
	ring := map[string]any{}
	ring["itself"] = ring
	list := make([]any, 1)
	list[0] = list
	type node struct{ Next *node }
	loop := &node{}
	loop.Next = loop
	for name, value := range map[string]any{
		"a map that holds itself": ring, "a list that holds itself": list, "a pointer to itself": loop,
		"raw text that is not JSON": json.RawMessage(`{"` + canary), "raw text with more behind": json.RawMessage(`1 2`),
		"a marshaler that panics": badMarshaler{"panic"}, "a marshaler that writes no JSON": badMarshaler{canary},
		"a function": func() {},
	} {
		t.Run("Err "+name, func(t *testing.T) {
			h := newHouse(t)
			h.do = func(context.Context, *packs.Call) (any, error) { return value, nil }
			env := h.run(`[probe.echo(), probe.do(), probe.echo()]`)
			entry := env.Results[1]
			require.Equal(t, dispatcher.CodeInternal, entry.Code)
			require.Empty(t, entry.Result)
			require.NotContains(t, entry.Error, canary)
			require.Equal(t, 2, env.Summary.Succeeded, "siblings finish")
			require.Len(t, h.records, 3)
			require.Len(t, h.events, 2, "nobody hears of a result that does not exist")
			require.Empty(t, h.log.lines(canary))
			_, err := env.JSON()
			require.NoError(t, err)
		})
	}
	t.Run("OK a result of 20 MiB", func(t *testing.T) {
		h := newHouse(t)
		big := strings.Repeat("<", 20<<20)
		h.do = func(context.Context, *packs.Call) (any, error) { return big, nil }
		env := h.run(`probe.do() | probe.echo(id=$prev)`)
		require.True(t, env.Results[0].OK)
		require.Len(t, env.Results[0].Result, 20<<20+2)
		require.Equal(t, dispatcher.CodeSubstitutionError, env.Results[1].Code, "no step of a chain takes that in")
		text, ok := env.Fit(8<<20, 100)
		require.True(t, ok)
		require.Contains(t, string(text), `"code":"response_frame_budget_exceeded"`)
	})
}

// The entry of a failure that the checks or the gate decided leads to the decision, and no other one does.
func TestDecisionIDOfFailures(t *testing.T) {
	for ops, tc := range map[string]struct {
		code     dispatcher.Code
		decided  bool
		decision policy.Decision
		check    error
	}{
		`probe.echo(id="denied")`:      {code: dispatcher.CodePermissionDenied, decided: true, decision: policy.Decision{Reason: "no"}},
		`probe.echo(id="odd")`:         {code: dispatcher.CodePolicyError, decided: true, decision: policy.Decision{PolicyError: true}},
		`probe.echo(id="obligation")`:  {code: dispatcher.CodePolicyError, decided: true, decision: policy.Decision{Verdict: policy.Allow, Obligations: []policy.Obligation{policy.Redact{}}}},
		`probe.echo(id="unavailable")`: {code: dispatcher.CodeGateUnavailable, decided: true, decision: policy.Decision{Verdict: policy.Unavailable}},
		`probe.echo(id="check")`:       {code: dispatcher.CodeInvalidParams, decided: true, check: &packs.CheckError{Check: "c", Message: "m"}},
		`probe.echo(x="manifest")`:     {code: dispatcher.CodeInvalidParams, decided: true},
		`probe.echo(id="withdrawn")`:   {code: dispatcher.CodeCancelled, decision: policy.Decision{Verdict: policy.Stopped, Cause: context.Canceled}},
		`probe.echo(namespace=1)`:      {code: dispatcher.CodeInvalidNamespace},
		`probe.echo(help=1)`:           {code: dispatcher.CodeInvalidParams},
		`probe.hidden()`:               {code: dispatcher.CodeNotCallable},
		`probe.put(ids=["a","a"])`:     {code: dispatcher.CodeWriteConflict},
		`probe.echo(id=$prev.x) | a()`: {code: dispatcher.CodeSubstitutionError},
		`nope()`:                       {code: dispatcher.CodeUnknownVerb, decision: policy.Decision{Verdict: policy.Allow}},
		`probe.fail(how="not_found")`:  {code: dispatcher.CodeNotFound, decision: policy.Decision{Verdict: policy.Allow}},
		`probe.fail(how="internal")`:   {code: dispatcher.CodeInternal, decision: policy.Decision{Verdict: policy.Allow}},
		// The verb's own refusal, not that of the checks before it.
		`probe.fail(how="invalid_params")`: {code: dispatcher.CodeInvalidParams, decision: policy.Decision{Verdict: policy.Allow}},
	} {
		t.Run(ops, func(t *testing.T) {
			h := newHouse(t)
			h.decide, h.check = deny(tc.decision), func(context.Context, *policy.Input) error { return tc.check }
			entry := h.run(ops).Results[0]
			require.Equal(t, tc.code, entry.Code)
			text, err := json.Marshal(entry)
			require.NoError(t, err)
			if !tc.decided {
				require.Empty(t, entry.RefusedBy)
				require.NotContains(t, string(text), "decision_id")
				return
			}
			require.NotEmpty(t, entry.RefusedBy)
			require.Equal(t, h.records[0].DecisionID, entry.RefusedBy)
			require.Contains(t, string(text), `"decision_id":"`+entry.RefusedBy+`"`)
		})
	}
	t.Run("a success shows none", func(t *testing.T) {
		entry := newHouse(t).one(`probe.echo()`)
		require.NotEmpty(t, entry.DecisionID)
		text, err := json.Marshal(entry)
		require.NoError(t, err)
		require.NotContains(t, string(text), "decision_id")
	})
}
