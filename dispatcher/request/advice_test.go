package request_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// Messages teach: each says what to write instead (request.md 6).
func TestAdvice(t *testing.T) {
	for _, c := range []struct{ text, advice string }{
		{"", `write a call such as verb(name="value")`},
		{"search(query=LoRA)", `write query="LoRA"`},
		{"v(x=[LoRA])", `write "LoRA"`},
		{"v(x=hello world)", `double quotes: x="hello world"`},
		{`v(x=say "hi")`, `x="say \"hi\""`},
		{"v(x='a b')", `write x="a b"`},
		{"v(x=“a”)", "use plain double quotes"},
		{"v(x=True)", "write true"},
		{"v(x=NULL)", "write null"},
		{"v(x=None)", `write null, or x="None" for the text`},
		{"v(x=NaN)", "pass it as a string, or leave the argument out"},
		{"v(x=01)", "remove it, or pass the value as a string"},
		{"v(x=+1)", "write the number without it"},
		{"v(x=.5)", "write a zero before the point"},
		{"v(x=0x1f)", "write the number in decimal"},
		{"v(x=1.2.3)", `as a string: "1.2.3"`},
		{"v(x=1e999)", "pass it as a string if it must stay as it is"},
		{"v(x=" + strings.Repeat("1", 129) + ")", "shorten it, or pass it as a string"},
		{"v(x=1 y=2)", "put a comma before `y=2`"},
		{"v(x=1; y=2)", "put a comma before `y=2`"},
		{"v(x=[1 2])", "put a comma before `2`"},
		{`v(x="a" y="b")`, "put a comma before it"},
		{"v(x=[1] y=2)", "put a comma before it"},
		{"v(x=, y=1)", `write x="value", or null for none`},
		{"v(x=[1,])", "remove the comma"},
		{`v(x={"k":})`, "write a value such as"},
		{"v(x=", "close what is open"},
		{"v(x=w(1))", "run it first, in a chain: w(1) | verb(name=$prev)"},
		{"v(x=p.w())", "run it first, in a chain: p.w() | verb(name=$prev)"},
		{"v(x=(1))", "write the value alone"},
		{"v(x=1[", "a value here is a string, a number, true, false, null, an array or an object"},
		{`v(x="\$prev")`, `write "\\$prev" for the text $prev`},
		{`v(x="\q")`, "write the string with JSON's escapes"},
		{`v(x="abc)`, `write a quote inside it as \"`},
		{"v(x=$next)", "write $prev, $prev.field or $prev[0]"},
		{"a()|b(x=$prev.0)", "write an index in brackets, as in $prev[0]"},
		{"a()|b(x=$prev.a-b)", `as in "$prev.some-key"`},
		{"a()|b(x=$prev. a)", "no white space may stand around a dot"},
		{"v(x=$prev)", "write first() | second(name=$prev)"},
		{`v(x="$prev")`, `or "\\$prev" for the text itself`},

		{"v(x)", `write name="x" for a text, or x="value"`},
		{"v(x:1)", `write x="value"`},
		{"v(x-y=1)", "a name is ASCII letters, digits and underscores"},
		{"v(w())", "run it first and use $prev in a chain"},
		{`v("x")`, "arguments are named and names have no quotes"},
		{"v(=1)", "put the argument's name before the `=`"},
		{"v(x=1,)", "remove the comma before it"},
		{"v(,x=1)", "remove this comma"},
		{"v(x=1,]", "close the call with `)` first"},
		{"v(/* */)", "a request has no comments"},
		{"v(x=1,", "write name=\"value\" and `)`"},
		{"v(x", `write x="value"`},
		{"v(", "add the missing `)`"},
		{"v(x=1, x=2)", "keep one of them"},
		{"v(presentation=1)", "put it beside ops"},

		{"ping", "write ping()"},
		{"a b()", `write a(name="value")`},
		{"a .b()", "no white space may stand around the dot"},
		{"my-verb()", "as in pack.verb()"},
		{"a.b.c()", "write verb(…) or pack.verb(…)"},
		{"a. b()", "no white space may stand around a dot"},
		{`"a()"`, "a call is written without quotes around it"},
		{"a() | {}", "JSON form cannot be mixed with calls"},
		{"[[a()]]", "write its calls one by one"},
		{"| a()", "a call is due on both sides of a separator"},
		{"()", "put the verb before the parenthesis"},
		{"7up()", "a verb begins with a letter or an underscore"},
		{"\ufeffa()", "byte order mark; remove it"},
		{"a() |", "the text ends after `|`"},

		{"[]", "write at least one call"},
		{"[a(),]", "remove it, or add a call after it"},
		{"[a()", "add `]`, or a comma and another call"},
		{"[a() b()]", "separated by commas"},
		{"[a()] | b()", "a batch cannot be part of a chain; send two requests"},
		{"[a()] b()", "put every call between its brackets"},
		{"a() b()", "write [a(), b()] to run both"},
		{"a() | b() c()", "put a | before it"},
		{"a() -> b()", "a chain is written a() | b()"},
		{"a() && b()", "a chain is written a() | b()"},
		{"a(); b()", "separate calls with commas in a batch"},
		{"a() # x", "a request has no comments"},
		{"a())", "remove this parenthesis"},
		{"a()]", "there is no `[` that it closes"},
		{"a(), b()", "wrap them in [ ], as in [a(), b()]"},
		{"a(),", "as in [a(), other()]"},
		{"a() | b(), c()", "send two requests: `a() | b()`, then `c()`"},
		{"a() | b(),", "send `a() | b()` and what should follow as two requests"},
		{"[a() | b()]", "the batch `[…]` and the chain `a() | …`"},
		{"[a(), b(), c() | d()]", "the batch `[a(), b()]` and the chain `c() | …`"},

		{"v(x={k:1})", `write "k": value`},
		{"v(x={'k':1})", "keys have double quotes"},
		{`v(x={"k"=1})`, `inside an object write "key": value`},
		{`v(x={"k" 1})`, "a colon stands between a key and its value"},
		{`v(x={"k":1,})`, "remove the comma before it"},
		{`v(x={`, "close it with `}`"},
		{"v(x={\"k\n\":1})", "write the key as a JSON string"},

		{`{"tool":"a","arg":{}}`, `write "args" for the arguments`},
		{`{"verb":"a"}`, `write "tool" for the verb`},
		{`{"tool":"a","id":7}`, `arguments belong inside "args"`},
		{`{}`, `write {"tool": "verb", "args": {…}}`},
		{`{"tool":"a","args":[]}`, "leave it out when there are none"},
		{`{"tool":1}`, "it is the verb, as a string"},
		{`{"tool":""}`, `as in "verb" or "pack.verb"`},
		{`{"tool":"a."}`, `write "pack.verb"`},
		{`{"tool":"a"} | {"tool":"b"}`, "write them as calls: a() | b(name=$prev)"},
		{`{"tool":"a"} {"tool":"b"}`, "several operations are written [{…}, {…}]"},
		{`[{"tool":"a"}] {"tool":"b"}`, "put every operation between the brackets"},
		{`[{"tool":"a"}, b()]`, `write {"tool": "b", "args": {…}}`},
		{`[{"tool":"a"}, b`, `write "b"`},
		{`[{"tool":"a"},]`, "remove the comma before it"},
		{`{"tool":"a",}`, "remove the comma before it"},
		{`{tool:"a"}`, `write "tool"`},
		{`{'tool':"a"}`, "not single ones"},
		{`{"tool":'a'}`, "strings have double quotes"},
		{"{\"tool\":`a`}", "strings have double quotes"},
		{`{"tool":"a","args":{"x":$prev}}`, "write a chain of calls"},
		{`{"tool":"a","args":{"x":"$prev"}}`, "write a chain of calls"},
		{`{"tool":"a","args":{"x":True}}`, "write true"},
		{`{"tool":"a","args":{"x":01`, "JSON numbers look like -12.5e3"},
		{`{"tool":"a`, `write a quote inside it as \"`},
		{`{"tool":"a\q"}`, "write the string with JSON's escapes"},
		{`{"tool"`, "close every string, array and object"},
		{`[{"tool":"a"} {"tool":"b"}]`, "the text must be one JSON value"},
		{"a(x=\"\xff\")", "send the text as UTF-8"},
	} {
		require.Contains(t, parseError(t, c.text).Error(), c.advice, "%q", c.text)
	}
	require.Contains(t, parseError(t, strings.Repeat("[", request.MaxBytes+1)).Error(), "split it into several requests")
	require.Contains(t, parseError(t, "v(x="+strings.Repeat("[", 65)).Error(), "an argument value may nest 64")
	require.Contains(t, parseError(t, `{"a":`+strings.Repeat("[", 65)).Error(), "a request in JSON form may nest 64")
	require.Contains(t, parseError(t, "["+strings.Repeat("t(),", 101)).Error(), "send the rest in another request")
}

// Texts that break off anywhere, or miss or double a byte anywhere, are answered and not more than that.
func TestBrokenTexts(t *testing.T) {
	check := func(text string) {
		if _, err := request.Parse(text); err != nil {
			e := parseError(t, text)
			require.LessOrEqual(t, e.Pos, len(text))
			if e.HasPos {
				requireFit(t, e)
			}
			return
		}
		requirePrints(t, text)
		requireJSONAgrees(t, text)
	}
	for _, text := range seeds(t) {
		if len(text) > 120 {
			continue
		}
		for i := range text {
			check(text[:i])
			check(text[:i] + text[i+1:])
			check(text[:i] + text[i:i+1] + text[i:])
		}
	}
}
