package wire_test

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

func TestParseOperationID(t *testing.T) {
	got, err := wire.ParseOperationID(" ")
	require.NoError(t, err)
	require.Equal(t, wire.OperationID(" "), got)
	_, err = wire.ParseOperationID("")
	require.ErrorIs(t, err, wire.ErrEmptyID)
	_, err = wire.ParseOperationID("\xff")
	require.ErrorIs(t, err, wire.ErrNotUTF8)
}

func TestParseCursor(t *testing.T) {
	for _, s := range []string{"0", "7", "9007199254740993", "18446744073709551615"} {
		c, err := wire.ParseCursor(s)
		require.NoError(t, err, s)
		require.Equal(t, s, c.String())
	}
	for _, s := range []string{"", "-1", "-0", "+1", "00", "01", "1.0", "1e0", " 1", "1_0", "x", "18446744073709551616", "99999999999999999999", "100000000000000000000"} {
		_, err := wire.ParseCursor(s)
		require.ErrorContains(t, err, strconv.Quote(s))
	}
}

func TestStringList(t *testing.T) {
	for _, items := range [][]string{{}, {""}, {"", ""}, {"a"}, {"ab", "", "c", "é"}} {
		l := wire.NewStringList(items...)
		require.Equal(t, len(items), l.Len())
		require.Equal(t, items, l.Slice())
		for i := range items {
			require.Equal(t, items[i], l.At(i))
		}
		for s := range l.All() {
			require.Equal(t, items[0], s)
			break
		}
	}
	require.Equal(t, wire.StringList{}, wire.NewStringList())
}

func TestKinds(t *testing.T) {
	var fromClient []string
	for k := wire.KindHandshake; k <= wire.KindEvent; k++ {
		parsed, ok := wire.ParseKind(k.String())
		require.True(t, ok)
		require.Equal(t, k, parsed)
		if k.FromClient() {
			fromClient = append(fromClient, k.String())
		}
	}
	require.Equal(t, []string{"handshake", "request", "cancel", "subscribe", "unsubscribe"}, fromClient)
	require.Equal(t, "none", wire.Kind(0).String())
	require.Equal(t, "none", wire.Kind(99).String())
	require.False(t, wire.Kind(0).FromClient())
}

func TestRanges(t *testing.T) {
	r, err := wire.NewSupportedRange(1, 1)
	require.NoError(t, err)
	require.Equal(t, wire.DefaultRange(), r)
	require.Equal(t, "[1, 1]", r.String())
	require.True(t, r.Contains(1))
	require.False(t, r.Contains(0))
	require.False(t, r.Contains(2))
	require.False(t, wire.SupportedRange{}.Contains(0))
	for message, try := range map[string][2]wire.Version{
		"min_version_zero: versions begin at 1":                            {0, 9},
		"inverted_range: the smallest version, 9, is above the largest, 8": {9, 8},
		"max_above_current: version 2 is above 1, the newest there is":     {1, 2},
	} {
		r, err := wire.NewSupportedRange(try[0], try[1])
		require.EqualError(t, err, message)
		require.Equal(t, wire.SupportedRange{}, r)
	}
}

// The package imports the standard library's pure parts and nothing else: no I/O, no clock.
func TestImports(t *testing.T) {
	allowed := []string{"bytes", "encoding/binary", "encoding/json", "errors", "fmt", "iter", "math", "math/bits", "slices", "strconv", "strings", "unicode/utf8"}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			require.True(t, slices.Contains(allowed, path), "%s imports %s", e.Name(), path)
		}
	}
}

// The exchange in the package comment is what Example prints.
func TestPageIsTheExample(t *testing.T) {
	block := func(name, start, prefix string) []string {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		_, rest, ok := strings.Cut(string(b), start)
		require.True(t, ok)
		var lines []string
		for line := range strings.Lines(rest) {
			line = strings.TrimSpace(line)
			text, ok := strings.CutPrefix(line, prefix)
			if !ok {
				break
			}
			lines = append(lines, strings.TrimSpace(text))
		}
		return lines
	}
	page := block("wire.go", "is the code.\n//\n", "//\t")
	require.Equal(t, block("example_test.go", "// Output:\n", "//"), page)
	require.Len(t, page, 31)
}
