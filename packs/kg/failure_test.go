package kg_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
)

// everyVerb has params for each verb that pass its own checks.
func everyVerb(id1, id2 string) map[string]packs.Params {
	return map[string]packs.Params{
		"create": {"kind": "note", "content": "x"}, "get": {"id": id1}, "list": {}, "update": {"id": id1, "content": "x"}, "delete": {"id": id1},
		"search": {"query": "x"}, "link": {"source_id": id1, "target_id": id2, "relation": "r"}, "neighbors": {"id": id1},
		"merge_entity": {"into_id": id1, "from_id": id2}, "merge_note": {"into_id": id1, "from_id": id2}, "stats": {},
	}
}

// A store that fails says so as it is; nothing is made of it.
func TestStoreFailure(t *testing.T) {
	broken := errors.New("broken")
	instance, err := kg.Pack{}.Open(context.Background(), packs.Env{Backend: failing{broken}})
	require.NoError(t, err)
	const id = "11111111-1111-4111-8111-111111111111"
	for verb, params := range everyVerb(id, id[:8]) {
		_, err := instance.Handlers()[verb](context.Background(), &packs.Call{Verb: verb, Params: params, Token: in("a"), Time: now})
		require.ErrorIs(t, err, broken, verb)
	}
	_, err = instance.(packs.Locator).Locate(context.Background(), packs.ResourceRef{Verb: "get", Param: "id", ID: id, Token: in("a")})
	require.ErrorIs(t, err, broken)
}

// Who has gone away gets nothing done.
func TestCancelled(t *testing.T) {
	w := open(t)
	id1, id2 := w.note(in("a"), "1"), w.note(in("a"), "2")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls := everyVerb(id1, id2)
	require.Len(t, calls, len(w.handlers))
	for verb, params := range calls {
		_, err := w.direct(ctx, in("a"), verb, params)
		require.ErrorIs(t, err, context.Canceled, verb)
	}
	require.Equal(t, 2, w.rows("kg_records"))
	require.Zero(t, w.rows("kg_edges"))
}

// failing is a backend that cannot serve.
type failing struct{ err error }

func (f failing) Read(context.Context, func(*sql.Tx) error) error  { return f.err }
func (f failing) Write(context.Context, func(*sql.Tx) error) error { return f.err }
