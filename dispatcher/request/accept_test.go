package request_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// accepted are texts that parse, beside those of the conformance file: name, text, and the whole
// request as MarshalJSON writes it. They also seed the fuzz target.
var accepted = []struct{ name, text, want string }{
	{"OK unicode white space around", "\u2003\u0085\u00a0\u3000\v a() \u2028\u2029\v", single("a", "", "")},
	{"OK form feed between tokens", "a\f(\fx\f=\f1\f)", single("a", `"x":1`, "")},
	{"OK white space inside literals", "a(x= [ 1 , 2 ] , y= { \"k\" : 1 , \"l\" : { } } , z=[ ])", single("a", `"x":[1,2],"y":{"k":1,"l":{}},"z":[]`, "")},
	{"OK argument names differ by case", "a(x=1, X=2)", single("a", `"x":1,"X":2`, "")},
	{"OK names that are words", "null.true(false=1, null=2, help=3, namespace=4)", single("null.true", `"false":1,"null":2,"help":3,"namespace":4`, "")},
	{"OK reserved name as a nested key", `a(x={"presentation":1,"presentation_per_op":2})`, single("a", `"x":{"presentation":1,"presentation_per_op":2}`, "")},
	{"OK delete character in a string", "a(x=\"\x7f\")", single("a", `"x":"\u007f"`, "")},
	{"OK every escape", `a(x="\"\\\/\b\f\n\r\t\u00E9\ud83d\uDE00")`, single("a", `"x":"\"\\/\b\f\n\r\té😀"`, "")},
	{"OK escaped null byte in a key", `a(x={"k\u0000":1,"k":2})`, single("a", `"x":{"k\u0000":1,"k":2}`, "")},
	{"OK numbers keep their spelling", `a(x=[0,-0,-0.0,1E+5,1e05,5e-324,1.7976931348623157e308,0e999999,0.000e-999999])`, single("a", `"x":[0,-0,-0.0,1E+5,1e05,5e-324,1.7976931348623157e308,0e999999,0.000e-999999]`, "")},
	{"OK a number of 128 bytes", "a(x=" + strings.Repeat("9", 128) + ")", single("a", `"x":`+strings.Repeat("9", 128), "")},
	{"OK repeated keys by different escapes", `a(x={"a":1,"b":2,"\u0061":3})`, single("a", `"x":{"b":2,"a":3}`, "")},
	{"OK many repeated keys", `a(x={` + strings.Repeat(`"k":1,"\u006b":2,"l":3,`, 20) + `"m":4})`, single("a", `"x":{"k":2,"l":3,"m":4}`, "")},
	{"OK a repeated key replaces a reference", `a(x={"k":$prev,"k":1})`, single("a", `"x":{"k":1}`, "")},
	{"OK a repeated key replaces a nested reference", `a(x=[{"k":[$prev.id],"k":1}])`, single("a", `"x":[{"k":1}]`, "")},
	{"OK backslash strings that protect nothing", `a(x="\\", y="\\\\prev", z="\\$prevish")`, single("a", `"x":"\\","y":"\\\\prev","z":"\\$prevish"`, "")},
	{"OK protected references lose one backslash", `a(x="\\$prev", y="\\\\$prev.a", z="\u005c$prev[", w=["\\$prev[x"])`, single("a", `"x":"$prev","y":"\\$prev.a","z":"$prev[","w":["$prev[x"]`, "")},
	{"OK malformed quoted references are texts", `a(a="$prev.", b="$prev[", c="$prev[]", d="$prev[1", e="$prev[x]", f="$prev..a", g="$prev.a]", h="$prev[1]x", i="$prev.a.", j="$prev[1]]", k="$prevish", l="$prev x", m="$prev]", n="$pre")`,
		single("a", `"a":"$prev.","b":"$prev[","c":"$prev[]","d":"$prev[1","e":"$prev[x]","f":"$prev..a","g":"$prev.a]","h":"$prev[1]x","i":"$prev.a.","j":"$prev[1]]","k":"$prevish","l":"$prev x","m":"$prev]","n":"$pre"`, "")},
	{"OK keys are never references", `a(x={"$prev":1,"\\$prev":2})`, single("a", `"x":{"$prev":1,"\\$prev":2}`, "")},
	{"OK references of every kind", `a() | b(a=$prev, b=$prev.f.g, c=$prev[3].f, d=$prev.f[3][4].g, e="$prev.some-key", f="$prev. ", g="$prev[00]", h=$prev[0099999999999999999999999])`,
		`{"mode":"chain","ops":[{"tool":"a","args":{},"refs":{}},{"tool":"b","args":{},"refs":{"a":"","b":"f.g","c":"[3].f","d":"f[3][4].g","e":"some-key","f":" ","g":"[0]","h":"[99999999999999999999999]"}}]}`},
	{"OK references inside values", `a() | b(x={"m":[1,$prev.id,{"n":"$prev[0]"}]}, y=[[$prev]])`,
		`{"mode":"chain","ops":[{"tool":"a","args":{},"refs":{}},{"tool":"b","args":{"x":{"m":[1,null,{"n":null}]},"y":[[null]]},"refs":{"x.m[1]":"id","x.m[2].n":"[0]","y[0][0]":""}}]}`},
	{"OK quoted references with escapes", `a() | b(x="\u0024prev.a\n", y="$\u0070rev[1]", z="$prev\u002eid")`,
		`{"mode":"chain","ops":[{"tool":"a","args":{},"refs":{}},{"tool":"b","args":{},"refs":{"x":"a\n","y":"[1]","z":"id"}}]}`},
	{"OK white space around a reference", "a() | b(x= $prev.id , y=[ $prev ])",
		`{"mode":"chain","ops":[{"tool":"a","args":{},"refs":{}},{"tool":"b","args":{"y":[null]},"refs":{"x":"id","y[0]":""}}]}`},
	{"OK a reference in the first call of a chain", `a(x=$prev) | b()`, `{"mode":"chain","ops":[{"tool":"a","args":{},"refs":{"x":""}},{"tool":"b","args":{},"refs":{}}]}`},
	{"OK null stays null", `search(query="x", tag=null)`, single("search", `"query":"x","tag":null`, "")},
	{"OK more arguments than are compared pairwise", "v(" + manyArgs(200) + ")", single("v", manyMembers(200), "")},
	{"OK JSON with any argument name", `{"tool":"a","args":{"":1,"a b":2,"$prev":3,"é":4}}`, single("a", `"":1,"a b":2,"$prev":3,"é":4`, "")},
	{"OK JSON key written with escapes", `{"t\u006fol":"\u0061.b","\u0061rgs":{"\u0078":1}}`, single("a.b", `"x":1`, "")},
	{"OK JSON repeated envelope keys", `{"tool":7,"args":[],"tool":"a","args":{"x":1}}`, single("a", `"x":1`, "")},
	{"OK JSON repeated argument replaces a reference", `{"tool":"a","args":{"x":"$prev","x":1}}`, single("a", `"x":1`, "")},
	{"OK JSON strings near a reference", `{"tool":"a","args":{"x":["$prevish","$","$pre","\\$prev"," $prev"]}}`, single("a", `"x":["$prevish","$","$pre","\\$prev"," $prev"]`, "")},
	{"OK JSON reserved name as a nested key", `{"tool":"a","args":{"x":{"presentation":1}}}`, single("a", `"x":{"presentation":1}`, "")},
	{"OK JSON array behind white space", "\n[ \t\r\n{\"tool\":\"a\"}\n]", `{"mode":"parallel","ops":[{"tool":"a","args":{},"refs":{}}]}`},
}

func single(tool, args, refs string) string {
	return `{"mode":"single","ops":[{"tool":"` + tool + `","args":{` + args + `},"refs":{` + refs + `}}]}`
}

func manyArgs(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(argName(i) + "=" + "1")
	}
	return b.String()
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + argName(i) + `":1`)
	}
	return b.String()
}

func argName(i int) string {
	return "a" + strings.Repeat("b", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26))
}

func TestAccepted(t *testing.T) {
	for _, c := range accepted {
		t.Run(c.name, func(t *testing.T) {
			req, err := request.Parse(c.text)
			require.NoError(t, err)
			got, err := req.MarshalJSON()
			require.NoError(t, err)
			// Order and spelling count here, so the text is compared, once its escapes are the standard ones.
			require.Equal(t, standard(t, c.want), standard(t, string(got)))
		})
	}
}

// standard rewrites the strings of a JSON text with one choice of escapes and keeps all else.
func standard(tb testing.TB, text string) string {
	tb.Helper()
	var out strings.Builder
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		piece, err := json.Marshal(token)
		if d, ok := token.(json.Delim); ok {
			piece, err = []byte(d.String()), nil
		}
		require.NoError(tb, err)
		out.Write(piece)
		out.WriteByte(' ')
	}
	return out.String()
}

// Arguments and members come in the order of the text.
func TestOrder(t *testing.T) {
	req, err := request.Parse(`v(z=1, a={"q":1,"b":2,"q":3}, m=3)`)
	require.NoError(t, err)
	var names []string
	for _, a := range req.Ops[0].Args {
		names = append(names, a.Name)
		for key := range a.Value.Members() {
			names = append(names, key)
		}
	}
	require.Equal(t, []string{"z", "a", "b", "q", "m"}, names)
}

// A text's two forms make equal values (third seed: both forms produce the same operation).
func TestFormsAgree(t *testing.T) {
	for _, c := range conformance(t) {
		requireFormsAgree(t, c.Input)
	}
	for _, c := range accepted {
		requireFormsAgree(t, c.text)
	}
	requireFormsAgree(t, batchOfTen)
}

func requireFormsAgree(tb testing.TB, text string) {
	tb.Helper()
	req, err := request.Parse(text)
	if err != nil || req.Mode == request.Chain {
		return
	}
	if len(text) > 1000 || strings.Count(text, "[") > 50 {
		return // the envelope of JSON form counts for its depth and length
	}
	twin, err := request.Parse(jsonForm(tb, req))
	if err != nil {
		var e *request.Error
		require.ErrorAs(tb, err, &e)
		require.Equal(tb, request.PrevRefInJsonForm, e.Kind, "JSON form holds no string that begins as a reference does")
		return
	}
	require.Equal(tb, req.Mode, twin.Mode)
	for i, op := range req.Ops {
		require.Equal(tb, op.Tool, twin.Ops[i].Tool)
		require.Equal(tb, plainArgs(tb, op), plainArgs(tb, twin.Ops[i]))
	}
}

func plainArgs(tb testing.TB, op request.Operation) map[string]any {
	tb.Helper()
	args := map[string]any{}
	for _, a := range op.Args {
		v, err := a.Value.Any(nil)
		require.NoError(tb, err)
		args[a.Name] = v
	}
	return args
}
