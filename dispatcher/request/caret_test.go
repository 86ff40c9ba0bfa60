package request_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// lines joins what the tables below show line by line.
func lines(l ...string) string { return strings.Join(l, "\n") }

func TestCaret(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"OK bareword", `search(query=LoRA, limit=3)`, lines(
			"line 1, column 14: `LoRA` is a bareword; a text needs double quotes: write query=\"LoRA\"",
			`  search(query=LoRA, limit=3)`,
			`               ^`)},
		{"OK end of the text", `a() |`, lines(
			"line 1, column 6: the text ends after `|`, where a call was due; write one such as verb(name=\"value\")",
			`  a() |`,
			`       ^`)},
		{"OK second of three lines", "a(x=1)\r\n  | b(y=True)\r\n  | c()", lines(
			"line 2, column 9: `True` is not in lower case; write true",
			`    | b(y=True)`,
			`          ^`)},
		{"OK tabs show as one space", "\n\ta(\tx=01)", lines(
			"line 2, column 7: `01` has a leading zero; remove it, or pass the value as a string",
			`   a( x=01)`,
			`        ^`)},
		{"OK columns are code points", `a(x="日本é😀", y=z)`, lines(
			"line 1, column 15: `z` is a bareword; a text needs double quotes: write y=\"z\"",
			`  a(x="日本é😀", y=z)`,
			`                ^`)},
		{"OK long line, cut on both sides", `a(x="` + strings.Repeat("0123456789", 9) + `", y=z, w="` + strings.Repeat("9876543210", 9) + `")`, lines(
			"line 1, column 101: `z` is a bareword; a text needs double quotes: write y=\"z\"",
			`  …`+strings.Repeat("5678901234", 5)+`56789", y=z, w="`+strings.Repeat("9876543210", 3)+`9876…`,
			`                                                               ^`)},
		{"OK what a terminal would act on is escaped", "x\u202e(a=\u2028{\"ok\":true}\x1b[31m)", lines(
			"line 1, column 2: found `\\u202e` where `(` was due; a verb is ASCII letters, digits and underscores, with at most one dot, as in pack.verb()",
			"  x\\u202e(a=\\u2028{\"ok\":true}\\u001b[31m)",
			`   ^`)},
		{"OK escaped characters before the caret", "a(x=\"\u202e\", y=z)", lines(
			"line 1, column 12: `z` is a bareword; a text needs double quotes: write y=\"z\"",
			`  a(x="\u202e", y=z)`,
			`                  ^`)},
		{"OK bytes that are not UTF-8", "a(x=\"\xff\")", lines(
			"line 1, column 6: the byte 0xff is not valid UTF-8 here; send the text as UTF-8",
			`  a(x="\xff")`,
			`       ^`)},
		{"OK no place, no caret", "", "the request is empty; write a call such as verb(name=\"value\")"},
		{"OK mixed separators show two requests", "[a(x=1), b() | c()]", lines(
			"line 1, column 14: a batch separates its calls with commas and a chain with |, and a request is one of the two; send two requests: the batch `[a(x=1)]` and the chain `b() | …`",
			`  [a(x=1), b() | c()]`,
			`               ^`)},
		{"OK bare calls are told to take brackets", "a(), b()", lines(
			"line 1, column 4: calls separated by commas are a batch: wrap them in [ ], as in [a(), b()]; or send two requests: `a()`, then `b()`",
			`  a(), b()`,
			`     ^`)},
		{"OK JSON", "[\n  {\"tool\": \"search\", \"arg\": {}}\n]", lines(
			"line 2, column 22: the key `arg` is unknown; write \"args\" for the arguments",
			`    {"tool": "search", "arg": {}}`,
			`                       ^`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, parseError(t, c.text).Caret())
		})
	}
}

// Nothing a terminal or a log would act on leaves with an error's text, whatever the text held.
func TestErrorTextIsFitToPrint(t *testing.T) {
	for _, c := range refused {
		requireFit(t, parseError(t, c.text))
	}
	for _, bad := range []string{"\u2028", "\u2029", "\u202e", "\u2066", "\r", "\x1b[2J", "\x00", "\x7f", "\u0085", "\u200b", "\ufeff", "\U000e0001", "\U0001f600"} {
		for _, frame := range []string{"x%", "x%()", "%()", "v(%=1)", "v(x%)", "v(x=%)", "v(x=a%)", "v(x='%')", "v(x=1 y%=2)", `v(x={"a%\q":1})`, `v(x={a%:1})`, "[a()%]", "a()%",
			"a(),%b()", "[a(x=\"%\") | b()]", `{"tool":"x%"}`, `{"tool%":"x"}`, `{"tool":"x"}%`, `{"tool":"x","args":{"%":"$prev"}}`, `{"tool":"x","args":{"x":a%}}`, `a()|b(x=$prev%)`} {
			text := strings.ReplaceAll(frame, "%", bad)
			if _, err := request.Parse(text); err != nil {
				requireFit(t, parseError(t, text))
			}
		}
	}
}

func requireFit(tb testing.TB, e *request.Error) {
	tb.Helper()
	for _, s := range []string{e.Error(), e.Detail, e.Found, e.Expected, e.Reason, e.Bracket, strings.ReplaceAll(e.Caret(), "\n", "")} {
		require.True(tb, utf8.ValidString(s), "%q", s)
		for _, r := range s {
			require.True(tb, unicode.IsPrint(r), "%q in %q", r, s)
		}
	}
	if e.HasPos {
		require.Len(tb, strings.Split(e.Caret(), "\n"), 3)
		require.Less(tb, len(e.Caret()), 4000)
	}
}
