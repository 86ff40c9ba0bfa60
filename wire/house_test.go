package wire_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

func newCodec(tb testing.TB, cfg wire.Config) wire.Codec {
	tb.Helper()
	c, err := wire.NewCodec(cfg)
	require.NoError(tb, err)
	return c
}

// prefixed is a payload with its length before it.
func prefixed(payload string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// fault is the codec error in err, which must be one.
func fault(tb testing.TB, err error) *wire.CodecError {
	tb.Helper()
	var e *wire.CodecError
	require.ErrorAs(tb, err, &e)
	return e
}

// nested is a value of arrays nested n deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// lines reads a file of testdata with one JSON object a line.
func lines[T any](tb testing.TB, name string) []T {
	tb.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	require.NoError(tb, err)
	defer file.Close()
	var all []T
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var v T
		require.NoError(tb, json.Unmarshal(scan.Bytes(), &v), scan.Text())
		all = append(all, v)
	}
	require.NoError(tb, scan.Err())
	require.NotEmpty(tb, all)
	return all
}

// meaning is a JSON text as a value that compares by what the text means: repeated members by the
// last one, integers that 64 bits hold exactly, other numbers as doubles.
func meaning(tb testing.TB, text []byte) any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(tb, dec.Decode(&v), string(text))
	return numbers(tb, v)
}

func numbers(tb testing.TB, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = numbers(tb, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(tb, v[k])
		}
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok && (n.IsInt64() || n.IsUint64()) {
			return n.String()
		}
		f, err := v.Float64()
		require.NoError(tb, err)
		return f
	}
	return v
}

// requireSameFrame compares a frame with its JSON description.
func requireSameFrame(tb testing.TB, want json.RawMessage, got wire.Frame) {
	tb.Helper()
	text, err := wire.MarshalFrameJSON(got)
	require.NoError(tb, err)
	require.Equal(tb, meaning(tb, want), meaning(tb, text))
}
