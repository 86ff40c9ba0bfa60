package kg_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sound holds the store to what must be true of it after any sequence of calls.
func (w *world) sound() {
	w.t.Helper()
	for what, query := range map[string]string{
		"an edge without an end":           `SELECT count(*) FROM kg_edges e WHERE NOT EXISTS (SELECT 1 FROM kg_records WHERE seq = e.source) OR NOT EXISTS (SELECT 1 FROM kg_records WHERE seq = e.target)`,
		"an edge to itself":                `SELECT count(*) FROM kg_edges WHERE source = target`,
		"a tag without a record":           `SELECT count(*) FROM kg_tags WHERE record NOT IN (SELECT seq FROM kg_records)`,
		"tags that are not indexed":        `SELECT abs((SELECT count(*) FROM kg_tags) - (SELECT count(*) FROM kg_records r, json_each(r.tags)))`,
		"records that are not indexed":     `SELECT count(*) FROM kg_records WHERE seq NOT IN (SELECT rowid FROM kg_fts)`,
		"index entries of no record":       `SELECT count(*) FROM kg_fts WHERE rowid NOT IN (SELECT seq FROM kg_records)`,
		"an entity or note without a text": `SELECT count(*) FROM kg_records WHERE (kind = 'entity' AND name IS NULL) OR (kind = 'note' AND body IS NULL)`,
	} {
		require.NoError(w.t, w.backend.Read(context.Background(), func(tx *sql.Tx) error {
			var n int
			err := tx.QueryRow(query).Scan(&n)
			require.Zero(w.t, n, what)
			return err
		}))
	}
	require.NoError(w.t, w.backend.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO kg_fts (kg_fts, rank) VALUES ('integrity-check', 0)`)
		return err
	}))
}

// A random sequence of calls does to the store what it does to a model of a few lines.
func TestModel(t *testing.T) {
	words := []string{"alpha", "beta", "gamma", "delta", "画像", "🚀", "LoRA"}
	spaces := []string{"a", "b", "c"}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("OK seed ", seed), func(t *testing.T) {
			w := open(t)
			r := rand.New(rand.NewPCG(seed, 7))
			type note struct{ id, namespace, content string }
			type edge struct{ source, target, relation, namespace string }
			var notes []note // in the order of creation
			edges := map[edge]bool{}
			content := func() string { return words[r.IntN(len(words))] + " " + words[r.IntN(len(words))] }
			var at int
			pickID := func() string {
				at = r.IntN(len(notes))
				return notes[at].id
			}
			for range 150 {
				who := in(spaces[r.IntN(3)], spaces[r.IntN(3)])
				switch op := r.IntN(10); {
				case op < 4 || len(notes) < 3:
					c := content()
					notes = append(notes, note{w.note(who, c), who.namespace, c})
				case op == 4:
					c := content()
					w.must(who, "update", object{"id": pickID(), "content": c})
					notes[at].content = c
				case op == 5:
					id := pickID()
					w.must(who, "delete", object{"id": id})
					notes = slices.Delete(notes, at, at+1)
					for e := range edges {
						if e.source == id || e.target == id {
							delete(edges, e)
						}
					}
				case op < 9:
					e := edge{pickID(), pickID(), []string{"r", "s"}[r.IntN(2)], who.namespace}
					got, err := w.call(who, "link", object{"source_id": e.source, "target_id": e.target, "relation": e.relation})
					if e.source == e.target {
						requireKind(t, err, invalid, "target_id")
						continue
					}
					require.NoError(t, err)
					require.Equal(t, !edges[e], got["created"])
					edges[e] = true
				default:
					from, into := pickID(), pickID()
					kept := notes[at]
					gone := notes[slices.IndexFunc(notes, func(n note) bool { return n.id == from })]
					_, err := w.call(in(kept.namespace), "merge_note", object{"into_id": into, "from_id": from})
					switch {
					case kept.namespace != gone.namespace:
						requireKind(t, err, mismatch, "from_id")
						continue
					case into == from:
						requireKind(t, err, invalid, "from_id")
						continue
					}
					require.NoError(t, err)
					if kept.content != gone.content {
						notes[at].content += "\n\n" + gone.content
					}
					notes = slices.DeleteFunc(notes, func(n note) bool { return n.id == from })
					for e := range edges {
						moved := e
						if moved.source == from {
							moved.source = into
						}
						if moved.target == from {
							moved.target = into
						}
						if moved != e {
							delete(edges, e)
							if moved.source != moved.target {
								edges[moved] = true
							}
						}
					}
				}
			}
			w.sound()
			for _, read := range [][]string{{"a"}, {"b", "c"}, {"a", "b", "c"}, {"d"}} {
				who := token{namespace: "d", read: read}
				var want []string
				for _, n := range notes {
					if slices.Contains(read, n.namespace) {
						want = append(want, n.id)
					}
				}
				require.Equal(t, want, slices.Concat(w.pages(who, "list", object{"order": "oldest", "limit": number(7)})...))
				for _, word := range words {
					var hits []string
					for _, n := range notes {
						if slices.Contains(read, n.namespace) && strings.Contains(n.content, word) {
							hits = append(hits, n.id)
						}
					}
					require.ElementsMatch(t, hits, pluck(w.must(who, "search", object{"query": strings.ToUpper(word), "limit": number(100)}), "id"), word)
				}
				shown := 0
				for _, n := range notes {
					var far []string
					for e := range edges {
						other := e.target
						if e.target == n.id {
							other = e.source
						} else if e.source != n.id {
							continue
						}
						space := notes[slices.IndexFunc(notes, func(n note) bool { return n.id == other })].namespace
						if slices.Contains(read, e.namespace) && slices.Contains(read, space) {
							far = append(far, other)
						}
					}
					var got []string
					for _, item := range w.must(who, "neighbors", object{"id": n.id, "limit": number(200)})["items"].([]any) {
						got = append(got, item.(object)["record"].(object)["id"].(string))
					}
					require.ElementsMatch(t, far, got)
					shown += len(got)
				}
				if len(read) == 3 {
					require.Equal(t, 2*len(edges), shown)
				}
			}
		})
	}
}
