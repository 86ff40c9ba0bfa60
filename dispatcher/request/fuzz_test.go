package request_test

import (
	"encoding/json"
	"errors"
	"strings"
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
		requireJSONAgrees(t, text)
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

// requireJSONAgrees holds the JSON form to what the standard library makes of the same text.
func requireJSONAgrees(tb testing.TB, text string) {
	tb.Helper()
	body := strings.TrimSpace(text)
	if !isJSONForm(body) {
		return
	}
	req, err := request.Parse(text)
	if !json.Valid([]byte(body)) {
		require.Error(tb, err, "%q", text)
		return
	}
	if err != nil {
		return
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var whole any
	require.NoError(tb, dec.Decode(&whole))
	ops, many := whole.([]any)
	if !many {
		ops = []any{whole}
	}
	require.Equal(tb, many, req.Mode == request.Parallel)
	require.Len(tb, req.Ops, len(ops))
	for i, op := range ops {
		fields := op.(map[string]any)
		require.Equal(tb, fields["tool"], req.Ops[i].Tool)
		if fields["args"] == nil {
			fields["args"] = map[string]any{}
		}
		require.Equal(tb, fields["args"], any(plainArgs(tb, req.Ops[i])))
	}
}

func isJSONForm(body string) bool {
	return strings.HasPrefix(body, "{") ||
		strings.HasPrefix(body, "[") && strings.HasPrefix(strings.TrimLeft(body[1:], " \t\r\n\f"), "{")
}

// The tables and random JSON texts, not only what fuzzing finds, agree with the standard library.
func TestJSONAgreesWithStandardLibrary(t *testing.T) {
	for _, text := range seeds(t) {
		requireJSONAgrees(t, text)
		if req, err := request.Parse(text); err == nil && req.Mode != request.Chain {
			requireJSONAgrees(t, jsonForm(t, req))
		}
	}
	// Every value of one, two and three tokens, in the place of an argument.
	tokens := []string{"", "1", "-", "0", ".", "e", "+", "true", "nul", "null", `"`, `"a"`, `\u0041`, `"\ud83d\ude00"`, `"\ude00"`, "[", "]", "{", "}", ",", ":", `"k":`, " ", "\f", "\x01", "\n"}
	for _, a := range tokens {
		for _, b := range tokens {
			for _, c := range tokens {
				requireJSONAgrees(t, `{"tool":"a","args":{"x":`+a+b+c+`}}`)
				requireJSONAgrees(t, `{"tool":"a","args":{"x":"`+a+b+c+`"}}`)
			}
		}
	}
}

// A value of the function form that holds no raw white space in strings and no reference is JSON.
func TestValuesAreJSON(t *testing.T) {
	tokens := []string{"", "1", "-", "0", ".", "e", "+", "true", "nul", "null", `"`, `"a"`, `\u0041`, `\ude00`, "[", "]", "{", "}", ",", ":", `"k":`, " ", "\x01", "x", "(", "'"}
	for _, a := range tokens {
		for _, b := range tokens {
			for _, c := range tokens {
				text := a + b + c
				_, err := request.Parse("v(x=" + text + ")")
				require.Equal(t, json.Valid([]byte(text)) && !strings.Contains(text, `\ude00`), err == nil, "%q: %v", text, err)
			}
		}
	}
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
