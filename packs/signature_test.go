package packs_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestSignature(t *testing.T) {
	v := &packs.Verb{Name: "get", Params: []packs.Param{
		{Name: "id", Type: packs.String, Required: true}, {Name: "tags", Type: packs.ArrayOf(packs.String)},
	}}
	require.Equal(t, "get(id: string, tags?: array<string>)", v.Signature())
	require.Equal(t, "stats()", (&packs.Verb{Name: "stats"}).Signature())
}

func TestDescribe(t *testing.T) {
	v := &packs.Verb{
		Name: "memory.recall", Description: "Recalls.", Category: packs.Assertive, Visibility: packs.Public,
		Params: []packs.Param{{Name: "query", Type: packs.String, Required: true, Description: "What to look for."}},
	}
	require.Equal(t,
		`{"verb":"memory.recall","pack":"memory","description":"Recalls.","category":"assertive","params":[{"name":"query","type":"string","required":true,"description":"What to look for."}]}`,
		encode(t, v.Describe("memory")))

	hidden := &packs.Verb{Name: "memory.score", Category: packs.Assertive}
	require.Equal(t,
		`{"verb":"memory.score","pack":"memory","description":"","category":"assertive","params":[],"visibility":"internal","callable_via_mcp":false}`,
		encode(t, hidden.Describe("memory")))

	require.Equal(t, packs.Listing{Verb: "memory.recall", Pack: "memory", Category: packs.Assertive,
		Signature: "memory.recall(query: string)", Description: "Recalls."}, v.Listing("memory"))
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
