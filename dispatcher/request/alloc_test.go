package request_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// allocated is how many bytes Parse allocates for a text in all, freed or not. Other goroutines allocate
// too, so it is the least of a few runs.
func allocated(text string) uint64 {
	least := ^uint64(0)
	var before, after runtime.MemStats
	for range 3 {
		runtime.ReadMemStats(&before)
		req, err := request.Parse(text)
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(req)
		runtime.KeepAlive(err)
		if n := after.TotalAlloc - before.TotalAlloc; n < least {
			least = n
		}
		if least <= allowed(text) {
			break
		}
	}
	return least
}

// allowed is the promise of the package comment.
func allowed(text string) uint64 { return 16*uint64(len(text)) + 1<<20 }

// names makes distinct names, the shortest first.
func names(n int, each func(string) string) string {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		name := ""
		for k := i; ; k = k/len(first) - 1 {
			name = string(first[k%len(first)]) + name
			if k < len(first) {
				break
			}
		}
		b.WriteString(each(name))
	}
	return b.String()
}

// hostile are texts of about 1 MiB that try to cost many times that.
func hostile() map[string]string {
	const room = request.MaxBytes - 200
	fill := func(frame, s string) string {
		return strings.Replace(frame, "%", strings.Repeat(s, (room-len(frame))/len(s)), 1)
	}
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	prefix := strings.Repeat("1,", 3000)
	calls := func(separator string, args func(int) string) string {
		var b strings.Builder
		for i := range request.MaxOps {
			if i > 0 {
				b.WriteString(separator)
			}
			b.WriteString("a(" + args(i) + ")")
		}
		return b.String()
	}
	named := func(n int, each func(string) string) string { return strings.TrimSuffix(names(n, each), ",") }
	asArg := func(s string) string { return s + "=1," }
	asMember := func(s string) string { return `"` + s + `":1,` }
	asEscaped := func(s string) string { return `"\n` + s + `":1,` }
	return map[string]string{
		"brackets":                 fill("a(x=%", "["),
		"nests":                    fill("a(x=[%1])", deep+","),
		"small nests":              fill("a(x=[%1])", "[[[]]],"),
		"empty arrays":             fill("a(x=[%[]])", "[],"),
		"digits":                   fill("a(x=[%1])", "1,"),
		"empty strings":            fill("a(x=[%1])", `"",`),
		"escapes":                  fill("a(x=[%1])", `"\n",`),
		"backslashes":              fill("a(x=[%1])", `"\\",`),
		"protected":                fill("a(x=[%1])", `"\\$prev",`),
		"growing escaped strings":  "a(x=[" + growing(room) + "1])",
		"references":               fill("a()|b(x=[%1])", "$prev,"),
		"quoted references":        fill("a()|b(x=[%1])", `"\u0024prev",`),
		"long reference":           fill("a()|b(x=$prev%)", ".a"),
		"long quoted reference":    fill(`a()|b(x="\u0024prev%")`, ".a"),
		"equal keys":               fill(`a(x={%"":1})`, `"":1,`),
		"one-letter keys":          fill(`a(x={%"":1})`, `"a":1,"b":2,"c":3,`),
		"objects of equal keys":    fill(`a(x=[%1])`, `{"":1,"":1},`),
		"objects of many keys":     fill(`a(x=[%1])`, "{"+named(400, asMember)+"},"),
		"distinct keys":            "a(x={" + named(room, asMember) + "})",
		"distinct escaped keys":    "a(x={" + named(room, asEscaped) + "})",
		"distinct arguments":       "a(" + named(room, asArg) + ")",
		"hundred calls":            "[" + calls(",", func(int) string { return named(room/100-10, asArg) }) + "]",
		"hundred calls of little":  "[" + calls(",", func(int) string { return "a=1,b=2" }) + "]",
		"one call large":           "[" + calls(",", func(i int) string { return named(map[bool]int{true: room / 2, false: room/200 - 10}[i == 0], asArg) }) + "]",
		"commas in a string":       fill(`a(y=[`+prefix+`1],x="%")`, ","),
		"equals in a string":       fill(`a(y=[`+prefix+`1],x="%")`, "=,"),
		"brackets in a string":     fill(`a(y=[`+prefix+`1],x="%")`, "["),
		"refused in the middle":    fill(`a(y=[`+prefix+`%`, "["),
		"barewords":                fill("a(x=%)", "abc "),
		"JSON digits":              fill(`{"tool":"a","args":{"x":[%1]}}`, "1,"),
		"JSON nests":               fill(`{"tool":"a","args":{"x":[%1]}}`, "[[[]]],"),
		"JSON arguments":           `{"tool":"a","args":{` + named(room, asMember) + "}}",
		"JSON escaped arguments":   `{"tool":"a","args":{` + named(room, asEscaped) + "}}",
		"JSON equal arguments":     fill(`{"tool":"a","args":{%"x":1}}`, `"":1,`),
		"JSON equal tools":         fill(`{%"tool":"a"}`, `"tool":"a",`),
		"JSON escaped tools":       fill(`{%"tool":"a"}`, `"\u0074ool":"a",`),
		"JSON long escaped tool":   fill(`{"tool":"\u0061%"}`, "a"),
		"JSON long escaped names":  fill(`{"tool":"a","args":{"\u0061%":1}}`, "a"),
		"JSON escaped references":  fill(`{"tool":"a","args":{"x":[%1]}}`, `"\\$prev",`),
		"JSON operations":          fill("[%{}]", "{},"),
		"JSON unknown long key":    fill(`{"%":1}`, "a"),
		"white space":              fill("a(%)", " "),
		"white space around":       strings.Repeat(" \n", 1<<22) + "a()",
		"invalid UTF-8 at the end": fill(`a(x="%`, "a") + "\xff",
		"lines":                    fill(`a(x="%",y=z)`, "\n"),
	}
}

// growing is strings with escapes, each one byte longer than the last.
func growing(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n-2000; i++ {
		b.WriteString(`"\\` + strings.Repeat("a", i) + `",`)
	}
	return b.String()
}

func TestAllocationsStayProportional(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			got := allocated(text)
			t.Logf("%.2f bytes per byte of text", float64(got)/float64(len(text)))
			require.LessOrEqual(t, got, allowed(text))
		})
	}
}

// A mebibyte of brackets costs a few kilobytes (request.md 5).
func TestBracketsCostNothing(t *testing.T) {
	for _, frame := range []string{"", "a(x=", "[", `{"tool":"a","args":{"x":`} {
		text := frame + strings.Repeat("[", request.MaxBytes-len(frame))
		require.Less(t, allocated(text), uint64(64<<10), strconv.Quote(frame))
	}
}
