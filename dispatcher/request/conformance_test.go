package request_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// conformanceCase is one line of testdata/request.jsonl.
type conformanceCase struct {
	ID     string          `json:"id"`
	Input  string          `json:"input"`
	Expect json.RawMessage `json:"expect"`
}

// conformanceCases is how many there are, so that none gets lost unnoticed.
const conformanceCases = 262

func conformance(tb testing.TB) []conformanceCase {
	tb.Helper()
	data, err := os.ReadFile("testdata/request.jsonl")
	require.NoError(tb, err)
	var cases []conformanceCase
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c conformanceCase
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.NoError(tb, lines.Err())
	require.Len(tb, cases, conformanceCases)
	return cases
}

// exact decodes JSON with numbers as exact rationals, so that 1e3 is 1000.0 and 2^64-1 is itself.
func exact(tb testing.TB, data []byte) any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	require.NoError(tb, dec.Decode(&v), "%s", data)
	return rationals(tb, v)
}

func rationals(tb testing.TB, v any) any {
	switch v := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		require.True(tb, ok, v)
		return "number " + r.RatString()
	case []any:
		for i := range v {
			v[i] = rationals(tb, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rationals(tb, v[k])
		}
	}
	return v
}

func TestConformance(t *testing.T) {
	for _, c := range conformance(t) {
		t.Run(c.ID, func(t *testing.T) {
			var want struct{ Error request.ErrorKind }
			require.NoError(t, json.Unmarshal(c.Expect, &want))
			req, err := request.Parse(c.Input)
			if want.Error != "" {
				var got *request.Error
				require.ErrorAs(t, err, &got)
				require.Equal(t, want.Error, got.Kind, "%s", got.Caret())
				require.Nil(t, req)
				return
			}
			require.NoError(t, err)
			encoded, err := json.Marshal(req)
			require.NoError(t, err)
			require.Equal(t, exact(t, c.Expect), exact(t, encoded))
		})
	}
}

// The values a caller takes from a request are those of the contract too, not only what it prints.
func TestConformanceOfAny(t *testing.T) {
	for _, c := range conformance(t) {
		req, err := request.Parse(c.Input)
		if err != nil {
			continue
		}
		var want struct {
			Mode string
			Ops  []struct {
				Tool string
				Args json.RawMessage
				Refs map[string]string
			}
		}
		require.NoError(t, json.Unmarshal(c.Expect, &want))
		require.Equal(t, want.Mode, req.Mode.String(), c.ID)
		require.Len(t, req.Ops, len(want.Ops), c.ID)
		for i, op := range req.Ops {
			require.Equal(t, want.Ops[i].Tool, op.Tool, c.ID)
			args := map[string]any{}
			refs := 0
			for _, a := range op.Args {
				before := refs
				v, err := a.Value.Any(func(request.Ref) (any, error) { refs++; return nil, nil })
				require.NoError(t, err)
				if a.Value.Kind() != request.Reference {
					args[a.Name] = v
				}
				require.Equal(t, refs > before, a.Value.HasRef(), c.ID)
			}
			require.Len(t, want.Ops[i].Refs, refs, c.ID)
			require.Equal(t, exact(t, want.Ops[i].Args), rationals(t, any(args)), c.ID)
		}
	}
}
