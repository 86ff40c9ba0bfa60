package kg_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
)

// The examples of the third seed that name verbs of this pack, from their text to the handler. What
// the pipeline between them adds is the dispatcher's to test.
func TestSeeds(t *testing.T) {
	w := open(t)
	me := in("local")
	run := func(t *testing.T, ops string) (results []object, err error) {
		t.Helper()
		req, err := request.Parse(ops)
		require.NoError(t, err)
		for _, op := range req.Ops {
			params := object{}
			for _, a := range op.Args {
				v, err := a.Value.Any(func(ref request.Ref) (any, error) {
					require.Equal(t, "id", ref.String())
					return results[len(results)-1]["id"], nil
				})
				require.NoError(t, err)
				params[a.Name] = v
			}
			result, err := w.call(me, op.Tool, params)
			if err != nil {
				return results, err
			}
			results = append(results, result)
		}
		return results, nil
	}
	target := w.note(me, "Hu et al.")
	t.Run("OK create, then link what was created", func(t *testing.T) {
		got, err := run(t, `create(kind="entity", entity_kind="concept", name="LoRA") | link(source_id=$prev.id, target_id="`+target+`", relation="introduced_by")`)
		require.NoError(t, err)
		require.Equal(t, got[0]["id"], got[1]["source_id"])
	})
	for name, ops := range map[string]string{
		"OK search":         `search(kind="entity", query="LoRA")`,
		"OK search as JSON": `{"tool":"search","args":{"kind":"entity","query":"LoRA"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, ops)
			require.NoError(t, err)
			require.Equal(t, []string{"LoRA"}, pluck(got[0], "name"))
		})
	}
	for name, ops := range map[string]string{"OK stats": `[stats()]`, "OK stats as JSON": `[{"tool":"stats","args":{}}]`} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, ops)
			require.NoError(t, err)
			require.EqualValues(t, "1", got[0]["entities"])
		})
	}
	t.Run("Err the empty target fails by itself; what was created stands", func(t *testing.T) {
		before := w.rows("kg_records")
		got, err := run(t, `create(kind="entity", entity_kind="concept", name="LoRA") | link(source_id=$prev.id, target_id="", relation="introduced_by")`)
		requireKind(t, err, invalid, "target_id: an empty string is no id")
		require.Len(t, got, 1)
		require.Equal(t, before+1, w.rows("kg_records"))
	})
	t.Run("Err get of what is no id", func(t *testing.T) {
		_, err := run(t, `get(id="abc")`)
		requireKind(t, err, invalid, "at least its first 8 hex digits")
	})
	t.Run("Err get of what is not there", func(t *testing.T) {
		_, err := run(t, `get(id="11111111-1111-4111-8111-111111111111")`)
		require.EqualError(t, err, `not found: no record with id "11111111-1111-4111-8111-111111111111"`)
	})
}

// No verb that shows data shows that of a namespace the caller does not read, unless he names the
// record by its full id (fc-095); and a namespace that nobody knows is empty, never all (fc-088).
func TestNamespaces(t *testing.T) {
	w := open(t)
	z := in("z")
	secret := w.entity(z, "canary", object{"description": "canary", "tags": list("canary"), "properties": object{"canary": true}})
	other := w.note(z, "canary")
	edge := w.must(z, "link", object{"source_id": secret, "target_id": other, "relation": "canary"})["id"].(string)
	mine := w.entity(in("a"), "mine")
	w.must(in("a"), "link", object{"source_id": mine, "target_id": secret, "relation": "knows"})

	for _, who := range []token{in("a"), in("a", "b"), in("nowhere"), in(""), in(" "), in("*"), in("../z"), in("Z"), in("z:"), in("z%"), in("%"), {namespace: "z"}, {}} {
		for _, tt := range []struct {
			verb   string
			params object
		}{
			{"list", object{}},
			{"list", object{"tag": "canary"}},
			{"list", object{"name_prefix": "canary"}},
			{"list", object{"kind": "note"}},
			{"search", object{"query": "canary"}},
			{"search", object{"query": "canary mine", "match": "any"}},
			{"neighbors", object{"id": mine}},
			{"neighbors", object{"id": secret}},
			{"neighbors", object{"id": secret, "direction": "out"}},
			{"stats", object{}},
			{"get", object{"id": secret[:8]}},
			{"get", object{"id": secret[:35]}},
			{"get", object{"id": edge[:8]}},
			{"update", object{"id": secret[:8], "name": "x"}},
			{"delete", object{"id": edge[:8]}},
			{"neighbors", object{"id": secret[:8]}},
			{"link", object{"source_id": mine, "target_id": secret[:8], "relation": "r"}},
			{"merge_entity", object{"into_id": mine, "from_id": secret[:8]}},
		} {
			result, err := w.call(who, tt.verb, tt.params)
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				text = encoded(t, result)
			}
			require.NotContains(t, text, "canary", "%v %s %v", who, tt.verb, tt.params)
			require.NotContains(t, text, other, "%v %s %v", who, tt.verb, tt.params)
			require.NotContains(t, text, edge, "%v %s %v", who, tt.verb, tt.params)
			if tt.verb != "neighbors" {
				require.NotContains(t, text, secret, "%v %s %v", who, tt.verb, tt.params)
			}
		}
		got, err := w.call(who, "get", object{"id": secret})
		require.NoError(t, err, "a full id resolves globally")
		require.Equal(t, "canary", got["name"])
	}
	require.Equal(t, 3, w.rows("kg_records"))
	require.Equal(t, 2, w.rows("kg_edges"))

	t.Run("OK writes go to the primary namespace", func(t *testing.T) {
		got := w.must(token{namespace: "w", read: []string{"a", "b"}}, "create", object{"kind": "note", "content": "x"})
		require.Equal(t, "w", got["namespace"])
		got = w.must(token{namespace: "w", read: []string{"a"}}, "link", object{"source_id": secret, "target_id": mine, "relation": "r"})
		require.Equal(t, "w", got["namespace"])
	})
}

// Nothing of SQL, of a path or of the engine reaches a caller, whatever he sends.
func TestHandlersTakeAnything(t *testing.T) {
	w := open(t)
	values := []any{nil, true, "", "x", "11111111-1111-4111-8111-111111111111", "\x00", number(-1), list(), list(nil), list(object{}), object{}, object{"\x00": nil}}
	for _, v := range w.manifest.Verbs {
		for _, p := range v.Params {
			for _, value := range values {
				params := packs.Params{p.Name: value}
				for _, q := range v.Params {
					if q.Required && q.Name != p.Name {
						params[q.Name] = "22222222-2222-4222-8222-222222222222"
					}
				}
				_, err := w.direct(context.Background(), in("a"), v.Name, params)
				if err == nil {
					continue
				}
				var bad *packs.InvalidError
				var missing *packs.NotFoundError
				require.True(t, asOneOf(err, &bad, &missing), "%s(%s=%#v): %v", v.Name, p.Name, value, err)
			}
		}
	}
}
