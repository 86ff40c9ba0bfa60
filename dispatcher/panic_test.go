package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// canary is what must not come out of a panic or an error.
const canary = "C4N4RY"

// A panic of a part of ours refuses the one operation it was about, whoever's siblings it had.
func TestPanicsAreRefusals(t *testing.T) {
	for name, arm := range map[string]func(h *house){
		"gate": func(h *house) {
			h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
				if in.Verb == "probe.who" {
					panic(canary)
				}
				return policy.Decision{Verdict: policy.Allow}
			}
		},
		"check": func(h *house) {
			h.check = func(_ context.Context, in *policy.Input) error {
				if in.Verb == "probe.who" {
					panic(errors.New(canary))
				}
				return nil
			}
		},
	} {
		internal := func(t *testing.T, h *house, env *dispatcher.Envelope, i int) {
			entry := env.Results[i]
			require.Equal(t, dispatcher.CodeInternal, entry.Code)
			require.NotContains(t, entry.Error, canary)
			require.NotContains(t, entry.Error, "panic")
			require.NotContains(t, h.taken(), "call probe.who")
			found := 0
			for _, rec := range h.records {
				if rec.RequestID != env.RequestID || rec.Index != i {
					continue
				}
				found++
				require.Equal(t, []any{policy.KindRefusal, "probe.who", "refused", "denied", "not_run", "internal", entry.DecisionID},
					[]any{rec.Kind, rec.Verb, rec.Decision, rec.Effect, rec.Outcome, rec.ErrorCode, rec.DecisionID})
				require.NotContains(t, fmt.Sprintf("%+v", rec), canary)
			}
			require.Equal(t, 1, found, "it is on record")
			require.Len(t, h.log.lines("level=ERROR", "msg=panic", "probe.who", env.RequestID), 1, "and in the log")
			require.Empty(t, h.log.lines(canary))
		}
		t.Run("Err "+name+" in a batch", func(t *testing.T) {
			h := newHouse(t)
			arm(h)
			env := h.run(`[probe.echo(), probe.who(), probe.echo()]`)
			internal(t, h, env, 1)
			require.Equal(t, 2, env.Summary.Succeeded, "siblings finish")
			require.Len(t, h.records, 3)
		})
		t.Run("Err "+name+" in a chain", func(t *testing.T) {
			h := newHouse(t)
			arm(h)
			env := h.run(`probe.echo() | probe.who() | probe.echo()`)
			internal(t, h, env, 1)
			require.True(t, env.Results[0].OK)
			require.True(t, env.Results[2].Aborted)
			require.Len(t, h.records, 2)
		})
		t.Run("Err "+name+" of a nested call", func(t *testing.T) {
			h := newHouse(t)
			arm(h)
			entry := h.one(`probe.call(verb="probe.who")`)
			require.Equal(t, dispatcher.CodeInternal, entry.Code)
			require.NotContains(t, entry.Error, canary)
			require.Len(t, h.records, 2)
			require.Empty(t, h.log.lines(canary))
		})
	}
	t.Run("Err resolving the arguments", func(t *testing.T) {
		h := newHouse(t)
		entry := h.RunResolving(t.Context(), caller, "probe.echo", func() (map[string]any, error) { panic(canary) })
		require.Equal(t, dispatcher.CodeInternal, entry.Code)
		require.NotContains(t, entry.Error, canary)
		require.Equal(t, []string{"append 1"}, h.taken())
		require.Equal(t, "internal", h.records[0].ErrorCode)
		require.Empty(t, h.log.lines(canary))
	})
}

func TestGatePanicsRefuseSubscriptions(t *testing.T) {
	h := newHouse(t)
	h.decide = func(context.Context, *policy.Input) policy.Decision { panic(canary) }
	_, err := h.MaySubscribe(t.Context(), caller, "probe.done", nil)
	require.ErrorContains(t, err, "internal error")
	require.Equal(t, []any{policy.KindRefusal, "internal", "denied"}, []any{h.records[0].Kind, h.records[0].ErrorCode, h.records[0].Effect})
	require.Empty(t, h.log.lines(canary))
}

// A pack that panics when it is asked where a record is cannot tell; the policy decides without.
func TestLocatorPanicsStayInside(t *testing.T) {
	for name, stop := range map[string]func(){"panic": func() { panic(canary) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.locate = func(context.Context, packs.ResourceRef) (packs.Location, error) { stop(); return packs.Location{}, nil }
			h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
				if in.Resource != nil && in.Resource.Exists == policy.Unknown {
					return policy.Decision{Reason: "nobody knows where it is"}
				}
				return policy.Decision{Verdict: policy.Allow}
			}
			env := h.run(`[probe.get(id="a"), probe.echo()]`)
			require.Equal(t, dispatcher.CodePermissionDenied, env.Results[0].Code)
			require.True(t, env.Results[1].OK)
			require.Len(t, h.records, 2)
			require.Len(t, h.log.lines("msg=panic", "probe.get"), 1)
			require.Empty(t, h.log.lines(canary))
		})
	}
}

func TestHookPanicsStayInside(t *testing.T) {
	for name, stop := range map[string]func(){"panic": func() { panic(canary) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.hook = func(_ context.Context, e dispatcher.Event) error {
				if e.Record.Verb == "probe.echo" {
					stop()
				}
				return nil
			}
			env := h.run(`probe.echo() | probe.who()`)
			require.Equal(t, dispatcher.Success, env.Status)
			require.Empty(t, env.Results[0].Advisories)
			require.EqualValues(t, 1, h.Stats().HookErrors)
			require.Contains(t, h.taken(), "hook probe.who", "the next event is still told")
			require.Empty(t, h.log.lines(canary))
		})
	}
}

// An operation has its record even when its params cannot be sealed; the record then holds none.
func TestSealerPanicsStayInside(t *testing.T) {
	h := newHouse(t)
	h.seal = func(string, any) any { panic(canary) }
	env := h.run(`[probe.echo(secret="s3cret"), probe.echo(namespace=1, secret="s3cret"), probe.who()]`)
	require.True(t, env.Results[0].OK)
	require.Equal(t, dispatcher.CodeInvalidNamespace, env.Results[1].Code)
	require.Len(t, h.records, 3)
	for _, rec := range h.records {
		require.NotContains(t, string(rec.Params), "s3cret")
		if rec.Verb == "probe.echo" {
			require.JSONEq(t, `{"$withheld":"not sealable"}`, string(rec.Params))
		}
	}
	require.Empty(t, h.log.lines(canary))
}

// A store that panics is one that is down.
func TestStorePanicsStayInside(t *testing.T) {
	for name, stop := range map[string]func(){"panic": func() { panic(canary) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.append = func(context.Context, []policy.Record) error { stop(); return nil }
			entry := h.one(`probe.echo()`)
			require.True(t, entry.OK)
			require.Equal(t, "audit_unavailable", entry.Advisories[0].Code)
			require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code)
			h.append = nil
			require.NoError(t, h.Close())
			require.Len(t, h.records, 1)
			require.Empty(t, h.log.lines(canary))
		})
	}
}
