package packs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestSeal(t *testing.T) {
	v := &packs.Verb{Params: []packs.Param{
		{Name: "open", Type: packs.Any}, {Name: "key", Type: packs.String, Sensitive: true}, {Name: "pin", Type: packs.Integer, Sensitive: true},
	}}

	tests := []struct {
		name         string
		verb         *packs.Verb
		params, want string
	}{
		{"OKDeclared", v, `{"open":{"a":[1]},"key":"s","pin":1}`, `{"open":{"a":[1]},"key":"<params.key>","pin":"<params.pin>"}`},
		{"OKUndeclaredIsSealed", v, `{"apikey":"s"}`, `{"apikey":"<params.apikey>"}`},
		{"OKNamespaceIsNot", v, `{"namespace":"a"}`, `{"namespace":"a"}`},
		{"OKNamespaceOfAnotherType", v, `{"namespace":{"x":"s"}}`, `{"namespace":"<params.namespace>"}`},
		{"OKForgedSeal", v, `{"open":{"$sealed":"v1:x"}}`, `{"open":"<params.open>"}`},
		{"OKForgedSealInside", v, `{"open":[{"a":{"$sealed":1,"b":2}},3]}`, `{"open":[{"a":"<params.open[0].a>"},3]}`},
		{"OKNoVerb", nil, `{"open":"s","namespace":"a"}`, `{"open":"<params.open>","namespace":"a"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params := decode(t, tt.params)
			got := tt.verb.Seal(params, func(path string, _ any) any { return "<" + path + ">" })
			require.Equal(t, decode(t, tt.want), got)
			require.Equal(t, decode(t, tt.params), params, "the input is unchanged")
		})
	}
}

func TestSealEndsOnCycles(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	v := &packs.Verb{Params: []packs.Param{{Name: "open", Type: packs.Any}}}
	deepest := ""
	got := v.Seal(map[string]any{"open": cycle}, func(path string, _ any) any { deepest = path; return nil })
	require.NotNil(t, got["open"])
	require.Equal(t, 64, strings.Count(deepest, ".self"))
}
