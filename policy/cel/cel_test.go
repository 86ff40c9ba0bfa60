package cel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
)

// manifest declares a verb with a param of every type, and one more verb.
func manifest(checks ...packs.Check) packs.Manifest {
	return packs.Manifest{Name: "kg", Verbs: []packs.Verb{
		{Name: "create", Category: packs.Commissive, Params: []packs.Param{
			{Name: "id", Type: packs.UUID},
			{Name: "s", Type: packs.String},
			{Name: "short", Type: packs.String, MaxLength: 100},
			{Name: "limit", Type: packs.Integer, Max: "100"},
			{Name: "weight", Type: packs.Number},
			{Name: "on", Type: packs.Boolean},
			{Name: "at", Type: packs.Datetime},
			{Name: "tags", Type: packs.ArrayOf(packs.String), MaxItems: 64, MaxLength: 64},
			{Name: "nums", Type: packs.ArrayOf(packs.Integer)},
			{Name: "weights", Type: packs.ArrayOf(packs.Number)},
			{Name: "times", Type: packs.ArrayOf(packs.Datetime)},
			{Name: "list", Type: packs.Array},
			{Name: "meta", Type: packs.Object},
			{Name: "items", Type: packs.ArrayOf(packs.Object)},
			{Name: "rest", Type: packs.Any},
			{Name: "maybe", Type: packs.String, Nullable: true},
			{Name: "maybe_limit", Type: packs.Integer, Nullable: true},
			{Name: "maybe_at", Type: packs.Datetime, Nullable: true},
			{Name: "maybe_list", Type: packs.ArrayOf(packs.String), Nullable: true},
			{Name: "secret", Type: packs.String, Sensitive: true},
			{Name: "in", Type: packs.String},
		}},
		{Name: "get", Category: packs.Assertive, Params: []packs.Param{{Name: "id", Type: packs.UUID}}},
	}, Checks: checks}
}

func compile(t testing.TB, checks ...packs.Check) *cel.Set {
	t.Helper()
	return compileWith(t, cel.Config{}, checks...)
}

func compileWith(t testing.TB, cfg cel.Config, checks ...packs.Check) *cel.Set {
	t.Helper()
	set, err := cel.Compile([]packs.Manifest{manifest(checks...)}, cfg)
	require.NoError(t, err)
	return set
}

// one is a check on create.
func one(rule string) packs.Check {
	return packs.Check{Name: "one", Rule: rule, Message: "no good", Verbs: []string{"create"}}
}

func input(t testing.TB, params string) *policy.Input {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(params))
	d.UseNumber()
	in := &policy.Input{
		Verb: "create", Pack: "kg",
		Token: policy.Token{
			Namespace: "team:a", Explicit: true, Read: []string{"team:a", "team:b"},
			Actor: policy.Actor{Kind: "agent", ID: "a1", Groups: []string{"dev"}, Claims: map[string]any{"level": json.Number("3"), "org": map[string]any{"name": "x"}}},
		},
		Context: policy.Context{Time: time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)},
	}
	require.NoError(t, d.Decode(&in.Params))
	return in
}

const (
	holds  = "holds"
	fails  = "fails"
	absent = "needs the param"
	broken = "could not be evaluated"
)

func TestCheck(t *testing.T) {
	tests := []struct{ name, rule, params, want string }{
		{"OKConst", `true`, `{}`, holds},
		{"ErrConst", `false`, `{}`, fails},
		{"OKString", `params.s == "x" && params.s.startsWith("x") && size(params.s) == 1`, `{"s":"x"}`, holds},
		{"OKCodePoints", `size(params.s) == 2`, `{"s":"éé"}`, holds},
		{"OKUUID", `params.id.matches("^[0-9a-f-]{36}$")`, `{"id":"123e4567-e89b-42d3-a456-426614174000"}`, holds},
		{"OKTimestamp", `params.at < now && params.at.getFullYear() == 2025`, `{"at":"2025-06-01T00:00:00+02:00"}`, holds},
		{"ErrTimestampFuture", `params.at < now`, `{"at":"2027-06-01T00:00:00Z"}`, fails},
		{"ErrTimestampYear0", `params.at < now`, `{"at":"0000-06-01T00:00:00Z"}`, "could not read the param at"},
		{"OKTimes", `params.times.all(t, t < now) && params.times[0] == timestamp("2025-06-01T00:00:00Z")`, `{"times":["2025-06-01T00:00:00Z"]}`, holds},
		{"OKVerb", `verb == "create"`, `{}`, holds},
		{"OKToken", `token.namespace == "team:a" && token.explicit && "team:b" in token.read`, `{}`, holds},
		{"OKActor", `token.actor.kind == "agent" && token.actor.id == "a1" && "dev" in token.actor.groups`, `{}`, holds},
		{"OKTokenHas", `has(token.namespace) && has(token.explicit) && has(token.actor.id) && has(token.actor.claims)`, `{}`, holds},
		{"OKClaims", `token.actor.claims.level == 3 && token.actor.claims["org"].name == "x" && !has(token.actor.claims.other)`, `{}`, holds},
		{"OKLeadingDot", `.params.s == "x"`, `{"s":"x"}`, holds},
		{"OKEscapedName", "params.`in` == 'x'", `{"in":"x"}`, holds},

		// fc-028, fc-029: integers stay integers.
		{"OKIntCompare", `params.limit <= 100`, `{"limit":100}`, holds},
		{"OKIntEqual", `params.limit == 3`, `{"limit":3}`, holds},
		{"OKIntModulus", `params.limit % 2 == 0`, `{"limit":4}`, holds},
		{"OKIntIndex", `params.tags[params.limit] == "b"`, `{"limit":1,"tags":["a","b"]}`, holds},
		{"OKIndexUntyped", `params.tags[params.rest] == "b"`, `{"rest":1,"tags":["a","b"]}`, holds},
		{"ErrIntExact", `params.limit == 9007199254740992`, `{"limit":9007199254740993}`, fails},
		{"OKIntExact", `params.limit == 9007199254740993`, `{"limit":9007199254740993}`, holds},
		{"ErrIntExactUntyped", `params.rest == 9007199254740992`, `{"rest":9007199254740993}`, fails},
		{"ErrIntExactNested", `params.meta.a == 9007199254740992`, `{"meta":{"a":9007199254740993}}`, fails},
		{"OKUint", `params.rest == 18446744073709551615u`, `{"rest":18446744073709551615}`, holds},
		{"OKUintCompare", `params.rest > 5`, `{"rest":18446744073709551615}`, holds},
		{"ErrBeyondUint", `params.rest > 5`, `{"rest":18446744073709551617}`, "cannot take a number in the param rest exactly"},
		{"OKBeyondUintExact", `params.rest > 5.0`, `{"rest":18446744073709551616}`, holds},
		{"ErrHuge", `params.rest > 5.0 || true`, `{"rest":1e400}`, "cannot take a number in the param rest exactly"},
		{"ErrHugeNested", `params.list != []`, `{"list":[{"a":[1e400]}]}`, "cannot take a number in the param list exactly"},
		{"ErrVanishes", `params.weight == 0.0`, `{"weight":1e-400}`, "cannot take a number in the param weight exactly"},
		{"OKZero", `params.weight == 0.0`, `{"weight":0e999999}`, holds},
		{"OKPresenceReadsNothing", `has(params.meta) && has(params.rest) && has(params.list) && has(params.items) && has(params.weights)`,
			`{"meta":{"n":18446744073709551617},"rest":[18446744073709551617],"list":[18446744073709551617],"items":[{"n":18446744073709551617}],"weights":[18446744073709551617]}`, holds},
		{"OKPresenceOfANumber", `has(params.rest) && has(params.weight)`, `{"rest":18446744073709551617,"weight":18446744073709551617}`, holds},
		{"OKSizeReadsNoParts", `size(params.meta) == 1 && params.items.size() == 1 && size(params.rest) == 2`,
			`{"meta":{"n":18446744073709551617},"items":[{"n":18446744073709551617}],"rest":[1,18446744073709551617]}`, holds},
		{"ErrSizeOfANumber", `size(params.rest) == 1`, `{"rest":18446744073709551617}`, "cannot take a number in the param rest exactly"},
		{"ErrPresenceWithin", `has(params.meta.other) || true`, `{"meta":{"n":18446744073709551617}}`, "cannot take a number in the param meta exactly"},
		{"ErrPresenceThenReading", `has(params.meta) && params.meta.x == 1 || true`, `{"meta":{"n":18446744073709551617}}`, "cannot take a number in the param meta exactly"},
		{"ErrSizeOfAPart", `size(params.items[0]) == 1`, `{"items":[{"n":18446744073709551617}]}`, "cannot take a number in the param items exactly"},
		{"ErrSizeOfAFilter", `size(params.list.filter(x, x == 1)) == 0`, `{"list":[18446744073709551617]}`, "cannot take a number in the param list exactly"},
		{"OKNumberWhole", `params.weight == 3.0 && params.weight < 4 && params.weight + 0.5 == 3.5`, `{"weight":3}`, holds},
		{"OKNumberNegative", `params.weight == -3.25`, `{"weight":-3.25}`, holds},
		{"ErrNumberInexact", `params.weight <= 9007199254740992.0`, `{"weight":9007199254740993}`, "cannot take a number in the param weight exactly"},
		{"OKNumberExact", `params.weight <= 9007199254740992.0`, `{"weight":9007199254740992}`, holds},
		{"OKNumbers", `params.weights.all(w, w + 0.5 > 1.0)`, `{"weights":[1,2.5]}`, holds},
		// CEL takes an element that failed to convert for an equal one.
		{"ErrNumbersInexactEqual", `params.weights == [9007199254740992.0]`, `{"weights":[9007199254740993]}`, "cannot take a number in the param weights exactly"},
		{"ErrUntypedInexactEqual", `params.list == [1.0]`, `{"list":[1e400]}`, "cannot take a number in the param list exactly"},
		{"OKInts", `params.nums.all(n, n % 2 == 0)`, `{"nums":[2,4]}`, holds},
		{"ErrInts", `params.nums.all(n, n % 2 == 0)`, `{"nums":[2,5]}`, fails},

		// fc-074: what is missing is an error, which only the other side of || and && can absorb.
		{"OKHas", `!has(params.limit) || params.limit < 5`, `{}`, holds},
		{"ErrHas", `!has(params.limit) || params.limit < 5`, `{"limit":5}`, fails},
		{"OKMissingOr", `params.s == "x" || params.short == "y"`, `{"short":"y"}`, holds},
		{"ErrMissingOr", `params.s == "x" || params.short == "y"`, `{"short":"z"}`, absent + " s"},
		{"ErrMissingAnd", `params.s == "x" && params.short == "y"`, `{"short":"z"}`, fails},
		{"ErrMissingNot", `!(params.s == "x")`, `{}`, absent + " s"},
		{"ErrMissingKey", `params.meta.a == 1`, `{"meta":{}}`, broken},
		{"OKHasKey", `!has(params.meta.a)`, `{"meta":{}}`, holds},

		// fc-076: null is a value, not an absence.
		{"OKNullHas", `has(params.maybe) && params.maybe == null`, `{"maybe":null}`, holds},
		{"OKNullAbsent", `!has(params.maybe)`, `{}`, holds},
		{"OKNullableGiven", `params.maybe != null && size(params.maybe) == 1`, `{"maybe":"x"}`, holds},
		{"ErrNullSize", `size(params.maybe) < 5`, `{"maybe":null}`, broken},
		{"OKNullableInt", `params.maybe_limit == null || params.maybe_limit < 5`, `{"maybe_limit":null}`, holds},
		{"ErrNullableInt", `params.maybe_limit < 5`, `{"maybe_limit":null}`, broken},
		{"OKNullableTime", `params.maybe_at == null`, `{"maybe_at":null}`, holds},
		{"OKNullableList", `params.maybe_list == null || params.maybe_list.all(x, x != "")`, `{"maybe_list":null}`, holds},
		{"OKNullAny", `params.rest == null`, `{"rest":null}`, holds},
		{"OKNullNested", `has(params.meta.a) && params.meta.a == null`, `{"meta":{"a":null}}`, holds},
		{"ErrNullWhereNoneMayBe", `params.s != "x"`, `{"s":null}`, "could not read the param s"},
		{"ErrNullElement", `params.tags.all(t, t != "x")`, `{"tags":[null]}`, "could not read the param tags"},
		{"ErrNullList", `params.nums == [1] || params.nums != [2]`, `{"nums":null}`, "could not read the param nums"},

		// fc-077: what is of another type fails, whatever the rule makes of it.
		{"ErrTypeUntyped", `params.s in params.rest`, `{"s":"a","rest":"abc"}`, broken},
		{"ErrTypeNested", `params.meta.a < 5`, `{"meta":{"a":"1"}}`, broken},
		{"ErrTypeWrongValue", `params.limit < 5`, `{"limit":"1"}`, "could not read the param limit"},
		{"ErrTypeWrongElement", `params.nums.exists(n, n == 1) || true`, `{"nums":["1"]}`, "could not read the param nums"},
		{"ErrTypePoint", `params.limit < 5`, `{"limit":1.0}`, "cannot take a number in the param limit"},
		{"ErrDivision", `10 / params.limit > 1`, `{"limit":0}`, broken},
		{"ErrOverflow", `params.limit * 2 > 0`, `{"limit":9223372036854775807}`, broken},
		{"ErrIndex", `params.tags[5] == ""`, `{"tags":[]}`, broken},

		{"OKPattern", `params.s.matches("^a{2,40}$") && matches(params.s, "a")`, `{"s":"aaa"}`, holds},
		{"ErrPattern", `params.s.matches("^a{2,40}$")`, `{"s":"a"}`, fails},

		{"OKItems", `params.items.all(i, has(i.name) && i.name != "" && (!has(i.n) || i.n > 1))`, `{"items":[{"name":"a"},{"name":"b","n":2}]}`, holds},
		{"ErrItems", `params.items.all(i, has(i.name) && i.name != "")`, `{"items":[{"name":"a"},{}]}`, fails},
		{"OKExclude", `!(has(params.s) && has(params.short))`, `{"s":"x"}`, holds},
		{"ErrExclude", `!(has(params.s) && has(params.short))`, `{"s":"x","short":"y"}`, fails},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := compile(t, one(tt.rule)).Check(t.Context(), input(t, tt.params))
			if tt.want == holds {
				require.NoError(t, err)
				return
			}
			var failed *packs.CheckError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "one", failed.Check)
			if tt.want == fails {
				require.Equal(t, "no good", failed.Message)
				require.NoError(t, failed.Err)
				return
			}
			require.Contains(t, failed.Message, tt.want)
			require.Error(t, failed.Err)
		})
	}
}

func TestCheckOrderAndScope(t *testing.T) {
	set := compile(t,
		packs.Check{Name: "for-get", Rule: `false`, Message: "get", Verbs: []string{"get"}},
		packs.Check{Name: "first", Rule: `params.limit < 5`, Message: "first", Verbs: []string{"create"}},
		packs.Check{Name: "all", Rule: `!has(params.id) || params.id != ""`, Message: "all"},
		packs.Check{Name: "last", Rule: `params.limit < 3`, Message: "last", Verbs: []string{"create"}},
	)
	check := func(verb, params string) string {
		in := input(t, params)
		in.Verb = verb
		var failed *packs.CheckError
		if errors.As(set.Check(t.Context(), in), &failed) {
			return failed.Check
		}
		return ""
	}
	require.Equal(t, "first", check("create", `{"limit":9,"id":""}`))
	require.Equal(t, "all", check("create", `{"limit":4,"id":""}`))
	require.Equal(t, "last", check("create", `{"limit":4}`))
	require.Empty(t, check("create", `{"limit":2}`))
	require.Equal(t, "for-get", check("get", `{}`))
}

// Deny is what an empty set does.
func TestCheckRefusesVerbsItDoesNotKnow(t *testing.T) {
	in := input(t, `{}`)
	require.Error(t, new(cel.Set).Check(t.Context(), in))
	in.Verb = "no_such_verb"
	require.ErrorContains(t, compile(t).Check(t.Context(), in), `the verb "no_such_verb" is in none of the compiled manifests`)
	in.Verb = "create"
	require.NoError(t, compile(t).Check(t.Context(), in), "a verb without checks")
}

func TestMessageRule(t *testing.T) {
	check := func(message, params string) *packs.CheckError {
		err := compile(t, packs.Check{Name: "one", Rule: `false`, MessageRule: message, Verbs: []string{"create"}}).Check(t.Context(), input(t, params))
		var failed *packs.CheckError
		require.ErrorAs(t, err, &failed)
		return failed
	}
	failed := check(`"limit is " + string(params.limit) + ", make it less"`, `{"limit":7}`)
	require.Equal(t, "limit is 7, make it less", failed.Message)
	require.NoError(t, failed.Err)

	failed = check(`"got " + params.s`, `{"s":"a\u202e\u0007\u2028b"}`)
	require.Equal(t, `got a\u202e\a\u2028b`, failed.Message)

	failed = check(`params.s`, `{"s":"`+strings.Repeat("é", 1000)+`"}`)
	require.Equal(t, strings.Repeat("é", 512)+"…", failed.Message)

	failed = check(`"got " + params.s`, `{}`)
	require.Contains(t, failed.Message, "its message could not be computed")
	require.Error(t, failed.Err)
}

// A message reads the params only when it is computed, and then as exactly as a rule.
func TestMessageRuleReadsExactly(t *testing.T) {
	const big = `{"meta":{"n":18446744073709551617},"limit":7}`
	message := packs.Check{Name: "message", Rule: `params.limit != 8`, MessageRule: `params.meta == {"n": 1} ? "a" : "b"`}
	message.Verbs = []string{"create"}
	require.NoError(t, compile(t, message).Check(t.Context(), input(t, big)))
	refused := func(checks ...packs.Check) *packs.CheckError {
		t.Helper()
		var failed *packs.CheckError
		require.ErrorAs(t, compile(t, checks...).Check(t.Context(), input(t, big)), &failed)
		return failed
	}
	require.Contains(t, refused(message, one(`params.meta == {"n": 1} || true`)).Message, "cannot take a number in the param meta exactly",
		"a message that was not computed has looked through nothing")
	message.Rule = `params.limit != 7`
	failed := refused(message)
	require.Contains(t, failed.Message, "its message could not be computed")
	require.ErrorContains(t, failed.Err, "the param meta")
}

// Neither the caller nor the log reads a value or the engine's words.
func TestErrorsHoldNoValues(t *testing.T) {
	for _, rule := range []string{
		`params.meta[params.secret] == 1`, `int(params.secret) > 1`, `params.s.matches("x") && params.meta[params.short] == 1`, `timestamp(params.secret) < now`,
		`duration(params.secret) < duration("1s")`, `params.rest.hunter2 == 1`, `double(params.secret) > 1.0`,
	} {
		t.Run(rule, func(t *testing.T) {
			err := compile(t, one(rule)).Check(t.Context(), input(t, `{"secret":"hunter2","meta":{},"s":"x","short":"(hunter2","rest":"hunter2"}`))
			var failed *packs.CheckError
			require.ErrorAs(t, err, &failed)
			require.Error(t, failed.Err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				require.NotContains(t, e.Error(), "hunter2")
			}
		})
	}
}

func TestCheckStopsWithItsCaller(t *testing.T) {
	in := input(t, `{"nums":[1,1,1]}`)
	for name, rule := range map[string]string{
		"plain": `true`,
		"loops": `params.nums.all(a, a == 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, one(rule))
			require.NoError(t, set.Check(t.Context(), in))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := set.Check(ctx, in)
			require.ErrorIs(t, err, context.Canceled)
			var failed *packs.CheckError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Message, "cut short")
		})
	}
}

// The rule would run for minutes; the caller leaves as soon as it has begun. That it could still be
// true counts for nothing.
func TestCheckIsCutShort(t *testing.T) {
	in := input(t, `{}`)
	list := make([]any, 1000)
	for i := range list {
		list[i] = json.Number("1")
	}
	in.Params["nums"] = list
	set := compileWith(t, cel.Config{MaxCost: 1 << 60, MaxComprehensions: 3},
		one(`params.nums.all(a, params.nums.all(b, params.nums.all(c, a + b + c == 3))) || true`))
	ended, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	err := set.Check(&lateContext{Context: ended}, in)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// lateContext has ended, but the first who asks does not know yet.
type lateContext struct {
	context.Context
	asked atomic.Bool
}

func (c *lateContext) Err() error {
	if !c.asked.Swap(true) {
		return nil
	}
	return c.Context.Err()
}

// A panic anywhere below refuses and shows nothing of its value.
func TestCheckSurvivesPanics(t *testing.T) {
	for name, rule := range map[string]string{"plain": `true`, "loops": `[1].all(x, x == 1)`} {
		t.Run(name, func(t *testing.T) {
			err := compile(t, one(rule)).Check(panickingContext{t.Context()}, input(t, `{}`))
			var failed *packs.CheckError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Message, "could not be evaluated")
			require.EqualError(t, failed.Err, "panic of type string")
		})
	}
}

type panickingContext struct{ context.Context }

func (panickingContext) Err() error { panic("hunter2") }

func TestCheckReadsClaimsExactly(t *testing.T) {
	in := input(t, `{}`)
	in.Token.Actor.Claims = map[string]any{"n": json.Number("1e400")}
	err := compile(t, one(`token.actor.claims == {"n": 1}`)).Check(t.Context(), in)
	require.ErrorContains(t, err, "cannot take a number in token.actor.claims exactly")
	require.NoError(t, compile(t, one(`token.actor.id == "a1"`)).Check(t.Context(), in))
	require.NoError(t, compile(t, one(`has(token.actor.claims) && size(token.actor.claims) == 1`)).Check(t.Context(), in))
	in.Token.Actor.Claims = nil
	require.NoError(t, compile(t, one(`!has(token.actor.claims.n)`)).Check(t.Context(), in))
}

// What the parser and Resolve never let through is refused here as well.
func TestCheckRefusesGoValues(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	for name, value := range map[string]any{
		"int": 5, "float": 1.5, "struct": struct{}{}, "strings": []string{"x"}, "nested": []any{5}, "cycle": cycle,
		"NaN": json.Number("NaN"), "Inf": json.Number("Inf"), "hex": json.Number("0x1p4"), "underscore": json.Number("1_0"), "empty": json.Number(""),
		"long": json.Number("1" + strings.Repeat("0", 200)),
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, `{}`)
			in.Params = map[string]any{"rest": value}
			require.Error(t, compile(t, one(`params.rest == 5 || params.rest != 5`)).Check(t.Context(), in))
		})
	}
}

func TestInputIsOnlyRead(t *testing.T) {
	set := compile(t, one(`params.items.all(i, i.a.size() == 2) && params.list.map(x, x + 1) == [2, 3] && params.meta.b == 1`))
	const params = `{"items":[{"a":[1,2]}],"list":[1,2],"meta":{"b":1}}`
	in := input(t, params)
	require.NoError(t, set.Check(t.Context(), in))
	require.Equal(t, input(t, params), in)
}

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	set := compile(t, one(`params.items.all(i, i.a > 0) && params.s.matches("^x+$") && token.actor.kind == "agent"`))
	done := make(chan error)
	for range 8 {
		go func() { // ends after 200 checks
			var err error
			for range 200 {
				err = errors.Join(err, set.Check(context.Background(), input(t, `{"items":[{"a":1}],"s":"xx"}`)))
			}
			done <- err
		}()
	}
	for range 8 {
		require.NoError(t, <-done)
	}
}
