package dispatcher_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/policy"
)

func batch(n int, op string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + "]"
}

func TestParallelRunsEightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		done := make(chan *dispatcher.Envelope)
		go func() { done <- h.run(batch(20, `probe.sleep()`)) }()
		synctest.Wait()
		h.mu.Lock()
		require.Equal(t, 8, h.busy)
		h.mu.Unlock()
		close(h.release)
		env := <-done
		require.Equal(t, 20, env.Summary.Succeeded)
		require.Equal(t, 8, h.hi)
	})
}

func TestParallelKeepsInputOrder(t *testing.T) {
	h := newHouse(t)
	env := h.run(`[probe.result(json="1"), probe.fail(how="panic"), nope(), probe.result(json="4")]`)
	require.Equal(t, "1", string(env.Results[0].Result))
	require.Equal(t, dispatcher.CodeInternal, env.Results[1].Code)
	require.Equal(t, dispatcher.CodeUnknownVerb, env.Results[2].Code)
	require.Equal(t, "4", string(env.Results[3].Result))
	require.Equal(t, dispatcher.Summary{Total: 4, Succeeded: 2, Failed: 2}, env.Summary)
}

func TestChainStopsAtTheFirstFailure(t *testing.T) {
	for name, bad := range map[string]string{
		"verb error": `probe.fail(how="not_found")`, "refused params": `probe.echo(x=1)`, "unknown verb": `nope()`, "namespace": `probe.echo(namespace="")`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			env := h.run(`probe.echo() | ` + bad + ` | probe.who() | probe.who()`)
			require.Equal(t, dispatcher.Summary{Total: 4, Succeeded: 1, Failed: 1, Aborted: 2}, env.Summary)
			require.Equal(t, dispatcher.Partial, env.Status)
			require.NotContains(t, h.taken(), "call probe.who")
			require.Len(t, h.records, 2, "aborted steps leave no record")
		})
	}
}

func TestDenialRevokedInTheMiddleOfAChain(t *testing.T) {
	h := newHouse(t)
	n := 0
	h.decide = func(context.Context, *policy.Input) policy.Decision {
		if n++; n > 1 {
			return policy.Decision{Reason: "revoked"}
		}
		return policy.Decision{Verdict: policy.Allow}
	}
	env := h.run(`probe.echo() | probe.echo() | probe.echo()`)
	require.Equal(t, dispatcher.Summary{Total: 3, Succeeded: 1, Failed: 1, Aborted: 1}, env.Summary)
}

func TestRequestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		began := time.Now()
		env := h.run(batch(10, `probe.sleep()`))
		require.Equal(t, 60*time.Second, time.Since(began), "the default deadline")
		for i, e := range env.Results {
			require.Equal(t, dispatcher.CodeDeadlineExceeded, e.Code, i)
		}
		require.Len(t, h.records, 10, "what never started is on record too")

		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began = time.Now()
		env = h.Run(ctx, caller, parse(t, `probe.sleep() | probe.echo()`))
		require.Equal(t, 90*time.Second, time.Since(began), "the caller's own deadline")
		require.Equal(t, dispatcher.CodeDeadlineExceeded, env.Results[0].Code)
		require.True(t, env.Results[1].Aborted)
	})
}

func TestCallerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *dispatcher.Envelope)
		go func() { done <- h.Run(ctx, caller, parse(t, `probe.echo() | probe.sleep() | probe.who()`)) }()
		other := make(chan *dispatcher.Envelope)
		go func() { other <- h.run(`probe.sleep(name="other")`) }()
		synctest.Wait()
		cancel()
		env := <-done
		require.True(t, env.Results[0].OK)
		require.Equal(t, dispatcher.CodeCancelled, env.Results[1].Code)
		require.True(t, env.Results[2].Aborted)
		require.Len(t, h.records, 2, "evidence is kept although nobody waits")
		require.Equal(t, "cancelled", h.records[1].ErrorCode)
		close(h.release)
		require.True(t, (<-other).Results[0].OK, "nobody else's operation ended")
	})
}

func TestCloseEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		done := make(chan *dispatcher.Envelope)
		go func() { done <- h.run(`probe.sleep()`) }()
		synctest.Wait()
		require.NoError(t, h.Close())
		ended := (<-done).Results[0]
		require.Equal(t, dispatcher.CodeCancelled, ended.Code)
		require.Contains(t, ended.Error, "shutting down")
		env := h.run(`[probe.echo(), probe.echo()]`)
		require.Equal(t, 2, env.Summary.Failed)
		require.Contains(t, env.Results[0].Error, "shutting down")
		h.RecordParseError(t.Context(), caller, parseError(t, `(`))
	})
}

func TestStuckLocatorsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		began := time.Now()
		for range 64 {
			require.True(t, h.one(`probe.get(id="stuck")`).OK)
		}
		require.Equal(t, 64*time.Second, time.Since(began))
		require.True(t, h.one(`probe.get(id="there")`).OK)
		require.Equal(t, 64*time.Second, time.Since(began), "past a bound nobody is asked any more")
		require.Equal(t, policy.Unknown, h.inputs[64].Resource.Exists)
		close(h.release)
		synctest.Wait()
		h.inputs = nil
		require.True(t, h.one(`probe.get(id="there")`).OK)
		require.Equal(t, policy.Present, h.inputs[0].Resource.Exists)
	})
}

func TestSlowLocatorDoesNotHoldTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		began := time.Now()
		require.True(t, h.one(`probe.get(id="slow")`).OK)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, policy.Unknown, h.inputs[0].Resource.Exists)
	})
}

// What has not begun when the caller cancels is neither judged nor run, and has its answer and its record.
func TestCancelledBeforeTheyBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *dispatcher.Envelope)
		go func() { done <- h.Run(ctx, caller, parse(t, batch(20, `probe.sleep(name="x")`))) }()
		synctest.Wait()
		count := func() (n map[string]int) {
			n = map[string]int{}
			for _, s := range h.taken() {
				n[s]++
			}
			return n
		}
		require.Equal(t, map[string]int{"check probe.sleep": 8, "gate probe.sleep": 8, "call probe.sleep": 8}, count())
		cancel()
		env := <-done
		require.Equal(t, map[string]int{"append 20": 1}, count(), "nothing else is asked or called")
		require.Len(t, h.records, 20)
		byIndex := map[int]policy.Record{}
		for _, rec := range h.records {
			byIndex[rec.Index] = rec
		}
		ran := 0
		for i, entry := range env.Results {
			require.Equal(t, dispatcher.CodeCancelled, entry.Code)
			rec := byIndex[i]
			require.Equal(t, "cancelled", rec.ErrorCode)
			if rec.Outcome == "error" {
				ran++
				require.Contains(t, entry.Error, "what it had done by then stands")
				continue
			}
			require.Contains(t, entry.Error, "before the operation began")
			require.Equal(t, []any{policy.KindRefusal, "refused", "denied", "not_run"}, []any{rec.Kind, rec.Decision, rec.Effect, rec.Outcome})
		}
		require.Equal(t, 8, ran)
	})
}

// A store or a hook that hangs holds the answer for the time it has, and no longer.
func TestTheAnswerLeavesInTime(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, limit := range []time.Duration{10 * time.Second, 3 * time.Second} { // the first is the default
		change := func(c *dispatcher.Config) {
			if limit != 10*time.Second {
				c.Limits.AuditTimeout = limit
			}
		}
		t.Run("store "+limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, change)
				h.append = func(ctx context.Context, _ []policy.Record) error { return hang(ctx) }
				began := time.Now()
				env := h.run(`[probe.echo(), probe.echo(namespace=1)]`)
				require.Equal(t, limit, time.Since(began))
				require.True(t, env.Results[0].OK)
				require.Equal(t, "audit_unavailable", env.Results[0].Advisories[0].Code)
				require.Empty(t, h.events)
				require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code)
				require.Equal(t, limit, time.Since(began), "and then nobody waits")

				time.Sleep(1100 * time.Millisecond)
				began = time.Now()
				first := make(chan *dispatcher.Envelope)
				go func() { first <- h.run(`probe.echo()`) }()
				synctest.Wait()
				time.Sleep(1100 * time.Millisecond)
				require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code, "one asks at a time")
				require.Equal(t, 1100*time.Millisecond, time.Since(began))
				require.Equal(t, dispatcher.CodeAuditUnavailable, (<-first).Results[0].Code)
				require.Equal(t, limit, time.Since(began))
				h.append = nil
			})
		})
		t.Run("hook "+limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, change)
				h.hook = func(ctx context.Context, _ dispatcher.Event) error { return hang(ctx) }
				began := time.Now()
				env := h.run(`[probe.echo(), probe.echo(), probe.echo()]`)
				require.Equal(t, limit, time.Since(began), "all hooks together")
				require.Equal(t, dispatcher.Success, env.Status)
				require.Empty(t, env.Results[0].Advisories)
				require.EqualValues(t, 3, h.Stats().HookErrors)
				require.NotEmpty(t, h.log.lines("hook failed", "timed_out=true"))
			})
		})
	}
}
