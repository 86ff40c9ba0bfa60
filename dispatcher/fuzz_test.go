package dispatcher_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/policy"
)

// Whatever is sent, no handler runs that the gate did not allow, every entry has its answer, and every
// consultation its record.
func FuzzRun(f *testing.F) {
	for _, ops := range []string{
		`probe.echo(id="a")`, `[probe.put(id="a"), probe.put(id="a")]`, `probe.result(json="{\"id\":[1]}") | probe.echo(value=$prev.id[0])`,
		`probe.call(verb="probe.put", params={"id":"x"})`, `[probe.hidden(), nope(), probe.echo(help=true), probe.echo(namespace=null)]`,
		`probe.call(verb="probe.call", params={"verb":"probe.put"})`, `probe.fail(how="panic") | probe.who()`, `{"tool":"probe.put","args":{"ids":["a","a"]}}`,
		`probe.result(json="[[1],2]") | probe.echo(value=[$prev,$prev]) | probe.echo(value=$prev.value[0][0][0])`,
	} {
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops string) {
		req, err := request.Parse(ops)
		if err != nil {
			return
		}
		for _, op := range req.Ops {
			if op.Tool == "probe.sleep" || op.Tool == "probe.big" || op.Tool == "probe.fan" || op.Tool == "probe.call" && len(ops) > 4096 {
				return // they take time or memory on purpose
			}
		}
		h := newHouse(t)
		allowed := 0
		h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
			if in.Verb == "probe.put" || in.Verb == "probe.sleep" || in.Verb == "probe.fan" || in.Verb == "probe.big" || in.Context.Index%3 == 2 {
				return policy.Decision{Reason: "no"}
			}
			h.mu.Lock()
			allowed++
			h.mu.Unlock()
			return policy.Decision{Verdict: policy.Allow}
		}
		env := h.Run(t.Context(), caller, req)
		require.Len(t, env.Results, len(req.Ops))
		raw, err := env.JSON()
		require.NoError(t, err)
		require.True(t, json.Valid(raw))
		calls := 0
		for _, s := range h.taken() {
			require.NotEqual(t, "call probe.put", s)
			if len(s) > 5 && s[:5] == "call " {
				calls++
			}
		}
		require.LessOrEqual(t, calls, allowed)
		decisions := 0
		for _, rec := range h.records {
			if rec.Kind == policy.KindDecision {
				decisions++
			}
		}
		require.Equal(t, len(h.inputs), decisions)
		for i, e := range env.Results {
			require.Equal(t, req.Ops[i].Tool, e.Tool)
			if !e.OK && !e.Aborted {
				require.NotEmpty(t, e.Code)
				require.NotEmpty(t, e.Error)
			}
		}
	})
}
