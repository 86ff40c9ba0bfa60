package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

func deny(d policy.Decision) func(context.Context, *policy.Input) policy.Decision {
	return func(context.Context, *policy.Input) policy.Decision { return d }
}

// The order of dispatch.md 1 is a security property: each case says what was asked and called, and
// nothing else was.
func TestPipelineOrder(t *testing.T) {
	type want struct {
		code  dispatcher.Code
		text  string
		steps []string
	}
	denied := policy.Decision{Reason: "not today", Code: "calendar.closed"}
	for _, tc := range []struct {
		name  string
		ops   string
		setup func(h *house)
		want  want
	}{
		{"OK", `probe.echo(id="a")`, nil, want{steps: []string{"check probe.echo", "gate probe.echo", "call probe.echo", "append 1", "hook probe.echo"}}},
		{"OK with a resource", `probe.get(id="there")`, nil,
			want{steps: []string{"check probe.get", "locate id=there", "gate probe.get", "call probe.get", "append 1", "hook probe.get"}}},
		{"OK help asks and records nothing", `probe.echo(help=true)`, nil, want{steps: nil}},
		{"OK help wins over a bad namespace", `probe.echo(help=true, namespace=5)`, nil, want{steps: nil}},
		{"OK help of an internal verb", `probe.hidden(help=true)`, nil, want{steps: nil}},
		{"Err help of an unknown verb", `nope(help=true)`, nil, want{code: dispatcher.CodeUnknownVerb, text: `invalid input: unknown verb "nope"; available: probe.big, probe.call`}},
		{"Err help=false", `probe.echo(help=false)`, nil, want{code: dispatcher.CodeInvalidParams, text: "help must be the literal true", steps: []string{"append 1"}}},
		{"Err help=null", `probe.echo(help=null)`, nil, want{code: dispatcher.CodeInvalidParams, steps: []string{"append 1"}}},
		{"Err help as text", `probe.echo(help="true")`, nil, want{code: dispatcher.CodeInvalidParams, steps: []string{"append 1"}}},
		{"Err internal verb", `probe.hidden(id="a")`, nil, want{code: dispatcher.CodeNotCallable, text: "is internal", steps: []string{"append 1"}}},
		{"Err internal verb before its namespace", `probe.hidden(namespace=null)`, nil, want{code: dispatcher.CodeNotCallable, steps: []string{"append 1"}}},
		{"Err namespace before checks and gate", `probe.echo(namespace=null, wrong=1)`, nil,
			want{code: dispatcher.CodeInvalidNamespace, text: "not null", steps: []string{"append 1"}}},
		{"Err namespace of an unknown verb", `nope(namespace=7)`, nil, want{code: dispatcher.CodeInvalidNamespace, steps: []string{"append 1"}}},
		{"Err namespace stays closed when the gate is out", `probe.echo(namespace=[])`,
			func(h *house) { h.decide = deny(policy.Decision{Verdict: policy.Unavailable}) },
			want{code: dispatcher.CodeInvalidNamespace, steps: []string{"append 1"}}},
		{"Err params before checks and gate", `probe.echo(idd="a")`, nil,
			want{code: dispatcher.CodeInvalidParams, text: "idd", steps: []string{"append 1"}}},
		{"Err check before gate", `probe.echo(id="a")`,
			func(h *house) {
				h.check = func(context.Context, *policy.Input) error {
					return &packs.CheckError{Check: "short", Message: "too long"}
				}
			},
			want{code: dispatcher.CodeInvalidParams, text: `invalid input: check "short": too long`, steps: []string{"check probe.echo", "append 1"}}},
		{"Err a check that breaks refuses", `probe.echo(id="a")`,
			func(h *house) {
				h.check = func(context.Context, *policy.Input) error { return errors.New("engine text") }
			},
			want{code: dispatcher.CodeInvalidParams, text: "could not be evaluated", steps: []string{"check probe.echo", "append 1"}}},
		{"Err denied", `probe.echo(id="a")`, func(h *house) { h.decide = deny(denied) },
			want{code: dispatcher.CodePermissionDenied, text: `permission denied for verb "probe.echo": not today`,
				steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err the zero decision denies", `probe.echo(id="a")`, func(h *house) { h.decide = deny(policy.Decision{}) },
			want{code: dispatcher.CodePermissionDenied, text: "denied by policy", steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err a verdict nobody knows denies", `probe.echo(id="a")`, func(h *house) { h.decide = deny(policy.Decision{Verdict: 99}) },
			want{code: dispatcher.CodePolicyError, steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err policy error", `probe.echo(id="a")`, func(h *house) { h.decide = deny(policy.Decision{PolicyError: true, Reason: "undefined"}) },
			want{code: dispatcher.CodePolicyError, text: "undefined", steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err the gate has the first word on unknown verbs", `nope(x=1)`, func(h *house) { h.decide = deny(denied) },
			want{code: dispatcher.CodePermissionDenied, steps: []string{"gate nope", "append 1"}}},
		{"Err unknown verb that the gate allows", `nope(x=1)`, nil,
			want{code: dispatcher.CodeUnknownVerb, text: `invalid input: unknown verb "nope"; available: `, steps: []string{"gate nope", "append 1"}}},
		{"Err gate out, closed", `probe.echo(id="a")`, func(h *house) {
			h.decide = deny(policy.Decision{Verdict: policy.Unavailable, Cause: errors.New("engine text")})
		},
			want{code: dispatcher.CodeGateUnavailable, steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err question withdrawn", `probe.echo(id="a")`,
			func(h *house) { h.decide = deny(policy.Decision{Verdict: policy.Stopped, Cause: context.Canceled}) },
			want{code: dispatcher.CodeCancelled, steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
		{"Err question out of time", `probe.echo(id="a")`,
			func(h *house) {
				h.decide = deny(policy.Decision{Verdict: policy.Stopped, Cause: context.DeadlineExceeded})
			},
			want{code: dispatcher.CodeDeadlineExceeded, steps: []string{"check probe.echo", "gate probe.echo", "append 1"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			if tc.setup != nil {
				tc.setup(h)
			}
			entry := h.one(tc.ops)
			require.Equal(t, tc.want.code, entry.Code)
			require.Equal(t, tc.want.code == "", entry.OK)
			if tc.want.code != "" {
				require.Contains(t, entry.Error, tc.want.text)
				require.NotContains(t, entry.Error, "engine text")
				require.Empty(t, entry.Result)
			}
			require.Equal(t, tc.want.steps, h.taken())
		})
	}
}

func TestCheckCutShort(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.check = func(ctx context.Context, _ *policy.Input) error { cancel(); return ctx.Err() }
	env := h.Run(ctx, caller, parse(t, `probe.echo(id="a")`))
	require.Equal(t, dispatcher.CodeCancelled, env.Results[0].Code)
	require.Equal(t, []string{"check probe.echo", "append 1"}, h.taken())

	h.check = func(ctx context.Context, _ *policy.Input) error {
		return &packs.CheckError{Check: "loop", Message: "could not be evaluated", Err: ctx.Err()}
	}
	h.decide = nil
	ctx, cancel = context.WithCancel(t.Context())
	check := h.check
	h.check = func(ctx context.Context, in *policy.Input) error { cancel(); return check(ctx, in) }
	env = h.Run(ctx, caller, parse(t, `probe.echo(id="a")`))
	require.Equal(t, dispatcher.CodeCancelled, env.Results[0].Code, "a check that was cut short is no failed check")
}

func TestFailOpenLeavesItsMark(t *testing.T) {
	h := newHouse(t, func(c *dispatcher.Config) { c.FailOpen = true })
	h.decide = deny(policy.Decision{Verdict: policy.Unavailable, Gate: "opa", Cause: errors.New("store gone")})
	entry := h.one(`probe.echo(id="a")`)
	require.True(t, entry.OK)
	require.Len(t, entry.Advisories, 1)
	require.Equal(t, "gate_unavailable", entry.Advisories[0].Code)
	require.Equal(t, "gate_unavailable", h.records[0].Decision)
	require.Equal(t, "allowed", h.records[0].Effect)
	require.EqualValues(t, 1, h.Stats().GateUnavailableAllowed)

	// It opens for what the gate could not judge, never for what it denied, and the unknown stays unknown.
	h.decide = deny(policy.Decision{PolicyError: true})
	require.Equal(t, dispatcher.CodePolicyError, h.one(`probe.echo(id="a")`).Code)
	h.decide = deny(policy.Decision{Verdict: policy.Unavailable})
	require.Equal(t, dispatcher.CodeUnknownVerb, h.one(`nope()`).Code)
}

func TestObligations(t *testing.T) {
	allow := func(o ...policy.Obligation) policy.Decision {
		return policy.Decision{Verdict: policy.Allow, Obligations: o}
	}
	t.Run("OK audit tags are recorded", func(t *testing.T) {
		h := newHouse(t)
		h.decide = deny(allow(policy.AuditTag{Tag: "pii"}, policy.AuditTag{Tag: "eu"}))
		require.True(t, h.one(`probe.echo()`).OK)
		require.Equal(t, []string{"audit:pii", "audit:eu"}, h.records[0].Obligations)
	})
	t.Run("OK audit tags of a denial too", func(t *testing.T) {
		h := newHouse(t)
		h.decide = deny(policy.Decision{Reason: "no", Obligations: []policy.Obligation{policy.AuditTag{Tag: "alarm"}}})
		require.False(t, h.one(`probe.echo()`).OK)
		require.Equal(t, []string{"audit:alarm"}, h.records[0].Obligations)
	})
	for name, o := range map[string]policy.Obligation{
		"rate_limit": policy.RateLimit{Max: 1}, "redact": policy.Redact{Paths: []string{"a"}}, "custom": policy.Custom{Name: "x"}, "unknown": nil,
	} {
		t.Run("Err nobody enforces "+name, func(t *testing.T) {
			h := newHouse(t)
			h.decide = deny(policy.Decision{Verdict: policy.Allow, Reason: "ann is an admin", Obligations: []policy.Obligation{policy.AuditTag{Tag: "t"}, o}})
			entry := h.one(`probe.echo()`)
			require.Equal(t, dispatcher.CodePolicyError, entry.Code)
			require.Contains(t, entry.Error, name)
			require.NotContains(t, h.taken(), "call probe.echo")
			require.Equal(t, "denied", h.records[0].Effect)
			require.Equal(t, "deny", h.records[0].Decision)
			require.Contains(t, h.records[0].Reason, name, "not the reason for which the policy allowed it")
		})
	}
}

func TestInputDocument(t *testing.T) {
	h := newHouse(t)
	h.runAs(dispatcher.Caller{Source: dispatcher.MCP, Transport: "http", SessionID: "s9", Actor: caller.Actor, Namespace: "team", Visible: []string{"shared", "team"}},
		`[probe.get(id="there"), nope(a=12345678901234567890123), probe.echo(namespace="x:y", n=3)]`)
	require.Len(t, h.inputs, 3)
	byVerb := map[string]policy.Input{}
	for _, in := range h.inputs {
		byVerb[in.Verb] = in
	}

	get := byVerb["probe.get"]
	require.Equal(t, "probe", get.Pack)
	require.Equal(t, "directive", get.Category)
	require.Equal(t, policy.Token{Namespace: "team", Read: []string{"team", "shared"}, Actor: caller.Actor}, get.Token)
	require.Equal(t, &policy.Resource{Param: "id", ID: "there-in-full", Exists: policy.Present, Namespace: "elsewhere", Kind: "entity"}, get.Resource)
	c := get.Context
	require.Equal(t, []any{"mcp", "http", "s9", "parallel", 0, 3, false, ""}, []any{c.Source, c.Transport, c.SessionID, c.Mode, c.Index, c.Count, c.Plan, c.SaveTo})
	require.NotEmpty(t, c.RequestID)
	require.NotEmpty(t, c.DecisionID)
	require.Equal(t, "UTC", c.Time.Location().String())

	unknown := byVerb["nope"]
	require.Empty(t, unknown.Pack)
	require.Nil(t, unknown.Resource)
	require.EqualValues(t, "12345678901234567890123", unknown.Params["a"])
	require.NotEqual(t, c.DecisionID, unknown.Context.DecisionID)
	require.Equal(t, c.RequestID, unknown.Context.RequestID)

	echo := byVerb["probe.echo"]
	require.Equal(t, policy.Token{Namespace: "x:y", Explicit: true, Read: []string{"x:y"}, Actor: caller.Actor}, echo.Token)
	require.Equal(t, "x:y", echo.Params["namespace"], "the policy sees the namespace that was given")

	h.inputs = nil
	h.run(`probe.echo()`)
	require.EqualValues(t, "7", h.inputs[0].Params["n"], "defaults are filled in before the gate")
}

func TestResourceThatCannotBeLocated(t *testing.T) {
	h := newHouse(t)
	for id, want := range map[string]policy.Existence{"gone": policy.Absent, "boom": policy.Unknown} {
		h.inputs = nil
		h.run(`probe.get(id="` + id + `")`)
		require.Equal(t, &policy.Resource{Param: "id", ID: id, Exists: want}, h.inputs[0].Resource)
	}
	h.inputs = nil
	h.run(`probe.get()`)
	require.Nil(t, h.inputs[0].Resource)
}

func TestTheRecordJudgedIsTheRecordActedOn(t *testing.T) {
	h := newHouse(t)
	entry := h.one(`probe.get(id="there")`)
	require.JSONEq(t, `{"id":"there-in-full"}`, string(entry.Result), "the handler gets the full id that the gate saw")
	require.Equal(t, "there", h.inputs[0].Params["id"], "the policy sees what the caller wrote, and the full id in resource")
	require.JSONEq(t, `{"id":"there"}`, string(h.records[0].Params))
	require.JSONEq(t, `{"id":"gone"}`, string(h.one(`probe.get(id="gone")`).Result))
}

func TestHandlerParams(t *testing.T) {
	h := newHouse(t)
	require.JSONEq(t, `{"id":"a","n":7}`, string(h.one(`probe.echo(id="a", namespace="x")`).Result), "without namespace")
	require.JSONEq(t, `{"namespace":"x"}`, string(h.one(`probe.named(namespace="x")`).Result), "unless the verb declares it")
	require.JSONEq(t, `{"n":7,"value":null}`, string(h.one(`probe.echo(value=null)`).Result), "null stays null")
	require.JSONEq(t, `{"namespace":"x","read":["x"],"explicit":true,"actor":"user:ann","can":false}`, string(h.one(`probe.who(namespace="x")`).Result))
	require.JSONEq(t, `{"namespace":"local","read":["local"],"explicit":false,"actor":"user:ann","can":false}`, string(h.one(`probe.who()`).Result))
}

func TestHandlerFailures(t *testing.T) {
	for how := range failures {
		t.Run("Err "+how, func(t *testing.T) {
			h := newHouse(t)
			entry := h.one(`probe.fail(how="` + how + `")`)
			require.Equal(t, dispatcher.Code(how), entry.Code)
			require.NotContains(t, entry.Error, "secret-dsn")
			require.NotContains(t, entry.Error, "while failing", "what wraps a typed error is ours, not the caller's")
			require.Equal(t, "error", h.records[0].Outcome)
			require.Equal(t, how, h.records[0].ErrorCode)
			require.Equal(t, "allowed", h.records[0].Effect)
			require.Empty(t, h.events)
		})
	}
	for _, how := range []string{"panic", "nil map", "goexit", "nan", "chan"} {
		t.Run("Err "+how, func(t *testing.T) {
			h := newHouse(t)
			env := h.run(`[probe.echo(), probe.fail(how="` + how + `"), probe.echo()]`)
			require.Equal(t, dispatcher.CodeInternal, env.Results[1].Code)
			require.NotContains(t, env.Results[1].Error, "secret")
			require.NotContains(t, env.Results[1].Error, "panic")
			require.Equal(t, 2, env.Summary.Succeeded, "siblings finish")
			require.Len(t, h.records, 3, "a record exists")

			chain := h.run(`probe.fail(how="` + how + `") | probe.echo()`)
			require.True(t, chain.Results[1].Aborted)
		})
	}
}

func TestHelp(t *testing.T) {
	h := newHouse(t)
	require.JSONEq(t, `{"verb":"probe.get","pack":"probe","description":"d","category":"directive",
		"params":[{"name":"id","type":"string","required":false,"description":"d"}]}`, string(h.one(`probe.get(help=true)`).Result))
	require.JSONEq(t, `{"verb":"probe.hidden","pack":"probe","description":"d","category":"directive",
		"params":[{"name":"id","type":"string","required":false,"description":"d"}],"visibility":"internal","callable_via_mcp":false}`,
		string(h.one(`probe.hidden(help=true)`).Result))
	chain := h.run(`probe.result(json="true") | probe.echo(help=$prev)`)
	require.Equal(t, dispatcher.CodeInvalidParams, chain.Results[1].Code, "a reference is not true")
}

func TestInternalVerbs(t *testing.T) {
	h := newHouse(t)
	for _, source := range []dispatcher.Source{dispatcher.MCP, dispatcher.Wire, ""} {
		env := h.runAs(dispatcher.Caller{Source: source}, `[probe.hidden(id="a"), probe.hidden(id="a")]`)
		require.Equal(t, dispatcher.CodeNotCallable, env.Results[0].Code, "not write_conflict: %q", source)
	}
	require.True(t, h.runAs(operator, `probe.hidden(id="a")`).Results[0].OK)
	require.True(t, h.one(`probe.call(verb="probe.hidden")`).OK, "a verb may call it for its caller")
	for _, l := range h.Catalogue() {
		require.NotEqual(t, "probe.hidden", l.Verb)
	}
}

func TestUnknownVerbTextIsPlain(t *testing.T) {
	h := newHouse(t)
	long := strings.Repeat("x", 10_000)
	require.Less(t, len(h.one(long+`()`).Error.(string)), 1000)
}

// One tool that carries other calls must not hide the real action: each operation is judged by its own
// verb and params, and only the denied one is refused.
func TestEachOperationIsJudgedByItself(t *testing.T) {
	h := newHouse(t)
	h.decide = func(_ context.Context, in *policy.Input) policy.Decision {
		if in.Params["id"] == "forbidden" {
			return policy.Decision{Reason: "no"}
		}
		return policy.Decision{Verdict: policy.Allow}
	}
	ops := make([]string, 100)
	for i := range ops {
		ops[i] = `probe.echo(id="fine", value="probe.echo(id=\"forbidden\")")`
	}
	ops[57] = `probe.echo(id="forbidden")`
	env := h.run("[" + strings.Join(ops, ",") + "]")
	require.Equal(t, dispatcher.Summary{Total: 100, Succeeded: 99, Failed: 1}, env.Summary)
	require.Equal(t, dispatcher.CodePermissionDenied, env.Results[57].Code)
	require.Len(t, h.inputs, 100)
	for _, in := range h.inputs {
		require.Equal(t, caller.Actor, in.Token.Actor, "the same actor document everywhere")
	}

	chain := h.run(`probe.result(json="{\"id\":\"forbidden\"}") | probe.echo(id=$prev.id)`)
	require.Equal(t, dispatcher.CodePermissionDenied, chain.Results[1].Code, "after substitution")
}
