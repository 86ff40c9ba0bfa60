package request_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// arg parses a call or chain and returns the only argument of its last operation.
func arg(tb testing.TB, text string) request.Value {
	tb.Helper()
	req, err := request.Parse(text)
	require.NoError(tb, err)
	op := req.Ops[len(req.Ops)-1]
	require.Len(tb, op.Args, 1)
	return op.Args[0].Value
}

func TestValueZeroIsNull(t *testing.T) {
	var v request.Value
	require.Equal(t, request.Null, v.Kind())
	require.False(t, v.HasRef())
	got, err := v.Any(nil)
	require.NoError(t, err)
	require.Nil(t, got)
	require.Empty(t, v.Text())
	require.Zero(t, v.Len())
	require.Empty(t, v.Ref().Steps)
}

func TestValueAccessors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       request.Kind
		truth      bool
		str        string
		number     json.Number
		length     int
		any        any
	}{
		{name: "OK null", text: "v(x=null)", kind: request.Null},
		{name: "OK true", text: "v(x=true)", kind: request.Bool, truth: true, any: true},
		{name: "OK false", text: "v(x=false)", kind: request.Bool, any: false},
		{name: "OK number", text: "v(x=18446744073709551615)", kind: request.Number, number: "18446744073709551615", any: json.Number("18446744073709551615")},
		{name: "OK text", text: `v(x="a b")`, kind: request.String, str: "a b", any: "a b"},
		{name: "OK text with escapes", text: `v(x="a\u0062\n")`, kind: request.String, str: "ab\n", any: "ab\n"},
		{name: "OK text protected from being a reference", text: `v(x="\\$prev.id")`, kind: request.String, str: "$prev.id", any: "$prev.id"},
		{name: "OK empty array", text: "v(x=[])", kind: request.Array, any: []any{}},
		{name: "OK array", text: "v(x=[1,[2,3],{}])", kind: request.Array, length: 3, any: []any{json.Number("1"), []any{json.Number("2"), json.Number("3")}, map[string]any{}}},
		{name: "OK empty object", text: "v(x={})", kind: request.Object, any: map[string]any{}},
		{name: "OK object with repeated keys", text: `v(x={"a":1,"b":[null],"a":2})`, kind: request.Object, length: 2, any: map[string]any{"a": json.Number("2"), "b": []any{nil}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := arg(t, c.text)
			require.Equal(t, c.kind, v.Kind())
			require.Equal(t, c.truth, v.Bool())
			require.Equal(t, c.str, v.Text())
			require.Equal(t, c.number, v.Number())
			require.Equal(t, c.length, v.Len())
			require.False(t, v.HasRef())
			got, err := v.Any(nil)
			require.NoError(t, err)
			require.Equal(t, c.any, got)
		})
	}
}

func TestValueIterators(t *testing.T) {
	v := arg(t, `v(x=[{"a":1,"b":2},[],"c"])`)
	var kinds []request.Kind
	for e := range v.Elements() {
		kinds = append(kinds, e.Kind())
		for key, m := range e.Members() {
			require.Equal(t, map[string]json.Number{"a": "1", "b": "2"}[key], m.Number())
		}
		for range e.Text() {
			break
		}
	}
	require.Equal(t, []request.Kind{request.Object, request.Array, request.String}, kinds)
	for range v.Elements() {
		break
	}
	for range v.Members() {
		t.Fatal("an array has no members")
	}
	for range arg(t, `v(x={"a":1})`).Elements() {
		t.Fatal("an object has no elements")
	}
	for key := range arg(t, `v(x={"a":1,"b":2})`).Members() {
		require.Equal(t, "a", key)
		break
	}
}

func TestAnyResolvesInOrder(t *testing.T) {
	v := arg(t, `a() | b(x={"k":$prev.k,"k":[$prev.first,{"m":"$prev[2]"}],"z":$prev})`)
	require.True(t, v.HasRef())
	var asked []string
	got, err := v.Any(func(r request.Ref) (any, error) {
		asked = append(asked, r.String())
		return len(asked), nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"first", "[2]", ""}, asked, "a member that was replaced asks for nothing")
	require.Equal(t, map[string]any{"k": []any{1, map[string]any{"m": 2}}, "z": 3}, got)

	stop := errors.New("stop")
	for _, text := range []string{"a()|b(x=$prev)", "a()|b(x=[1,$prev,$prev])", `a()|b(x={"k":{"l":$prev},"m":$prev})`} {
		calls := 0
		_, err = arg(t, text).Any(func(request.Ref) (any, error) { calls++; return nil, stop })
		require.ErrorIs(t, err, stop)
		require.Equal(t, 1, calls)
		_, err = arg(t, text).Any(nil)
		require.ErrorIs(t, err, request.ErrUnresolved)
	}
}

// What Any makes belongs to the caller.
func TestAnyIsFresh(t *testing.T) {
	v := arg(t, `v(x={"a":[1]})`)
	first, err := v.Any(nil)
	require.NoError(t, err)
	first.(map[string]any)["a"].([]any)[0] = "changed"
	second, err := v.Any(nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": []any{json.Number("1")}}, second)
}

func TestHasRef(t *testing.T) {
	for text, want := range map[string]bool{
		`a()|b(x=1)`:                         false,
		`a()|b(x=$prev)`:                     true,
		`a()|b(x="$prev.a")`:                 true,
		`a()|b(x="\\$prev.a")`:               false,
		`a()|b(x=[[],[{"k":$prev}]])`:        true,
		`a()|b(x={"k":[$prev],"k":1})`:       false,
		`a()|b(x=[{"k":$prev,"k":1}])`:       false,
		`a()|b(x={"k":1,"k":$prev})`:         true,
		`a()|b(x={"l":$prev,"k":1,"k":2})`:   true,
		`a()|b(x=["$prev[x]", "$prev", {}])`: true,
	} {
		require.Equal(t, want, arg(t, text).HasRef(), text)
	}
}

func TestRef(t *testing.T) {
	for _, c := range []struct {
		name, text, canonical, dsl string
		steps                      []request.Step
	}{
		{"OK whole result", "$prev", "", "$prev", nil},
		{"OK fields and indices", "$prev.rows[3].k", "rows[3].k", "$prev.rows[3].k", []request.Step{{Field: "rows"}, {Index: "3", IsIndex: true}, {Field: "k"}}},
		{"OK index first", "$prev[0][12]", "[0][12]", "$prev[0][12]", []request.Step{{Index: "0", IsIndex: true}, {Index: "12", IsIndex: true}}},
		{"OK leading zeros", "$prev[007][000]", "[7][0]", "$prev[7][0]", []request.Step{{Index: "7", IsIndex: true}, {Index: "0", IsIndex: true}}},
		{"OK index too large for an int", "$prev[123456789012345678901234567890]", "[123456789012345678901234567890]", "$prev[123456789012345678901234567890]", []request.Step{{Index: "123456789012345678901234567890", IsIndex: true}}},
		{"OK quoted without need", `"$prev.a[1]"`, "a[1]", "$prev.a[1]", []request.Step{{Field: "a"}, {Index: "1", IsIndex: true}}},
		{"OK field of any text", `"$prev.some-key.x y[1].\"\\\u0001"`, "some-key.x y[1].\"\\\x01", `"$prev.some-key.x y[1].\"\\\u0001"`, []request.Step{{Field: "some-key"}, {Field: "x y"}, {Index: "1", IsIndex: true}, {Field: "\"\\\x01"}}},
		{"OK field that is a number", `"$prev.0"`, "0", `"$prev.0"`, []request.Step{{Field: "0"}}},
		{"OK field that a terminal would act on", "\"$prev.\u202e\"", "\u202e", `"$prev.\u202e"`, []request.Step{{Field: "\u202e"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := arg(t, "a() | b(x="+c.text+")")
			require.Equal(t, request.Reference, v.Kind())
			require.Empty(t, v.Text())
			ref := v.Ref()
			require.Equal(t, c.steps, ref.Steps)
			require.Equal(t, c.canonical, ref.String())
			require.Equal(t, c.dsl, ref.DSL())
			require.Equal(t, ref, arg(t, "a() | b(x="+ref.DSL()+")").Ref())
		})
	}
	steps := arg(t, "a()|b(x=$prev.items[0].id)").Ref().Steps
	require.Equal(t, "$prev.items[0]", request.Ref{Steps: steps[:2]}.DSL(), "a prefix of a path is a path")
	require.Empty(t, arg(t, "v(x=1)").Ref().Steps)
}

// A request's strings outlive it and do not change.
func TestStringsMayBeKept(t *testing.T) {
	text := []byte(`pack.verb(name="kept", other="esc\u0061ped", third={"key":[1.5]})`)
	req, err := request.Parse(string(text))
	require.NoError(t, err)
	op := req.Ops[0]
	kept := []string{op.Tool, op.Args[0].Name, op.Args[0].Value.Text(), op.Args[1].Value.Text()}
	for key, v := range op.Args[2].Value.Members() {
		for e := range v.Elements() {
			kept = append(kept, key, e.Number().String())
		}
	}
	clear(text)
	require.Equal(t, []string{"pack.verb", "name", "kept", "escaped", "key", "1.5"}, kept)
}

func TestModeString(t *testing.T) {
	require.Equal(t, "single", request.Mode(0).String())
	require.Equal(t, "parallel", request.Parallel.String())
	require.Equal(t, "chain", request.Chain.String())
}
