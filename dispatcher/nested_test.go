package dispatcher_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// nestedCall is the text of probe.call around op, depth times.
func nestedCall(depth int) string {
	params := map[string]any{}
	verb := "probe.who"
	for range depth {
		params = map[string]any{"verb": verb, "params": params}
		verb = "probe.call"
	}
	text, _ := json.Marshal(map[string]any{"tool": verb, "args": params})
	return string(text)
}

func TestNestedCallsCrossEveryLine(t *testing.T) {
	h := newHouse(t)
	who := caller
	who.Namespace, who.Visible = "team", []string{"shared"}
	env := h.runAs(who, nestedCall(2))
	require.True(t, env.Results[0].OK, env.Results[0].Error)
	require.JSONEq(t, `{"namespace":"team","read":["team","shared"],"explicit":false,"actor":"user:ann","can":false}`, string(env.Results[0].Result),
		"the original actor and token")
	require.Len(t, h.inputs, 3)
	require.Nil(t, h.inputs[0].Context.Via)
	require.Equal(t, []string{"probe.call"}, h.inputs[1].Context.Via)
	require.Equal(t, []string{"probe.call", "probe.call"}, h.inputs[2].Context.Via)
	require.Len(t, h.records, 3, "each consultation has its record")
	require.Len(t, h.events, 3)
}

func TestNestedDenial(t *testing.T) {
	h := newHouse(t)
	h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
		if in.Verb == "probe.who" {
			return policy.Decision{Reason: "not you", Code: "who.no"}
		}
		return policy.Decision{Verdict: policy.Allow}
	}
	entry := h.one(`probe.call(verb="probe.who")`)
	require.Equal(t, dispatcher.CodePermissionDenied, entry.Code)
	require.Contains(t, entry.Error, "not you")
	require.Equal(t, "who.no", entry.PolicyCode)
	require.Equal(t, h.records[0].DecisionID, entry.RefusedBy, "the answer leads to the decision that refused, not to the outer one")
	require.Equal(t, "probe.who", h.records[0].Verb)
	require.NotContains(t, h.taken(), "call probe.who")
}

func TestNestedRefusals(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, dispatcher.CodeInvalidNamespace, h.one(`probe.call(verb="probe.who", params={"namespace":null})`).Code)
	require.Equal(t, dispatcher.CodeUnknownVerb, h.one(`probe.call(verb="nope")`).Code)
	require.True(t, h.one(`probe.call(verb="probe.who", params={"help":true})`).OK)
}

func TestNestedNamespaceOnlyNarrows(t *testing.T) {
	h := newHouse(t)
	who := caller
	who.Namespace, who.Visible = "team", []string{"shared"}
	narrow := h.runAs(who, `probe.call(verb="probe.who", params={"namespace":"shared"})`)
	require.JSONEq(t, `{"namespace":"shared","read":["shared"],"explicit":true,"actor":"user:ann","can":false}`, string(narrow.Results[0].Result))
	for _, ops := range []string{
		`probe.call(verb="probe.who", params={"namespace":"elsewhere"})`,
		`probe.call(verb="probe.who", params={"namespace":"shared"}, namespace="team")`,
	} {
		require.Equal(t, dispatcher.CodeInvalidNamespace, h.runAs(who, ops).Results[0].Code, "the token of the call above leads no further: %s", ops)
	}
}

// A goroutine that outlives its handler must not reach past the request's records and deadline.
func TestInvokeEndsWithItsCall(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.one(`probe.leave()`).OK)
	_, err := h.left(context.Background(), "probe.who", nil)
	var refused *packs.InvokeError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "not_callable", refused.Code)
	require.NotContains(t, h.taken(), "call probe.who")
}

func TestInvokeKeepsTheRequestsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		began := time.Now()
		entry := h.one(`probe.call(verb="probe.sleep", params={"name":"background"})`)
		require.Equal(t, dispatcher.CodeDeadlineExceeded, entry.Code)
		require.Equal(t, 60*time.Second, time.Since(began))
	})
}

func TestNestedDepth(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.one(nestedCall(8)).OK)
	entry := h.one(nestedCall(9))
	require.Equal(t, dispatcher.CodeNotCallable, entry.Code)
	require.Contains(t, entry.Error, "8 deep")
}

func TestNestedBudget(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.one(`probe.fan(times=1000)`).OK)
	entry := h.one(`probe.fan(times=1001)`)
	require.Equal(t, dispatcher.CodeNotCallable, entry.Code)
	require.Contains(t, entry.Error, "1000 times")

	env := h.run(`[probe.fan(times=600), probe.fan(times=600)]`)
	require.NotZero(t, env.Summary.Failed, "the bound is the request's, not the operation's")
}
