package packs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

const (
	lowerUUID = "123e4567-e89b-42d3-a456-426614174abc"
	upperUUID = "123E4567-E89B-42D3-A456-426614174ABC"
)

func everyType() *packs.Verb {
	return &packs.Verb{
		Name: "notes.add", Category: packs.Assertive, Visibility: packs.Public,
		Params: []packs.Param{
			{Name: "id", Type: packs.UUID},
			{Name: "text", Type: packs.String, MaxLength: 8},
			{Name: "kind", Type: packs.String, Enum: []string{"entity", "note"}},
			{Name: "limit", Type: packs.Integer, Min: "1", Max: "100"},
			{Name: "big", Type: packs.Integer},
			{Name: "weight", Type: packs.Number, Min: "0.1", Max: "1e2"},
			{Name: "huge", Type: packs.Number, Max: "100000000000000000000000000000000001"},
			{Name: "on", Type: packs.Boolean},
			{Name: "at", Type: packs.Datetime},
			{Name: "ids", Type: packs.ArrayOf(packs.UUID), MaxItems: 3},
			{Name: "tags", Type: packs.ArrayOf(packs.String), Enum: []string{"x", "y"}},
			{Name: "texts", Type: packs.ArrayOf(packs.String), MaxLength: 4},
			{Name: "nums", Type: packs.ArrayOf(packs.Integer)},
			{Name: "anys", Type: packs.ArrayOf(packs.Any)},
			{Name: "items", Type: packs.ArrayOf(packs.Object), MaxItems: 2, MaxLength: 4},
			{Name: "meta", Type: packs.Object, MaxItems: 2, MaxLength: 8},
			{Name: "list", Type: packs.Array, MaxItems: 2},
			{Name: "rest", Type: packs.Any},
			{Name: "maybe", Type: packs.String, Nullable: true},
			{Name: "token", Type: packs.String, Sensitive: true, Enum: []string{"hunter2"}, MaxLength: 20},
			{Name: "pin", Type: packs.Integer, Sensitive: true, Min: "1000"},
			{Name: "secret_id", Type: packs.UUID, Sensitive: true},
			{Name: "secrets", Type: packs.Object, Sensitive: true, MaxLength: 8},
		},
	}
}

// decode reads params as the parser leaves them.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var params map[string]any
	require.NoError(t, d.Decode(&params))
	return params
}

var resolveCases = []struct {
	name   string
	params string
	want   string // the resolved params, or the start of the error
}{
	{"OKNone", `{}`, `{}`},
	{"OKScalars", `{"text":"12345678","kind":"note","limit":100,"on":false,"weight":0.1}`, `{"text":"12345678","kind":"note","limit":100,"on":false,"weight":0.1}`},
	{"OKNamespacePasses", `{"namespace":"a:b"}`, `{"namespace":"a:b"}`},
	{"OKUUIDLowered", `{"id":"` + upperUUID + `"}`, `{"id":"` + lowerUUID + `"}`},
	{"OKUUIDsLowered", `{"ids":["` + lowerUUID + `","` + upperUUID + `"]}`, `{"ids":["` + lowerUUID + `","` + lowerUUID + `"]}`},
	{"OKEmptyList", `{"ids":[]}`, `{"ids":[]}`},
	{"OKIntegerEnds", `{"big":-9223372036854775808}`, `{"big":-9223372036854775808}`},
	{"OKIntegerExact", `{"big":9007199254740993}`, `{"big":9007199254740993}`},
	{"OKMinusZero", `{"big":-0}`, `{"big":-0}`},
	{"OKNumberWhole", `{"weight":10.0}`, `{"weight":10.0}`},
	{"OKNumberMaxExponent", `{"weight":100.000}`, `{"weight":100.000}`},
	{"OKHugeAtBound", `{"huge":1.00000000000000000000000000000000001e35}`, `{"huge":1.00000000000000000000000000000000001e35}`},
	{"OKZeroAnyExponent", `{"huge":0e999999999}`, `{"huge":0e999999999}`},
	{"OKDatetime", `{"at":"2026-11-30T20:50:00.5+01:00"}`, `{"at":"2026-11-30T20:50:00.5+01:00"}`},
	{"OKNullable", `{"maybe":null,"rest":null}`, `{"maybe":null,"rest":null}`},
	{"OKNullInside", `{"list":[null],"meta":{"a":null},"anys":[null,1]}`, `{"list":[null],"meta":{"a":null},"anys":[null,1]}`},
	{"OKTags", `{"tags":["y","x","y"]}`, `{"tags":["y","x","y"]}`},

	{"ErrUnknown", `{"limitt":1}`, `unknown param "limitt", did you mean limit?; the params of notes.add are id, text, kind`},
	{"ErrUnknownFar", `{"zzzzzzzz":1}`, `unknown param "zzzzzzzz"; the params of notes.add are id`},
	{"ErrUnknownCase", `{"Limit":1}`, `unknown param "Limit", did you mean limit?`},
	{"ErrUnknownFirstByName", `{"zz":1,"aa":1,"text":5}`, `unknown param "aa"`},
	{"ErrUnknownEscaped", `{"x\u202e\n":1}`, `unknown param "x\u202e\n"`},
	{"ErrUnknownEmpty", `{"":1}`, `unknown param ""`},
	{"ErrUnknownLong", `{"` + strings.Repeat("q", 5000) + `":1}`, `unknown param "` + strings.Repeat("q", 48) + `"…; the params`},
	{"ErrHelp", `{"help":false}`, `help: must be true`},
	{"ErrNamespace", `{"namespace":5}`, `namespace: must be a string, got a number`},
	{"ErrStringGotNumber", `{"text":5}`, `text: must be a string, got a number`},
	{"ErrStringGotObject", `{"text":{}}`, `text: must be a string, got an object`},
	{"ErrStringGotArray", `{"text":[]}`, `text: must be a string, got an array`},
	{"ErrIntegerQuoted", `{"limit":"10"}`, `limit: must be an integer, got a string; write 10 without quotes`},
	{"ErrBooleanQuoted", `{"on":"true"}`, `on: must be a boolean, got a string; write true without quotes`},
	{"ErrNull", `{"text":null}`, `text: is null, which is no value of this param; leave it out, or give a string`},
	{"ErrMaxLength", `{"text":"123456789"}`, `text: has 9 bytes, more than the 8 allowed`},
	{"ErrMaxLengthBytes", `{"text":"ééééé"}`, `text: has 10 bytes, more than the 8 allowed`},
	{"ErrDefaultMaxLength", `{"rest":"` + strings.Repeat("x", packs.DefaultMaxLength+1) + `"}`, `rest: has 65537 bytes`},
	{"ErrEnum", `{"kind":"notes"}`, `kind: must be one of "entity", "note", got "notes"; did you mean "note"?`},
	{"ErrEnumEscaped", `{"kind":"\u0007\u202e"}`, `kind: must be one of "entity", "note", got "\a\u202e"`},
	{"ErrIntegerPoint", `{"limit":10.0}`, `limit: must be an integer without point or exponent, got 10.0; write 10`},
	{"ErrIntegerExponent", `{"limit":1e1}`, `limit: must be an integer without point or exponent, got 1e1; write 10`},
	{"ErrIntegerZeroExponent", `{"limit":0e999999999}`, `limit: must be an integer without point or exponent, got 0e999999999; write 0`},
	{"ErrIntegerFraction", `{"limit":10.5}`, `limit: must be a whole number, got 10.5`},
	{"ErrIntegerBeyond", `{"big":9223372036854775808}`, `big: is beyond 64 bits, got 9223372036854775808`},
	{"ErrIntegerBeyondExponent", `{"big":1e30}`, `big: must be a whole number, got 1e30`},
	{"ErrMin", `{"limit":0}`, `limit: must be at least 1, got 0`},
	{"ErrMax", `{"limit":101}`, `limit: must be at most 100, got 101`},
	{"ErrMinExact", `{"weight":0.09999999999999999999999999999999999}`, `weight: must be at least 0.1, got 0.0999`},
	{"ErrMaxExact", `{"huge":100000000000000000000000000000000002}`, `huge: must be at most 100000000000000000000000000000000001`},
	{"ErrNumberTooLong", `{"huge":1` + strings.Repeat("0", 128) + `}`, `huge: is a number of more than 128 characters`},
	{"ErrNumberInfinite", `{"rest":1e999}`, `rest: is a number too large`},
	{"ErrNumberVanishes", `{"rest":[{"a":1e-3000000}]}`, `rest: [0]: member "a": is a number too close to zero`},
	{"ErrUUID", `{"id":"123e4567"}`, `id: is not a UUID: "123e4567"; write 8-4-4-4-12 hex digits`},
	{"ErrUUIDBraces", `{"id":"{123e4567-e89b-42d3-a456-426614174000}"}`, `id: is not a UUID`},
	{"ErrUUIDNoDashes", `{"id":"123e4567e89b42d3a456426614174000"}`, `id: is not a UUID`},
	{"ErrUUIDNewline", `{"id":"` + lowerUUID + `\n"}`, `id: is not a UUID`},
	{"ErrUUIDGotNumber", `{"id":5}`, `id: must be a string with a UUID, got a number`},
	{"ErrUUIDDigit", `{"id":"g23e4567-e89b-42d3-a456-426614174000"}`, `id: is not a UUID`},
	{"ErrUUIDDashPlace", `{"id":"123e456-7e89b-42d3-a456-426614174000"}`, `id: is not a UUID`},
	{"ErrUUIDListGotOne", `{"ids":"x"}`, `ids: must be an array<uuid>, got a string; put it in brackets: [ ]`},
	{"ErrDatetimeGotNumber", `{"at":5}`, `at: must be a string with an RFC 3339 date and time, got a number`},
	{"ErrDatetimeDateOnly", `{"at":"2026-11-30"}`, `at: is not an RFC 3339 date and time: "2026-11-30"`},
	{"ErrDatetimeSpace", `{"at":"2026-11-30 20:50:00Z"}`, `at: is not an RFC 3339`},
	{"ErrDatetimeComma", `{"at":"2026-11-30T20:50:00,5Z"}`, `at: is not an RFC 3339`},
	{"ErrDatetimeNoZone", `{"at":"2026-11-30T20:50:00"}`, `at: is not an RFC 3339`},
	{"ErrDatetimeLong", `{"at":"2026-11-30T20:50:00.` + strings.Repeat("0", 100) + `Z"}`, `at: is not an RFC 3339`},
	{"ErrDatetimeFeb30", `{"at":"2026-02-30T20:50:00Z"}`, `at: is not an RFC 3339`},
	{"ErrListGotOne", `{"tags":"x"}`, `tags: must be an array<string>, got a string; put it in brackets: [ ]`},
	{"ErrListGotOneInteger", `{"nums":1}`, `nums: must be an array<integer>, got a number; put it in brackets: [ ]`},
	{"ErrElementType", `{"nums":[1,"2"]}`, `nums: element [1] must be an integer, got a string; write 2 without quotes`},
	{"ErrElementPoint", `{"nums":[1,2.0]}`, `nums: element [1] must be an integer without point or exponent, got 2.0; write 2`},
	{"ErrElementNull", `{"nums":[null]}`, `nums: element [0] is null; leave the element out`},
	{"ErrElementEnum", `{"tags":["x","z"]}`, `tags: element [1] must be one of "x", "y", got "z"`},
	{"ErrElementLength", `{"texts":["1234","12345"]}`, `texts: element [1] has 5 bytes, more than the 4 allowed`},
	{"ErrElementUUID", `{"ids":["x"]}`, `ids: element [0] is not a UUID`},
	{"ErrMaxItems", `{"ids":[1,2,3,4]}`, `ids: has 4 elements, more than the 3 allowed; split it`},
	{"ErrMaxItemsNested", `{"items":[{"a":[1,2,3]}]}`, `items: element [0] member "a": has 3 elements, more than the 2 allowed`},
	{"ErrNestedLength", `{"items":[{"a":"12345"}]}`, `items: element [0] member "a": has 5 bytes, more than the 4 allowed`},
	{"ErrMembers", `{"meta":{"a":1,"b":2,"c":3}}`, `meta: has 3 members, more than the 2 allowed`},
	{"ErrKeyLength", `{"meta":{"123456789":1}}`, `meta: member "123456789": has 9 bytes`},
	{"ErrMemberFirstByName", `{"meta":{"b":"123456789","a":"1234567890"}}`, `meta: member "a": has 10 bytes`},
	{"ErrDepth", `{"rest":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, `rest: [0]: [0]: [0]: [0]: nests deeper than 64 levels`},
	{"ErrObjectGotArray", `{"meta":[]}`, `meta: must be an object, got an array`},
	{"ErrArrayGotObject", `{"list":{}}`, `list: must be an array, got an object`},

	{"ErrSensitiveEnum", `{"token":"hunter3"}`, `token: must be one of "hunter2"`},
	{"ErrSensitiveLength", `{"token":"hunter3hunter3hunter3"}`, `token: has 21 bytes`},
	{"ErrSensitiveMin", `{"pin":313}`, `pin: must be at least 1000`},
	{"ErrSensitivePoint", `{"pin":313.0}`, `pin: must be a whole number`},
	{"ErrSensitiveBeyond", `{"pin":31331333133313331333}`, `pin: is beyond 64 bits;`},
	{"ErrSensitiveQuoted", `{"pin":"313"}`, `pin: must be an integer, got a string`},
	{"ErrSensitiveUUID", `{"secret_id":"hunter3"}`, `secret_id: is not a UUID; write`},
	{"ErrSensitiveKey", `{"secrets":{"hunter3hunter3":1}}`, `secrets: a member: has 14 bytes`},
}

func TestResolve(t *testing.T) {
	for _, tt := range resolveCases {
		t.Run(tt.name, func(t *testing.T) {
			params := decode(t, tt.params)
			got, err := everyType().Resolve(params)
			require.Equal(t, decode(t, tt.params), params, "the input is unchanged")
			if !strings.HasPrefix(tt.name, "Err") {
				require.NoError(t, err)
				require.Equal(t, packs.Params(decode(t, tt.want)), got)
				return
			}
			require.Nil(t, got)
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.True(t, strings.HasPrefix(err.Error(), tt.want), "got  %s\nwant %s", err, tt.want)
			require.Less(t, len(err.Error()), 600)
			if strings.HasPrefix(tt.name, "ErrSensitive") {
				require.NotContains(t, err.Error(), "hunter3")
				require.NotContains(t, err.Error(), "313")
			}
			for range 20 { // the order of a map must not show
				_, again := everyType().Resolve(params)
				require.Equal(t, err, again)
			}
		})
	}
}

func TestResolveRequiredAndDefaults(t *testing.T) {
	def := []any{map[string]any{"a": []any{"b"}}}
	v := &packs.Verb{Name: "get", Params: []packs.Param{
		{Name: "id", Type: packs.UUID, Required: true, Description: "The record's id. A full one."},
		{Name: "limit", Type: packs.Integer, Default: json.Number("10")},
		{Name: "items", Type: packs.Array, Default: def},
		{Name: "note", Type: packs.String},
	}}
	_, err := v.Resolve(map[string]any{"note": 5})
	require.EqualError(t, err, "id: is required: give a string with a UUID (The record's id)")

	_, err = v.Resolve(map[string]any{"id": nil})
	require.ErrorContains(t, err, "id: is null")

	first, err := v.Resolve(map[string]any{"id": lowerUUID})
	require.NoError(t, err)
	require.Equal(t, packs.Params{"id": lowerUUID, "limit": json.Number("10"), "items": def}, first)
	first["items"].([]any)[0].(map[string]any)["a"].([]any)[0] = "changed"
	first["items"].([]any)[0].(map[string]any)["c"] = true

	second, err := v.Resolve(map[string]any{"id": lowerUUID})
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"a": []any{"b"}}}, second["items"], "each default is fresh")

	none := &packs.Verb{Name: "stats"}
	_, err = none.Resolve(map[string]any{"x": 1})
	require.EqualError(t, err, `unknown param "x"; stats takes no params`)
	got, err := none.Resolve(nil)
	require.NoError(t, err)
	require.Equal(t, packs.Params{}, got)
}

func TestResolveDeclaredNamespace(t *testing.T) {
	v := &packs.Verb{Name: "notes.move", Params: []packs.Param{{Name: "namespace", Type: packs.String, Required: true, MaxLength: 256}}}
	got, err := v.Resolve(map[string]any{"namespace": "a"})
	require.NoError(t, err)
	require.Equal(t, packs.Params{"namespace": "a"}, got)
	_, err = v.Resolve(nil)
	require.ErrorContains(t, err, "namespace: is required")
}

// A handler that invokes another verb may hand over what is no plain JSON at all.
func TestResolveRefusesGoValues(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	for name, value := range map[string]any{
		"int": 5, "float": 1.5, "bytes": []byte("x"), "strings": []string{"x"}, "struct": struct{}{}, "cycle": cycle,
		"number": json.Number("0x1F"), "empty number": json.Number(""), "underscore": json.Number("1_0"), "NaN": json.Number("NaN"),
		"plus": json.Number("+1"), "leading zero": json.Number("01"), "utf8": "\xff", "nested utf8": []any{"\xff"}, "key": map[string]any{"\xff": nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := everyType().Resolve(map[string]any{"rest": value})
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid)
		})
	}
	_, err := everyType().Resolve(map[string]any{"limit": 5})
	require.EqualError(t, err, "limit: must be an integer, got a Go value of type int")
}

// A manifest nobody validated refuses; it does not let values through.
func TestResolveUnknownType(t *testing.T) {
	v := &packs.Verb{Name: "x", Params: []packs.Param{{Name: "a", Type: "thing"}}}
	_, err := v.Resolve(map[string]any{"a": "b"})
	require.ErrorContains(t, err, `a: has the unknown type "thing"`)
}

func FuzzResolve(f *testing.F) {
	for _, tt := range resolveCases {
		f.Add(tt.params)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var params map[string]any
		if d.Decode(&params) != nil {
			t.Skip()
		}
		v := everyType()
		before := fmt.Sprintf("%#v", params)
		got, err := v.Resolve(params)
		require.Equal(t, before, fmt.Sprintf("%#v", params))
		if err != nil {
			require.Nil(t, got)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		// What came out is sound, and resolving it again changes nothing.
		again, err := v.Resolve(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
		for name, value := range got {
			p := v.Param(name)
			if p == nil {
				require.Equal(t, "namespace", name)
				continue
			}
			if s, ok := value.(string); ok {
				require.LessOrEqual(t, len(s), p.LengthLimit())
			}
			if n, ok := value.(json.Number); ok && p.Type == packs.Integer {
				i, err := n.Int64()
				require.NoError(t, err)
				require.Equal(t, i, got.Int(name))
			}
			require.False(t, value == nil && !p.Nullable && p.Type != packs.Any)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	v := everyType()
	params := decode(b, `{"id":"`+lowerUUID+`","text":"abc","kind":"note","limit":10,"tags":["x","y"],"namespace":"local"}`)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = v.Resolve(params)
	}
}
