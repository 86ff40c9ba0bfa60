package request_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

func TestTextLimit(t *testing.T) {
	frame := func(n int) string { return `v(x="` + strings.Repeat("é", (n-8)/2) + strings.Repeat("a", n%2) + `y")` }
	exactly := frame(request.MaxBytes)
	require.Len(t, exactly, 1_048_576)
	req, err := request.Parse("\n\n" + exactly + "\u3000")
	require.NoError(t, err, "white space around the text does not count")
	require.Len(t, req.Ops[0].Args[0].Value.Text(), request.MaxBytes-7)

	over := parseError(t, " "+frame(request.MaxBytes+1))
	require.Equal(t, request.Error{Kind: request.InputTooLarge, Len: 1_048_577, Max: 1_048_576}, contractFields(over))
	require.Contains(t, over.Error(), "1048577")
	require.Equal(t, request.InputTooLarge, parseError(t, frame(request.MaxBytes)+"\xff").Kind, "size before encoding")
}

func TestOperationsLimit(t *testing.T) {
	calls := func(n int, separator string) string {
		return strings.TrimSuffix(strings.Repeat("t()"+separator, n), separator)
	}
	objects := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"tool":"t"},`, n), ",") }
	for _, c := range []struct {
		name, most, over string
		count            int
	}{
		{"OK batch", "[" + calls(100, ",") + "]", "[" + calls(101, ",") + "]", 101},
		{"OK chain", calls(100, " | "), calls(101, " | "), 101},
		{"OK chain of thousands", calls(100, "|"), calls(10_000, "|"), 101},
		{"OK JSON by one", "[" + objects(100) + "]", "[" + objects(101) + "]", 101},
		{"OK JSON", "[" + objects(100) + "]", "[" + objects(500) + "]", 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := request.Parse(c.most)
			require.NoError(t, err)
			require.Len(t, req.Ops, request.MaxOps)
			over := parseError(t, c.over)
			require.Equal(t, request.TooManyOps, over.Kind)
			require.Equal(t, c.count, over.Count)
			require.Equal(t, request.MaxOps, over.Max)
		})
	}
	require.Equal(t, request.TrailingComma, parseError(t, "["+calls(100, ",")+",]").Kind, "a bracket begins no call")
}

func TestDepthLimit(t *testing.T) {
	nest := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	for _, c := range []struct {
		name, most, over string
	}{
		{"OK arrays", "v(x=" + nest("[", "]", 64) + ")", "v(x=" + nest("[", "]", 65) + ")"},
		{"OK objects", "v(x=" + nest(`{"k":`, "}", 64) + ")", "v(x=" + nest(`{"k":`, "}", 65) + ")"},
		{"OK in every argument", "[v(x=" + nest("[", "]", 64) + ", y=" + nest("[", "]", 64) + ")]", "[v(x=1, y=" + nest("[", "]", 65) + ")]"},
		{"OK JSON object", `{"tool":"v","args":{"x":` + nest("[", "]", 62) + "}}", `{"tool":"v","args":{"x":` + nest("[", "]", 63) + "}}"},
		{"OK JSON array", `[{"tool":"v","args":{"x":` + nest("[", "]", 61) + "}}]", `[{"tool":"v","args":{"x":` + nest("[", "]", 62) + "}}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := request.Parse(c.most)
			require.NoError(t, err)
			over := parseError(t, c.over)
			require.Equal(t, request.NestingTooDeep, over.Kind)
			require.Equal(t, request.MaxDepth+1, over.Depth)
			require.Equal(t, request.MaxDepth, over.Max)
		})
	}
}

// Deep or long nonsense is refused without recursion: nothing here may come near the stack's end.
func TestNonsenseIsRefused(t *testing.T) {
	fill := func(frame, s string) string {
		return strings.Replace(frame, "%", strings.Repeat(s, (request.MaxBytes-len(frame))/len(s)), 1)
	}
	for _, c := range []struct {
		name, text string
		kind       request.ErrorKind
	}{
		{"Err brackets far over the size", "a(x=" + strings.Repeat("[", 5_000_000) + ")", request.InputTooLarge},
		{"Err brackets as a value", fill("a(x=%", "["), request.NestingTooDeep},
		{"Err brackets alone", fill("%", "["), request.InvalidIdentifier},
		{"Err parentheses", fill("%", "("), request.InvalidIdentifier},
		{"Err parentheses as a value", fill("a(x=%", "("), request.UnclosedBracket},
		{"Err calls in calls", fill("%", "a(x="), request.UnclosedBracket},
		{"Err braces", fill("%", "{"), request.InvalidJson},
		{"Err JSON nested", fill("%", `{"a":`), request.NestingTooDeep},
		{"Err JSON arrays", fill(`{"tool":"a","args":{"x":%`, `[`), request.NestingTooDeep},
		{"Err quotes", fill("a(x=%", `""`), request.InvalidValue},
		{"Err backslashes", fill(`a(x="%`, `\`), request.UnclosedString},
		{"Err dots", fill("a%", "."), request.InvalidIdentifier},
		{"Err chain", fill("a()%", "|a()"), request.TooManyOps},
		{"Err pipes", fill("a()%", "|"), request.InvalidIdentifier},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.kind, parseError(t, c.text).Kind)
		})
	}
}
