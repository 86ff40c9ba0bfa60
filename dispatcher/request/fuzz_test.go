package request_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// seeds are the texts of every table.
func seeds(tb testing.TB) []string {
	tb.Helper()
	out := []string{batchOfTen}
	for _, c := range conformance(tb) {
		out = append(out, c.Input)
	}
	for _, c := range accepted {
		out = append(out, c.text)
	}
	for _, c := range refused {
		out = append(out, c.text)
	}
	return out
}

// FuzzParse holds any text to what the package comment promises.
func FuzzParse(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		req, err := request.Parse(text)
		if allocated(text) > allowed(text) {
			t.Fatalf("%d bytes allocated for a text of %d", allocated(text), len(text))
		}
		if err != nil {
			var e *request.Error
			require.True(t, errors.As(err, &e))
			requireFit(t, e)
			if e.HasPos {
				require.GreaterOrEqual(t, e.Pos, 0)
				require.LessOrEqual(t, e.Pos, len(text))
				require.Equal(t, e.Kind == request.InvalidEncoding, !utf8.ValidString(text))
			}
			return
		}
		require.NotEmpty(t, req.Ops)
		require.LessOrEqual(t, len(req.Ops), request.MaxOps)
		encoded, err := req.MarshalJSON()
		require.NoError(t, err)
		require.True(t, json.Valid(encoded), "%s", encoded)
		requirePrints(t, text)
		requireFormsAgree(t, text)
		requireDistinctNames(t, req)
	})
}

func requireDistinctNames(tb testing.TB, req *request.Request) {
	tb.Helper()
	for _, op := range req.Ops {
		seen := map[string]bool{}
		for _, a := range op.Args {
			require.False(tb, seen[a.Name], a.Name)
			require.NotContains(tb, []string{"presentation", "presentation_per_op"}, a.Name)
			require.True(tb, req.Mode == request.Chain || !a.Value.HasRef())
			seen[a.Name] = true
		}
	}
}
