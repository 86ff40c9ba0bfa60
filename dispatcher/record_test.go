package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

func parseError(t *testing.T, text string) *request.Error {
	t.Helper()
	_, err := request.Parse(text)
	var parse *request.Error
	require.ErrorAs(t, err, &parse)
	return parse
}

func TestDecisionRecord(t *testing.T) {
	h := newHouse(t)
	h.decide = deny(policy.Decision{Verdict: policy.Allow, Reason: "because", Code: "c.1", Gate: "opa", Revision: "r7", Obligations: []policy.Obligation{policy.AuditTag{Tag: "t"}}})
	env := h.run(`[probe.result(json="1"), probe.echo(id="a", namespace="x", secret="s3cret")]`)
	require.Len(t, h.records, 2)
	rec := h.records[0]
	if rec.Index != 1 {
		rec = h.records[1]
	}
	require.NotEmpty(t, rec.ID)
	require.WithinDuration(t, time.Now(), rec.Time, time.Minute)
	require.Equal(t, env.RequestID, rec.RequestID)
	require.Equal(t, env.Results[1].DecisionID, rec.DecisionID)
	params := string(rec.Params)
	require.JSONEq(t, `{"id":"a","n":7,"namespace":"x","secret":{"$sealed":"test:params.secret:string"}}`, params)
	rec.ID, rec.Time, rec.RequestID, rec.DecisionID, rec.Duration, rec.Params = "", time.Time{}, "", "", 0, nil
	require.Equal(t, policy.Record{
		Kind: policy.KindDecision, Index: 1, Count: 2, Source: "mcp", SessionID: "s1", Actor: "user:ann", Namespace: "x", Verb: "probe.echo", Pack: "probe",
		Decision: "allow", Effect: "allowed", Reason: "because", Code: "c.1", Obligations: []string{"audit:t"}, Outcome: "success", Gate: "opa", Revision: "r7",
	}, rec)
	require.Equal(t, h.events[0].Record.RequestID, env.RequestID)
}

func TestRecordShowsTheParamsThatWereJudged(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.one(`probe.fail(how="mutate")`).OK)
	require.JSONEq(t, `{"how":"mutate"}`, string(h.records[0].Params))
}

func TestRefusalRecords(t *testing.T) {
	for ops, want := range map[string]struct {
		code   dispatcher.Code
		reason string
	}{
		`probe.echo(namespace=1)`:                          {dispatcher.CodeInvalidNamespace, "namespace must be a string, not a number"},
		`probe.echo(zz="s3cret")`:                          {dispatcher.CodeInvalidParams, `unknown param "zz"`},
		`probe.echo(id="long")`:                            {dispatcher.CodeInvalidParams, `check "short": too long`},
		`probe.echo(help=1)`:                               {dispatcher.CodeInvalidParams, "help must be the literal true"},
		`probe.hidden()`:                                   {dispatcher.CodeNotCallable, "it is internal"},
		`probe.put(ids=["a","a"])`:                         {dispatcher.CodeWriteConflict, `write key record:"a"`},
		`probe.echo(value=$prev.x, secret="s3cret") | a()`: {dispatcher.CodeSubstitutionError, "no_preceding_op in argument value"},
	} {
		code := want.code
		h := newHouse(t)
		h.check = func(_ context.Context, in *policy.Input) error {
			if in.Params["id"] == "long" {
				return &packs.CheckError{Check: "short", Message: "too long"}
			}
			return nil
		}
		h.run(ops)
		require.Contains(t, h.records[0].Reason, want.reason, "the record says why")
		require.Len(t, h.records, 1)
		rec := h.records[0]
		require.Equal(t, []any{policy.KindRefusal, "refused", "denied", "not_run", string(code)},
			[]any{rec.Kind, rec.Decision, rec.Effect, rec.Outcome, rec.ErrorCode}, ops)
		require.NotContains(t, string(rec.Params), "s3cret", "a misspelt secret is one")
	}
}

func TestParamsAreNotRecordedWhenTurnedOff(t *testing.T) {
	h := newHouse(t, func(c *dispatcher.Config) { c.RecordParams, c.Sealer = false, nil })
	h.run(`probe.echo(id="a")`)
	require.Nil(t, h.records[0].Params)
}

func TestHookErrorsStayInside(t *testing.T) {
	h := newHouse(t)
	h.hookErr = errors.New("hook broke")
	require.True(t, h.one(`probe.echo()`).OK)
	require.EqualValues(t, 1, h.Stats().HookErrors)
	require.Equal(t, []string{"check probe.echo", "gate probe.echo", "call probe.echo", "append 1", "hook probe.echo"}, h.taken())
}

func TestAuditStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.setStoreErr(errors.New("disk full"))
		h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
			if in.Verb == "probe.who" {
				return policy.Decision{Reason: "no"}
			}
			return policy.Decision{Verdict: policy.Allow}
		}
		first := h.run(`[probe.echo(), probe.who(), probe.echo(help=true)]`)
		require.True(t, first.Results[0].OK, "it ran before anybody knew")
		require.Equal(t, "audit_unavailable", first.Results[0].Advisories[0].Code)
		require.Contains(t, first.Results[0].Advisories[0].Message, "ran")
		require.Contains(t, first.Results[1].Advisories[0].Message, "did not run")
		require.Empty(t, first.Results[2].Advisories)
		require.Empty(t, h.events, "hooks hear of nothing that is not on record")
		h.taken()

		env := h.run(`[probe.echo(), nope(), probe.echo(help=true), probe.echo(namespace=null)]`)
		require.Equal(t, dispatcher.CodeAuditUnavailable, env.Results[0].Code)
		require.NotContains(t, env.Results[0].Error, "disk full")
		require.Equal(t, dispatcher.CodeAuditUnavailable, env.Results[1].Code)
		require.True(t, env.Results[2].OK)
		require.Equal(t, dispatcher.CodeInvalidNamespace, env.Results[3].Code)
		require.Empty(t, h.taken(), "no check, no gate, no handler, no second try within the second")

		time.Sleep(1100 * time.Millisecond)
		env = h.run(`[probe.echo(), probe.echo()]`)
		require.Equal(t, 2, env.Summary.Failed)
		require.Equal(t, []string{"append 3"}, h.taken(), "one probe, made with the records that wait")

		h.setStoreErr(nil)
		require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code, "not before the second is over")
		time.Sleep(1100 * time.Millisecond)
		require.True(t, h.one(`probe.echo()`).OK)
		require.Equal(t, []string{"append 3", "check probe.echo", "gate probe.echo", "call probe.echo", "append 1", "hook probe.echo"}, h.taken())
		require.Equal(t, first.RequestID, h.records[0].RequestID, "what waited is on record, first")
		require.Len(t, h.records, 4)
		require.Zero(t, h.Stats().RecordsLost)
	})
}

// A small record that fits on a full disk says nothing of the next one: the store is up when it takes
// what it refused.
func TestTheProbeIsWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.fits = 1 // record at once
		env := h.run(`[probe.echo(), probe.echo()]`)
		require.Equal(t, 2, env.Summary.Succeeded)
		for range 3 {
			time.Sleep(1100 * time.Millisecond)
			require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code)
		}
		require.Empty(t, h.records)
		h.fits = 0
		time.Sleep(1100 * time.Millisecond)
		require.True(t, h.one(`probe.echo()`).OK)
		require.Len(t, h.records, 3)
	})
}

func TestWaitingRecordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.setStoreErr(errors.New("full"))
		h.run(`probe.echo()`)
		big := strings.Repeat("x", 60<<10)
		for i := 0; h.Stats().RecordsLost == 0 && i < 100_000; i++ {
			h.run(`probe.echo(namespace=1, id="` + big + `")`) // refused before the store is asked about it
		}
		require.NotZero(t, h.Stats().RecordsLost)
		h.setStoreErr(nil)
		time.Sleep(1100 * time.Millisecond)
		require.True(t, h.one(`probe.echo()`).OK)
		withheld, weight := 0, 0
		for _, rec := range h.records {
			weight += len(rec.Params)
			if strings.Contains(string(rec.Params), "$withheld") {
				withheld++
			}
		}
		require.NotZero(t, withheld, "params go before records do")
		require.Less(t, weight, 17<<20)
		require.Equal(t, "success", h.records[0].Outcome)
	})
}

func TestWhatWaitsIsStoredAtTheEnd(t *testing.T) {
	h := newHouse(t)
	h.setStoreErr(errors.New("full"))
	h.run(`probe.echo()`)
	h.setStoreErr(nil)
	require.NoError(t, h.Close())
	require.Len(t, h.records, 1)

	h = newHouse(t)
	h.setStoreErr(errors.New("full"))
	h.run(`probe.echo()`)
	require.NoError(t, h.Close())
	require.EqualValues(t, 1, h.Stats().RecordsLost)
}

func TestRecord(t *testing.T) {
	h := newHouse(t)
	require.True(t, h.Record(t.Context(), policy.Record{ID: "a", Kind: policy.KindGateActivation}))
	h.setStoreErr(errors.New("full"))
	require.False(t, h.Record(t.Context(), policy.Record{ID: "b", Kind: policy.KindGateActivation}))
	require.Equal(t, dispatcher.CodeAuditUnavailable, h.one(`probe.echo()`).Code, "its failure counts like any other")
}

// A long chain of large operations does not pile up its records until it ends.
func TestLargeRecordsAreStoredAsTheyCome(t *testing.T) {
	h := newHouse(t)
	step := `probe.echo(id="` + strings.Repeat("x", 60<<10) + `")`
	env := h.run(step + strings.Repeat(" | probe.echo(id=$prev.id)", 40))
	require.Equal(t, dispatcher.Success, env.Status)
	appends := 0
	for _, s := range h.taken() {
		if strings.HasPrefix(s, "append ") {
			appends++
		}
	}
	require.Equal(t, 3, appends, "41 records of 61 KiB, about 1 MiB at a time")
	require.Len(t, h.records, 41)
}

func TestRecordsWithoutParamsHoldNoValues(t *testing.T) {
	for ops, reason := range map[string]string{
		`probe.echo(n="CANARY")`:                           "param n",
		`probe.echo(canary="CANARY")`:                      "params it does not have",
		`[probe.put(id="CANARY"), probe.put(id="CANARY")]`: "write key record",
	} {
		h := newHouse(t, func(c *dispatcher.Config) { c.RecordParams = false })
		h.run(ops)
		require.Equal(t, reason, h.records[0].Reason)
		text, err := json.Marshal(h.records)
		require.NoError(t, err)
		require.NotContains(t, string(text), "CANARY")
	}
}

func TestParseErrorsAreRecordedWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		err := parseError(t, `echo(`)
		for range 250 {
			h.RecordParseError(t.Context(), caller, err)
		}
		h.RecordParseError(t.Context(), operator, err)
		synctest.Wait()
		h.mu.Lock()
		require.Len(t, h.records, 101)
		require.Equal(t, "invalid_params", h.records[0].ErrorCode)
		require.Equal(t, "parse error: UnclosedCall", h.records[0].Reason)
		h.mu.Unlock()
		require.EqualValues(t, 150, h.Stats().ParseErrorsDropped)
		time.Sleep(time.Second)
		h.RecordParseError(t.Context(), caller, err)
		synctest.Wait()
		require.Len(t, h.records, 102)
	})
}

func TestNoStoreKeepsNoRecords(t *testing.T) {
	h := newHouse(t, func(c *dispatcher.Config) { c.Audit, c.Sealer, c.RecordParams = nil, nil, true })
	require.True(t, h.one(`probe.echo()`).OK)
	h.RecordParseError(t.Context(), caller, parseError(t, `(`))
}

func TestEnvelopeShapes(t *testing.T) {
	h := newHouse(t)
	h.decide = func() func(_ context.Context, in *policy.Input) policy.Decision {
		return func(_ context.Context, in *policy.Input) policy.Decision {
			if in.Verb == "probe.who" {
				return policy.Decision{Reason: "<no>", Code: "x.y"}
			}
			return policy.Decision{Verdict: policy.Allow}
		}
	}()
	env := h.run(`probe.result(json="{\"a\":\"<b>\"}") | probe.who() | probe.echo()`)
	raw, err := env.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"results":[{"ok":true,"tool":"probe.result","result":{"a":"<b>"}},`+
		`{"ok":false,"tool":"probe.who","error":"permission denied for verb \"probe.who\": <no>","code":"permission_denied","policy_code":"x.y","decision_id":"`+env.Results[1].DecisionID+`"},`+
		`{"ok":false,"tool":"probe.echo","aborted":true}],"summary":{"total":3,"succeeded":1,"failed":1,"aborted":1},"status":"partial","request_id":"`+env.RequestID+`"}`, string(raw))
	require.True(t, json.Valid(raw))

	raw, err = h.run(`probe.result(json="null")`).JSON()
	require.NoError(t, err)
	require.Contains(t, string(raw), `"result":null`)
	require.Contains(t, string(raw), `"status":"success"`)
}
