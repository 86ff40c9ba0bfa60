package request_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

func TestPrint(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"OK call", " a ( ) ", "a()"},
		{"OK arguments", `p.v(x=1,y="a",z=[1,{"k":null},true,false])`, `p.v(x=1, y="a", z=[1, {"k": null}, true, false])`},
		{"OK batch", "[a(),b( )]", "[a(), b()]"},
		{"OK batch of one", "[a()]", "[a()]"},
		{"OK chain", "a()|b(x=$prev.id,y=\"$prev.some-key\",z=\"$prev[007]\")", `a() | b(x=$prev.id, y="$prev.some-key", z=$prev[7])`},
		{"OK raw white space is escaped", "a(x=\"1\n2\t3\r4\")", `a(x="1\n2\t3\r4")`},
		{"OK what is not visible is escaped", "a(x=\"\u202e\u2028\x7f é 日 😀 \U000e0001\")", `a(x="\u202e\u2028\u007f é 日 😀 \udb40\udc01")`},
		{"OK texts that must not become references", `a(x="\\$prev", y="\\\\$prev.a", z="$prev[x]", w="\\n")`, `a(x="\\$prev", y="\\\\$prev.a", z="$prev[x]", w="\\n")`},
		{"OK repeated keys once", `a(x={"k":1,"l":2,"k":3})`, `a(x={"l": 2, "k": 3})`},
		{"OK JSON as calls", `[{"tool":"a","args":{"x":"1\n\u0032"}},{"tool":"p.b"}]`, `[a(x="1\n2"), p.b()]`},
		{"OK JSON text that the function form would unescape", `{"tool":"a","args":{"x":"\\$prev.id"}}`, `a(x="\\\\$prev.id")`},
		{"OK JSON where a name is no identifier", `{"tool":"a","args":{"a b":"\\$prev","c":[1]}}`, `{"tool":"a","args":{"a b":"\\$prev", "c":[1]}}`},
		{"OK JSON array where a name is no identifier", `[{"tool":"a"},{"tool":"b","args":{"":{"k":0}}}]`, `[{"tool":"a","args":{}}, {"tool":"b","args":{"":{"k": 0}}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := request.Parse(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, req.String())
			requirePrints(t, c.text)
		})
	}
}

// Print-then-parse is the identity for all that the tables hold.
func TestPrintIsIdentity(t *testing.T) {
	for _, text := range seeds(t) {
		requirePrints(t, text)
	}
	requirePrints(t, batchOfTen)
}

// A request near the limit that the readable spelling would carry over it is printed tightly.
func TestPrintFitsTheLimit(t *testing.T) {
	for name, text := range map[string]string{
		"OK raw line breaks":  `a(x="` + strings.Repeat("\n", request.MaxBytes-7) + `")`,
		"OK no white space":   `a(x=[` + strings.Repeat("1,", request.MaxBytes/2-5) + `1])`,
		"OK control escapes":  `a(x="` + strings.Repeat(`\u0001`, request.MaxBytes/6-2) + `")`,
		"OK short escapes":    `a(x={"` + strings.Repeat(`\b\f`, request.MaxBytes/4-3) + `":1})`,
		"OK invisible":        `a(x="` + strings.Repeat("\u2028", request.MaxBytes/3-3) + `")`,
		"OK malformed quotes": `a(x=[` + strings.Repeat(`"$prev[",`, request.MaxBytes/9-2) + `1])`,
	} {
		t.Run(name, func(t *testing.T) { requirePrints(t, text) })
	}
}

// requirePrints parses, prints, parses again and wants the same request. Texts that do not parse pass.
func requirePrints(tb testing.TB, text string) {
	tb.Helper()
	req, err := request.Parse(text)
	if err != nil {
		return
	}
	printed := req.String()
	again, err := request.Parse(printed)
	require.NoError(tb, err, "%.200q", printed)
	want, err := req.MarshalJSON()
	require.NoError(tb, err)
	got, err := again.MarshalJSON()
	require.NoError(tb, err)
	if string(want) != string(got) {
		require.Equal(tb, string(want), string(got))
	}
	if again.String() != printed {
		require.Equal(tb, printed, again.String(), "printing is canonical")
	}
}
