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
		// No Emit: what is not in the store is not told.
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

// Whatever fails in the middle of a write, nothing of the write stays.
func TestHalfWay(t *testing.T) {
	w := open(t)
	me := in("a")
	into, from, far := w.entity(me, "into"), w.entity(me, "from", object{"tags": list("t")}), w.note(me, "far")
	w.must(me, "link", object{"source_id": from, "target_id": far, "relation": "r"})
	w.must(me, "link", object{"source_id": into, "target_id": from, "relation": "r"})
	// A store that refuses a tag after the record has been written, and the last step of a removal.
	w.exec(`CREATE TRIGGER no_tag BEFORE INSERT ON kg_tags WHEN NEW.tag = 'refused' BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	w.exec(`CREATE TRIGGER no_removal BEFORE DELETE ON kg_records BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	before := w.dump()
	refused := list("refused")
	for name, call := range map[string]func() (object, error){
		"Err create": func() (object, error) {
			return w.call(me, "create", object{"kind": "note", "content": "x", "tags": refused})
		},
		"Err create the last of many": func() (object, error) {
			items := make([]any, 1000)
			for i := range items {
				items[i] = object{"kind": "note", "content": "x"}
			}
			items[999] = object{"kind": "note", "content": "x", "tags": refused}
			return w.call(me, "create", object{"items": items})
		},
		"Err update": func() (object, error) { return w.call(me, "update", object{"id": from, "name": "x", "tags": refused}) },
		"Err delete": func() (object, error) { return w.call(me, "delete", object{"id": from}) },
		"Err merge": func() (object, error) {
			return w.call(me, "merge_entity", object{"into_id": into, "from_id": from})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.told.take()
			_, err := call()
			require.Error(t, err)
			require.Equal(t, before, w.dump())
			require.Empty(t, w.told.take())
		})
	}
	w.sound()
}

// dump is all that the pack's own tables hold.
func (w *world) dump() (rows []string) {
	w.t.Helper()
	for _, query := range []string{
		`SELECT json_array(seq, id, kind, sub_kind, namespace, created_at, updated_at, name, name_fold, tags, properties, body) FROM kg_records ORDER BY seq`,
		`SELECT json_array(record, tag) FROM kg_tags ORDER BY record, tag`,
		`SELECT json_array(seq, id, source, target, relation, namespace, created_at, weight, properties) FROM kg_edges ORDER BY seq`,
		`SELECT json_array(rowid) FROM kg_fts ORDER BY rowid`,
	} {
		require.NoError(w.t, w.backend.Read(context.Background(), func(tx *sql.Tx) error {
			found, err := tx.Query(query)
			if err != nil {
				return err
			}
			defer found.Close()
			for found.Next() {
				var row string
				if err := found.Scan(&row); err != nil {
					return err
				}
				rows = append(rows, row)
			}
			return found.Err()
		}))
	}
	return rows
}

// failing is a backend that cannot serve.
type failing struct{ err error }

func (f failing) Read(context.Context, func(*sql.Tx) error) error  { return f.err }
func (f failing) Write(context.Context, func(*sql.Tx) error) error { return f.err }
