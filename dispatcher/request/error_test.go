package request_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

const nowhere = -1

// refused are texts that do not parse, with the kind, the position, and the fields that the kind has.
// They also seed the fuzz target.
var refused = []struct {
	name, text string
	want       request.Error
}{
	{"Err empty", "", at(request.Empty, nowhere)},
	{"Err white space only", " \t\r\n\v\f\u0085\u00a0\u2003\u3000", at(request.Empty, nowhere)},
	{"Err not UTF-8", "  a(x=\"é\xff\")", at(request.InvalidEncoding, 9)},
	{"Err UTF-8 cut short", "a(x=\"\xe4\xb8\")", at(request.InvalidEncoding, 5)},
	{"Err UTF-8 of a surrogate", "a(x=\"\xed\xa0\x80\")", at(request.InvalidEncoding, 5)},
	{"Err 101 calls in a batch", "[" + strings.Repeat("t(),", 100) + "t()]", request.Error{Kind: request.TooManyOps, Pos: 401, HasPos: true, Count: 101, Max: 100}},
	{"Err 101 calls in a chain, the last one broken", strings.Repeat("t()|", 100) + "!", request.Error{Kind: request.TooManyOps, Pos: 400, HasPos: true, Count: 101, Max: 100}},
	{"Err 102 operations in JSON", "[" + strings.Repeat(`{"tool":"t"},`, 101) + `{"tool":"t"}]`, request.Error{Kind: request.TooManyOps, Pos: 1301, HasPos: true, Count: 102, Max: 100}},
	{"Err too deep", " v(a=" + strings.Repeat("[", 65), request.Error{Kind: request.NestingTooDeep, Pos: 69, HasPos: true, Depth: 65, Max: 64}},
	{"Err too deep inside an object", "v(a=" + strings.Repeat(`{"k":`, 65), request.Error{Kind: request.NestingTooDeep, Pos: 324, HasPos: true, Depth: 65, Max: 64}},
	{"Err too deep in JSON, the envelope counts", `{"tool":"t","args":{"x":` + strings.Repeat("[", 63), request.Error{Kind: request.NestingTooDeep, Pos: 86, HasPos: true, Depth: 65, Max: 64}},

	{"Err no equals", "v(x)", unexpected(3, ")", "`=`")},
	{"Err colon for equals", "v(x:1)", unexpected(3, ":", "`=`")},
	{"Err no parenthesis", "a b()", unexpected(2, "b", "`(`")},
	{"Err white space before the dot", "a .b()", unexpected(2, ".", "`(`")},
	{"Err white space after the first name of two", "a.b .c()", unexpected(4, ".", "`(`")},
	{"Err vertical tab is no white space", "a\v()", unexpected(1, `\u000b`, "`(`")},
	{"Err letters beyond ASCII in a verb", "aé()", unexpected(1, "é", "`(`")},
	{"Err two calls, no separator", "[a() b()]", unexpected(5, "b", "`,` or `]`")},
	{"Err junk behind a call", "a() ;", unexpected(4, ";", "`|` or the end of the request")},
	{"Err junk behind a batch", "[a()] | b()", unexpected(6, "|", "the end of the request")},
	{"Err junk behind a reference", "a()|b(x=$prev x)", unexpected(14, "x", "`,` or `)`")},
	{"Err reference field with a dash", "a()|b(x=$prev.a-b)", unexpected(15, "-", "`,` or `)`")},
	{"Err index followed by a letter", "a()|b(x=$prev[1x])", unexpected(15, "x", "`]`")},
	{"Err single quoted key", "v(x={'k':1})", unexpected(5, "'", "a key in double quotes or `}`")},
	{"Err comma before a brace", `v(x={"k":1,})`, unexpected(11, "}", "a key in double quotes")},
	{"Err no colon", `v(x={"k",1})`, unexpected(8, ",", "`:`")},
	{"Err array closed by a brace", "v(x=[1})", unexpected(6, "}", "`,` or `]`")},
	{"Err object closed by a bracket", `v(x={"k":1])`, unexpected(10, "]", "`,` or `}`")},

	{"Err ends before the parenthesis", "  ping", ended(6, "`(`")},
	{"Err ends before equals", "v(x ", ended(3, "`=`")},
	{"Err ends in an array", "v(x=[1 ", ended(6, "`]`")},
	{"Err ends in an object", `v(x={"k":1`, ended(10, "`}`")},
	{"Err ends behind a comma of an object", `v(x={"k":1,`, ended(11, "`}`")},
	{"Err ends before a key", "v(x={", ended(5, "`}`")},
	{"Err ends before a colon", `v(x={"k"`, ended(8, "`:`")},
	{"Err ends in a batch", "[a()", ended(4, "`]`")},
	{"Err ends in an index", "a()|b(x=$prev[12", ended(16, "`]`")},

	{"Err no verb", "\n 9()", identifier(2, "9")},
	{"Err no name behind the dot", "a.(x)", identifier(2, "(")},
	{"Err ends behind the dot", "a.", identifier(2, "")},
	{"Err argument without a name", `v("x")`, identifier(2, `"`)},
	{"Err trailing comma in a call", "v(x=1,)", identifier(6, ")")},
	{"Err ends behind a comma in a call", "v(x=1,", identifier(6, "")},
	{"Err ends behind a pipe", "a() |", identifier(5, "")},
	{"Err only a bracket", "[", identifier(1, "")},
	{"Err array of a number", "[1]", identifier(1, "1")},
	{"Err array of a string", `["x"]`, identifier(1, `"`)},
	{"Err array of arrays", `[[{}]]`, identifier(1, "[")},
	{"Err ends behind a comma in a batch", "[a(),", identifier(5, "")},
	{"Err field that is a number", "a()|b(x=$prev.0)", identifier(14, "0")},
	{"Err field that is missing", "a()|b(x=$prev.", identifier(14, "")},
	{"Err byte order mark", "\ufeffa()", identifier(0, `\ufeff`)},
	{"Err letters beyond ASCII in a name", "a(é=1)", identifier(2, "é")},
	{"Err JSON tool empty", `{"tool":""}`, identifier(8, `"`)},
	{"Err JSON tool with a space", `{"tool":"a .b"}`, identifier(10, " ")},
	{"Err JSON tool with a space behind escapes", `{"tool":"\u0061\u0062 .b"}`, identifier(21, " ")},
	{"Err JSON tool ends with a dot", `{"tool":"a."}`, identifier(11, `"`)},
	{"Err JSON tool with two dots running", `{"tool":"a..b"}`, identifier(11, ".")},
	{"Err JSON tool with a null byte", `{"tool":"a\u0000"}`, identifier(10, `\`)},

	{"Err argument given twice", "v(x=1, y=2, x=3)", request.Error{Kind: request.DuplicateArg, Pos: 12, HasPos: true, Arg: "x"}},
	{"Err argument given twice among many", "v(" + manyArgs(100) + "," + argName(40) + "=$prev)", request.Error{Kind: request.DuplicateArg, Pos: len("v(" + manyArgs(100) + ","), HasPos: true, Arg: argName(40)}},
	{"Err argument given twice, before what follows", "v(x=1, x=2, !)", request.Error{Kind: request.DuplicateArg, Pos: 7, HasPos: true, Arg: "x"}},

	{"Err bareword", "v(query=LoRA)", value(8, "`LoRA` is a bareword")},
	{"Err bareword in an array", "v(x=[ LoRA])", value(6, "`LoRA` is a bareword")},
	{"Err text without quotes", "v(x=hello world)", value(4, "`hello world` is not a value")},
	{"Err Python true", "v(x=True)", value(4, "`True` is not in lower case")},
	{"Err Python none", "v(x=None)", value(4, "`None` is not a value")},
	{"Err not a number", "v(x=NaN)", value(4, "`NaN` is not a JSON number")},
	{"Err infinity", "v(x=-Infinity)", value(4, "`-Infinity` is not a JSON number")},
	{"Err single quotes", "v(x='a b')", value(4, "`'a b'` is not in double quotes")},
	{"Err typographic quotes", "v(x=“a”)", value(4, "`“a”` has typographic quotes")},
	{"Err leading zero", "v(x=-01)", value(4, "`-01` has a leading zero")},
	{"Err plus", "v(x=+1)", value(4, "`+1` has a plus sign")},
	{"Err leading point", "v(x=.5)", value(4, "`.5` begins with a point")},
	{"Err hexadecimal", "v(x=0xff)", value(4, "`0xff` is not decimal")},
	{"Err number with a point at its end", "v(x=1.)", value(4, "`1.` is not a JSON number")},
	{"Err lone minus", "v(x=-)", value(4, "`-` is not a JSON number")},
	{"Err exponent without digits", "v(x=1e+)", value(4, "`1e+` is not a JSON number")},
	{"Err number too long", "v(x=" + strings.Repeat("1", 129) + ")", value(4, "the number has 129 bytes and may have 128")},
	{"Err number too large", "v(x=1e999)", value(4, "`1e999` is outside the range of a 64-bit float")},
	{"Err number that rounds to zero", "v(x=1e-3000000)", value(4, "`1e-3000000` is outside the range of a 64-bit float")},
	{"Err number that just rounds to zero", "v(x=-1e-400)", value(4, "`-1e-400` is outside the range of a 64-bit float")},
	{"Err missing comma behind a number", "v(x=1 y=2)", value(4, "`1 y=2` is not one value")},
	{"Err missing comma behind a literal", "v(x=true y=2)", value(4, "`true y=2` is not one value")},
	{"Err semicolon for a comma", "v(x=1; y=2)", value(4, "`1; y=2` is not one value")},
	{"Err missing comma behind a string", `v(x="a" y="b")`, value(4, "after the string stands `y=\"b\"`")},
	{"Err missing comma in an array", "v(x=[1 2])", value(5, "`1 2` is not one value")},
	{"Err no value", "v(x=, y=1)", value(4, "the argument `x` has no value")},
	{"Err no value at the end", "v(x=", value(4, "the text ends where a value was due")},
	{"Err no value in an array at the end", "v(x=[", value(5, "the text ends where a value was due")},
	{"Err no value behind a comma at the end", "v(x=[1,", value(7, "the text ends where a value was due")},
	{"Err no value behind a colon at the end", `v(x={"k":`, value(9, "the text ends where a value was due")},
	{"Err trailing comma in an array", "v(x=[1, ])", value(8, "the array ends with a comma")},
	{"Err leading comma in an array", "v(x=[,1])", value(5, "a value is missing before `,`")},
	{"Err double comma in an array", "v(x=[1,,2])", value(7, "a value is missing before `,`")},
	{"Err closing typographic quotes", "v(x=”a”)", value(4, "`”a”` has typographic quotes")},
	{"Err junk right behind a string", `v(x="a"b)`, value(4, "after the string stands `b`")},
	{"Err no value in an object", `v(x={"k":})`, value(9, "a value is missing before `}`")},
	{"Err call as a value", "v(x=w(1,2))", value(4, "`w(1,2)` is a call, and a call cannot be a value")},
	{"Err dotted call as a value", "v(x=p.w())", value(4, "`p.w()` is a call, and a call cannot be a value")},
	{"Err parentheses", "v(x=(1))", value(4, "`(1)` has parentheses around it")},
	{"Err closed bracket in a slot", "v(x=1[2])", value(4, "`1[2]` is not a JSON number")},
	{"Err vertical tab behind a number", "v(x=1\v)", value(4, "`1\\u000b` is not a JSON number")},
	{"Err unknown escape", `v(x="a\x41")`, value(4, "`\\x` is no escape; a backslash itself is written \\\\")},
	{"Err escape cut short", `v(x="a\u12")`, value(4, "`\\u12\")` is no escape; \\u takes four hexadecimal digits")},
	{"Err lone high surrogate", `v(id="a\ud800b")`, value(5, "`\\ud800` is half of a surrogate pair; both halves must stand together")},
	{"Err lone low surrogate", `v(id="a\udfffb")`, value(5, "`\\udfff` is half of a surrogate pair; both halves must stand together")},
	{"Err two high surrogates", `v(id="\ud800\ud800")`, value(5, "`\\ud800` is half of a surrogate pair; both halves must stand together")},
	{"Err raw control character", "v(x=\"a\x1bb\")", value(4, "the raw control character 0x1b stands in a string; it is written \\u001b")},
	{"Err raw form feed in a string", "v(x=\"\f\")", value(4, "the raw control character 0x0c stands in a string; it is written \\u000c")},
	{"Err backslash before a raw control character", "v(x=\"\\\n\")", value(4, "a backslash stands before a raw control character")},
	{"Err raw line break in a key", "v(x={\"a\nb\":1})", value(5, "a raw line break stands in a string where it must be written \\n")},
	{"Err bad escape in a key", `v(x={"\q":1})`, value(5, "`\\q` is no escape; a backslash itself is written \\\\")},
	{"Err other references", "a()|b(x=$next.id)", value(8, "references begin with $prev and this does not")},
	{"Err lone dollar", "a()|b(x=[$])", value(9, "references begin with $prev and this does not")},
	{"Err longer word", "a()|b(x=$prevish)", value(8, "$prev is followed by a letter or digit")},
	{"Err empty index", "a()|b(x=$prev[])", value(8, "an index is decimal digits, as in $prev[0]")},
	{"Err negative index", "a()|b(x=$prev[-1])", value(8, "an index is decimal digits, as in $prev[0]")},
	{"Err no index at the end", "a()|b(x=$prev[", value(8, "an index is decimal digits, as in $prev[0]")},

	{"Err JSON of a number", `[{"tool":"a"},5]`, inJSON(14, "a number stands where an operation was due")},
	{"Err JSON without tool", `{"args":{}}`, inJSON(0, `the operation has no "tool"`)},
	{"Err JSON tool that is no string", `{"tool":["a"]}`, inJSON(8, `"tool" is an array`)},
	{"Err JSON args that are no object", `{"tool":"a","args":null}`, inJSON(19, `"args" is null`)},
	{"Err JSON unknown key", `{"tool":"a","arg":{}}`, found(inJSON(12, "the key `arg` is unknown"), "arg")},
	{"Err JSON unknown key of another case", `{"Tool":"a"}`, found(inJSON(1, "the key `Tool` is unknown"), "Tool")},
	{"Err JSON unknown key behind a null byte", `{"tool":"stats","tool\u0000":"delete"}`, found(inJSON(16, "the key `tool\\u0000` is unknown"), `tool\u0000`)},
	{"Err JSON trailing comma", `{"tool":"a",}`, inJSON(12, "found `}` where a key was due")},
	{"Err JSON raw line break", "{\"tool\":\"a\",\"args\":{\"x\":\"a\nb\"}}", inJSON(26, "a raw line break stands in a string where it must be written \\n")},
	{"Err JSON form feed", "{\f\"tool\":\"a\"}", inJSON(1, "found `\\u000c` where a key was due")},
	{"Err JSON array behind a form feed", "[\f{\"tool\":\"a\"}]", inJSON(1, "found `\\u000c` where a value was due")},
	{"Err JSON lone surrogate", `{"tool":"a","args":{"x":"\udc00"}}`, inJSON(25, "`\\udc00` is half of a surrogate pair; both halves must stand together")},
	{"Err JSON leading zero", `{"tool":"a","args":{"x":01}}`, inJSON(24, "`01` has a leading zero")},
	{"Err JSON number too large", `{"tool":"a","args":{"x":-1e400}}`, inJSON(24, "`-1e400` is outside the range of a 64-bit float")},
	{"Err JSON number too long", `{"tool":"a","args":{"x":` + strings.Repeat("1", 129) + `}}`, inJSON(24, "the number has 129 bytes and may have 128")},
	{"Err JSON number that rounds to zero", `{"tool":"a","args":{"x":1e-3000000}}`, inJSON(24, "`1e-3000000` is outside the range of a 64-bit float")},
	{"Err JSON bareword", `{"tool":"a","args":{"x":abc}}`, inJSON(24, "`abc` is a bareword")},
	{"Err JSON literal with a tail", `{"tool":"a","args":{"x":truely}}`, inJSON(24, "`truely` is a bareword")},
	{"Err JSON reference without quotes", `{"tool":"a","args":{"x":$prev.id}}`, inJSON(24, "found `$` where a value was due")},
	{"Err JSON unclosed string", `{"tool":"a`, inJSON(8, "the string that opens here has no closing quote")},
	{"Err JSON unclosed", ` [{"tool":"a"}`, inJSON(14, "the JSON ends before it is complete")},
	{"Err JSON unclosed behind a colon", `{"tool":`, inJSON(8, "the JSON ends before it is complete")},
	{"Err JSON no colon", `{"tool" "a"}`, due(inJSON(8, "found `\"` behind a key, where `:` was due"), `"`, "`:`")},
	{"Err JSON no comma", `[{"tool":"a"} {"tool":"b"}]`, due(inJSON(14, "found `{` behind a value of an array, where `,` or `]` was due"), "{", "`,` or `]`")},
	{"Err JSON trailing text", `{"tool":"a"} x`, inJSON(13, "found `x` behind the JSON value")},
	{"Err JSON no chain", `{"tool":"a"} | {"tool":"b"}`, inJSON(13, "found `|` behind the JSON value")},
	{"Err JSON syntax before the shape", `[{"tool":5},{"tool":"a",}]`, inJSON(24, "found `}` where a key was due")},
	{"Err JSON syntax before the count", "[" + strings.Repeat(`{"tool":"t"},`, 101) + `{"tool":"t"]`, due(inJSON(1325, "found `]` behind a member of an object, where `,` or `}` was due"), "]", "`,` or `}`")},

	{"Err string without an end", ` v(x="abc)`, request.Error{Kind: request.UnclosedString, Pos: 5, HasPos: true, Start: 5}},
	{"Err string that ends in a backslash", `v(x="abc\")`, request.Error{Kind: request.UnclosedString, Pos: 4, HasPos: true, Start: 4}},
	{"Err second string without an end", `v(x="a" "b)`, request.Error{Kind: request.UnclosedString, Pos: 8, HasPos: true, Start: 8}},
	{"Err key without an end", `v(x={"k:1})`, request.Error{Kind: request.UnclosedString, Pos: 5, HasPos: true, Start: 5}},
	{"Err string without an end before a bad escape", `v(x="\q)`, request.Error{Kind: request.UnclosedString, Pos: 4, HasPos: true, Start: 4}},
	{"Err call without an end", " v (", request.Error{Kind: request.UnclosedCall, Pos: 3, HasPos: true, Start: 3}},
	{"Err call without an end behind a value", "a() | v(x=1", request.Error{Kind: request.UnclosedCall, Pos: 7, HasPos: true, Start: 7}},
	{"Err bracket left open in a slot", "v(a=1[", request.Error{Kind: request.UnclosedBracket, Pos: 5, HasPos: true, Bracket: "["}},
	{"Err parenthesis left open in a slot", "v(a=w(1,2", request.Error{Kind: request.UnclosedBracket, Pos: 5, HasPos: true, Bracket: "("}},
	{"Err brace left open in a slot", "v(a=x{1], b=2)", request.Error{Kind: request.UnclosedBracket, Pos: 5, HasPos: true, Bracket: "{"}},
	{"Err bracket open behind a closed one", "v(a=(1)[2)", request.Error{Kind: request.UnclosedBracket, Pos: 7, HasPos: true, Bracket: "["}},

	{"Err reference outside a chain", "[a(), b(x=[1,$prev.id])]", at(request.PrevRefOutsideChain, 13)},
	{"Err quoted reference outside a chain", `b(x={"k":"$prev.some-key"})`, at(request.PrevRefOutsideChain, 9)},
	{"Err reference before a reserved name of the same call", "a(presentation=1, x=$prev)", at(request.PrevRefOutsideChain, 20)},
	{"Err reserved name in an earlier call", "[a(presentation=1), b(x=$prev)]", request.Error{Kind: request.ReservedEnvelopeArg, Pos: 3, HasPos: true, Arg: "presentation", Verb: "a"}},
	{"Err reserved name", `p.v(x=1, presentation_per_op=[])`, request.Error{Kind: request.ReservedEnvelopeArg, Pos: 9, HasPos: true, Arg: "presentation_per_op", Verb: "p.v"}},
	{"Err reserved name by escapes", `{"tool":"p.v","args":{"presentatio\u006e":1}}`, request.Error{Kind: request.ReservedEnvelopeArg, Pos: 22, HasPos: true, Arg: "presentation", Verb: "p.v"}},
	{"Err syntax before a reserved name", "[a(presentation=1), b(]", identifier(22, "]")},
	{"Err trailing text before a reference", "a(x=$prev) b", unexpected(11, "b", "`|` or the end of the request")},
	{"Err JSON reference", `{"tool":"a","args":{"x":1,"y":[{"z":"$prev"}]}}`, request.Error{Kind: request.PrevRefInJsonForm, Pos: 36, HasPos: true, Arg: "y"}},
	{"Err JSON reference by escapes", `{"tool":"a","args":{"\u0078":"\u0024prev.id"}}`, request.Error{Kind: request.PrevRefInJsonForm, Pos: 29, HasPos: true, Arg: "x"}},
	{"Err JSON reference before a reserved name", `{"tool":"a","args":{"presentation":1,"y":"$prev[x"}}`, request.Error{Kind: request.PrevRefInJsonForm, Pos: 41, HasPos: true, Arg: "y"}},
	{"Err JSON shape before a reference", `[{"tool":"a","args":{"x":"$prev"}},{"tool":"b.c.d"}]`, at(request.UnsupportedVerbNesting, 47)},

	{"Err pipe in a batch", "[a() | b()]", at(request.MixedSeparators, 5)},
	{"Err comma in a chain", "a() | b(), c()", at(request.MixedSeparators, 9)},
	{"Err calls without brackets", "a(), b()", at(request.MixedSeparators, 3)},
	{"Err comma and no more", "a(),", at(request.MixedSeparators, 3)},
	{"Err empty batch", " [ \t]", at(request.EmptyBatch, 1)},
	{"Err second dot", "[a.b.c()]", at(request.UnsupportedVerbNesting, 4)},
	{"Err second dot behind escapes", `{"tool":"\u0061.b.c"}`, at(request.UnsupportedVerbNesting, 17)},
	{"Err trailing comma in a batch", "[a(), b() , \n]", at(request.TrailingComma, 10)},
}

func at(kind request.ErrorKind, pos int) request.Error {
	if pos == nowhere {
		return request.Error{Kind: kind}
	}
	return request.Error{Kind: kind, Pos: pos, HasPos: true}
}

func unexpected(pos int, found, expected string) request.Error {
	return due(at(request.UnexpectedChar, pos), found, expected)
}

func ended(pos int, expected string) request.Error {
	return due(at(request.UnexpectedEof, pos), "", expected)
}

func identifier(pos int, what string) request.Error {
	return found(at(request.InvalidIdentifier, pos), what)
}

func value(pos int, reason string) request.Error {
	e := at(request.InvalidValue, pos)
	e.Reason = reason
	return e
}

func inJSON(pos int, reason string) request.Error {
	e := at(request.InvalidJson, pos)
	e.Reason = reason
	return e
}

func found(e request.Error, what string) request.Error {
	e.Found = what
	return e
}

func due(e request.Error, what, expected string) request.Error {
	e.Found, e.Expected = what, expected
	return e
}

func parseError(tb testing.TB, text string) *request.Error {
	tb.Helper()
	req, err := request.Parse(text)
	var e *request.Error
	require.ErrorAs(tb, err, &e, "%.80q", text)
	require.Nil(tb, req)
	return e
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			got := parseError(t, c.text)
			require.Equal(t, c.want, contractFields(got), got.Caret())
			require.NotEmpty(t, got.Detail)
			require.Equal(t, got.HasPos, got.Line > 0)
			require.Equal(t, got.HasPos, got.Column > 0)
		})
	}
}

// contractFields are the fields of an error that are not made for reading.
func contractFields(e *request.Error) request.Error {
	return request.Error{
		Kind: e.Kind, Pos: e.Pos, HasPos: e.HasPos, Found: e.Found, Expected: e.Expected, Reason: e.Reason, Start: e.Start,
		Arg: e.Arg, Verb: e.Verb, Bracket: e.Bracket, Count: e.Count, Len: e.Len, Depth: e.Depth, Max: e.Max,
	}
}

// The set of kinds is closed, and the tables reach all of it.
func TestEveryKindIsReached(t *testing.T) {
	seen := map[request.ErrorKind]bool{request.InputTooLarge: true} // its text is too long for the table
	for _, c := range refused {
		seen[c.want.Kind] = true
	}
	for _, k := range []request.ErrorKind{
		"Empty", "InvalidEncoding", "TooManyOps", "InputTooLarge", "NestingTooDeep", "UnexpectedChar", "UnexpectedEof",
		"InvalidIdentifier", "DuplicateArg", "InvalidValue", "InvalidJson", "UnclosedString", "UnclosedCall",
		"PrevRefOutsideChain", "PrevRefInJsonForm", "MixedSeparators", "EmptyBatch", "UnsupportedVerbNesting",
		"ReservedEnvelopeArg", "TrailingComma", "UnclosedBracket",
	} {
		require.True(t, seen[k], k)
		delete(seen, k)
	}
	require.Empty(t, seen)
}

// White space that was stripped counts for positions.
func TestPositionsCountStrippedWhiteSpace(t *testing.T) {
	for _, c := range refused {
		if c.want.Kind == request.Empty {
			continue
		}
		const lead = "\u2003\n\t"
		got := parseError(t, lead+c.text+" \n")
		require.Equal(t, c.want.Kind, got.Kind, c.name)
		require.Equal(t, c.want.Pos+len(lead), got.Pos, c.name)
	}
}

func TestErrorMarshalJSON(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"OK with a place", "\nv(x=abc)", `{"kind":"InvalidValue","message":"line 2, column 5: ` + "`abc`" + ` is a bareword; a text needs double quotes: write x=\"abc\"","pos":5}`},
		{"OK at the start", "9", `{"kind":"InvalidIdentifier","message":"line 1, column 1: found ` + "`9`" + ` where a verb was due; a verb begins with a letter or an underscore","pos":0}`},
		{"OK without a place", "", `{"kind":"Empty","message":"the request is empty; write a call such as verb(name=\"value\")"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(parseError(t, c.text))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
		})
	}
}
