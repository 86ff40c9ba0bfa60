package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
)

// result is the text of a call whose result is the given JSON.
func result(j string) string {
	quoted, _ := json.Marshal(j)
	return `probe.result(json=` + string(quoted) + `)`
}

func TestPrevSubstitution(t *testing.T) {
	for _, tc := range []struct{ name, prior, arg, want string }{
		{"OK field", `{"id":"x"}`, `$prev.id`, `"x"`},
		{"OK element", `[1,[2,3]]`, `$prev[1][0]`, `2`},
		{"OK field of element", `{"rows":[{"k":null},{"k":[true]}]}`, `$prev.rows[1].k`, `[true]`},
		{"OK null is a value", `{"k":null}`, `$prev.k`, `null`},
		{"OK quoted field", `{"some-key":1}`, `"$prev.some-key"`, `1`},
		{"OK bare scalar", `"text"`, `$prev`, `"text"`},
		{"OK bare number", `12345678901234567890`, `$prev`, `12345678901234567890`},
		{"OK whole result inside a literal", `{"a":1}`, `[$prev, {"in":$prev}]`, `[{"a":1},{"in":{"a":1}}]`},
		{"OK spelling of numbers", `[1.50, 1e2, 9007199254740993]`, `$prev[2]`, `9007199254740993`},
		{"OK leading zeros", `[7,8]`, `$prev[001]`, `8`},
		{"OK a string that looks like a reference stays one", `{"k":"$prev.id"}`, `$prev.k`, `"$prev.id"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			env := h.run(result(tc.prior) + ` | probe.echo(value=` + tc.arg + `)`)
			require.True(t, env.Results[1].OK, env.Results[1].Error)
			var got struct{ Value json.RawMessage }
			require.NoError(t, json.Unmarshal(env.Results[1].Result, &got))
			require.Equal(t, tc.want, string(got.Value))
			require.Len(t, h.inputs, 2, "the gate judges the resolved arguments")
			require.NotNil(t, h.inputs[1].Params)
		})
	}
}

func TestPrevFailures(t *testing.T) {
	for _, tc := range []struct {
		name, prior, args string
		reason            dispatcher.SubstitutionReason
		says              []string
	}{
		{"Err absent field", `{"b":1,"a":2}`, `value=$prev.id`, dispatcher.PathNotFound,
			[]string{`argument "value"`, `$prev.id`, `$prev is an object`, `Available top-level fields: [a, b]`}},
		{"Err absent field below", `{"items":[{"x":1}]}`, `value=$prev.items[0].id`, dispatcher.PathNotFound,
			[]string{`$prev.items[0].id`, `$prev.items[0] is an object`, `Available top-level fields: [x]`}},
		{"Err field of an array", `[1,2]`, `value=$prev.id`, dispatcher.WrongType, []string{`array of length 2`}},
		{"Err field of null", `{"k":null}`, `value=$prev.k.id`, dispatcher.WrongType, []string{`$prev.k is null`}},
		{"Err index of an object", `{"a":1}`, `value=$prev[0]`, dispatcher.WrongType, []string{`[a]`}},
		{"Err index beyond", `[1,2]`, `value=$prev[2]`, dispatcher.IndexOutOfRange, []string{`$prev[2]`, `array of length 2`}},
		{"Err index beyond an int", `[1,2]`, `value=$prev[99999999999999999999]`, dispatcher.IndexOutOfRange, []string{`array of length 2`}},
		{"Err bare object", `{"a":1}`, `value=$prev`, dispatcher.BareRefAmbiguous, []string{`$prev.id`, `[a]`}},
		{"Err bare array", `[1]`, `value=$prev`, dispatcher.BareRefAmbiguous, []string{`array of length 1`}},
		{"Err first in name order", `{}`, `value=$prev.z, id=$prev.a`, dispatcher.PathNotFound, []string{`argument "id"`}},
		{"Err keys that play tricks are quoted", `{"a\u202e\n":1}`, `value=$prev.id`, dispatcher.PathNotFound, []string{`["a\u202e\n"]`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			env := h.run(result(tc.prior) + ` | probe.echo(` + tc.args + `) | probe.echo()`)
			require.True(t, env.Results[0].OK, "the finished one stays ok")
			require.True(t, env.Results[2].Aborted)
			failed := env.Results[1]
			require.Equal(t, dispatcher.CodeSubstitutionError, failed.Code)
			var typed *dispatcher.SubstitutionError
			require.IsType(t, typed, failed.Error)
			typed = failed.Error.(*dispatcher.SubstitutionError)
			require.Equal(t, tc.reason, typed.Reason)
			for _, s := range tc.says {
				require.Contains(t, typed.Message, s)
			}
			raw, err := json.Marshal(failed)
			require.NoError(t, err)
			require.Contains(t, string(raw), `"error":{"kind":"substitution_error","reason":"`+string(tc.reason)+`"`)
			require.Len(t, h.inputs, 1, "neither checks nor gate are asked about it")
			require.Equal(t, "refusal", string(h.records[1].Kind))
		})
	}
	t.Run("Err first call of a chain", func(t *testing.T) {
		env := newHouse(t).run(`probe.echo(value=$prev.id) | probe.echo()`)
		require.Equal(t, dispatcher.NoPrecedingOp, env.Results[0].Error.(*dispatcher.SubstitutionError).Reason)
		require.True(t, env.Results[1].Aborted)
	})
}

// Ten references in a list, seven steps long, would be 10^7 times the first result.
func TestPrevCannotGrow(t *testing.T) {
	h := newHouse(t)
	ten := `value=[` + strings.TrimSuffix(strings.Repeat("$prev.value,", 10), ",") + `]`
	env := h.run(`probe.echo(value="xxxxxxxxxxxxx")` + strings.Repeat(` | probe.echo(`+ten+`)`, 7))
	require.Equal(t, "partial", string(env.Status))
	i := env.Summary.Succeeded
	require.Equal(t, dispatcher.TooLarge, env.Results[i].Error.(*dispatcher.SubstitutionError).Reason)
	for _, in := range h.inputs {
		raw, err := json.Marshal(in.Params)
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw), 1<<20)
	}
}

func TestPrevSizeBounds(t *testing.T) {
	h := newHouse(t)
	exact := 1<<20 - len(`{"value":""}`)
	env := h.run(fmt.Sprintf(`probe.big(size=%d) | probe.echo(value=$prev)`, exact))
	require.True(t, env.Results[1].OK, fmt.Sprint(env.Results[1].Error))
	env = h.run(fmt.Sprintf(`probe.big(size=%d) | probe.echo(value=$prev)`, exact+1))
	require.Equal(t, dispatcher.TooLarge, env.Results[1].Error.(*dispatcher.SubstitutionError).Reason)
	env = h.run(fmt.Sprintf(`probe.big(size=%d) | probe.echo(id=$prev, value=$prev)`, exact/2))
	require.Equal(t, dispatcher.TooLarge, env.Results[1].Error.(*dispatcher.SubstitutionError).Reason, "all arguments count together")
}

func TestPrevMessagesStayShort(t *testing.T) {
	h := newHouse(t)
	env := h.run(result(`{"a":1}`) + ` | probe.echo(value=$prev` + strings.Repeat(".a", 50_000) + `)`)
	typed := env.Results[1].Error.(*dispatcher.SubstitutionError)
	require.Equal(t, dispatcher.WrongType, typed.Reason)
	require.Less(t, len(typed.Message), 1000)
}

func TestPrevDepth(t *testing.T) {
	h := newHouse(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	env := h.run(result(deep(64)) + ` | probe.echo(value={"k":$prev[0]})`)
	require.True(t, env.Results[1].OK, fmt.Sprint(env.Results[1].Error))
	env = h.run(result(deep(64)) + ` | probe.echo(value={"k":$prev})`)
	require.Equal(t, dispatcher.TooDeep, env.Results[1].Error.(*dispatcher.SubstitutionError).Reason)
}
