package kg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a search answers is the same whatever the namespaces hold that the caller may not read: the
// hits, their order, their scores and their snippets. A caller who plants two notes and compares their
// scores learns nothing of the words of others.
func TestSearchDoesNotSeeForeignRecords(t *testing.T) {
	w := open(t)
	me := in("a", "b")
	w.entity(me, "kestrel", object{"tags": list("bird")})
	w.note(me, "one note about a merger, and one kestrel")
	w.note(in("b"), "one note about a picnic "+strings.Repeat("and a few words more ", 30))
	w.entity(in("b"), "picnic", object{"description": "mergers are bad for a picnic"})
	w.note(me, "merger")
	w.note(me, "画像認識 picnics")
	answers := func() (out []object) {
		for _, query := range []string{"merger", "picnic", "merger picnic", "picnic merger kestrel bird", "merg pic", "note one", "画像", "layoff"} {
			for _, more := range []object{{}, {"match": "any"}, {"match": "any", "kind": "note"}, {"match": "any", "limit": number(1)}} {
				out = append(out, w.must(me, "search", with(more, "query", query)))
			}
		}
		return out
	}
	before := answers()
	other := in("z")
	for i := range 200 {
		switch i % 4 {
		case 0:
			w.note(other, "merger "+strings.Repeat("merger talks ", i%7))
		case 1:
			w.entity(other, "picnic merger", object{"description": "kestrel", "tags": list("bird", "merger")})
		case 2:
			w.note(other, "mergers and layoffs: "+strings.Repeat("a long text without any of it ", 40))
		default:
			w.note(other, "画像認識 picnics")
		}
	}
	require.Equal(t, before, answers())
}

func TestRanking(t *testing.T) {
	filler := func(w *world, content string, n int) {
		items := make([]any, n)
		for i := range items {
			items[i] = object{"kind": "note", "content": content}
		}
		w.must(in("a"), "create", object{"items": items})
	}
	first := func(w *world, params object) string {
		return pluck(w.must(in("a"), "search", params), "id")[0]
	}
	// The one that should come first is the older one: among equals it would come last.
	t.Run("OK rare words count more", func(t *testing.T) {
		w := open(t)
		rare := w.note(in("a"), "narwhal and nothing else, in a text that is a little longer than theirs")
		filler(w, "the usual words and no others", 30)
		require.Equal(t, rare, first(w, object{"query": "usual narwhal", "match": "any"}))
		require.Equal(t, rare, first(w, object{"query": "narwhal usual", "match": "any"}))
	})
	t.Run("OK a filter changes no score", func(t *testing.T) {
		w := open(t)
		w.note(in("a"), "narwhal")
		w.note(in("a"), "usual")
		for i := range 20 {
			w.entity(in("a"), fmt.Sprint("usual ", i))
		}
		scores := map[string]any{}
		query := object{"query": "usual narwhal", "match": "any", "limit": number(100)}
		for _, item := range w.must(in("a"), "search", query)["items"].([]any) {
			scores[item.(object)["id"].(string)] = item.(object)["score"]
		}
		notes := w.must(in("a"), "search", with(query, "kind", "note"))["items"].([]any)
		require.Len(t, notes, 2)
		for _, item := range notes {
			require.Equal(t, scores[item.(object)["id"].(string)], item.(object)["score"])
		}
	})
	t.Run("OK short before long", func(t *testing.T) {
		w := open(t)
		short := w.entity(in("a"), "LoRA")
		w.entity(in("a"), "LoRA and "+strings.Repeat("other adapters, ", 10))
		require.Equal(t, short, first(w, object{"query": "lora"}))
	})
	t.Run("OK a name outweighs a long text", func(t *testing.T) {
		w := open(t)
		named := w.must(in("a"), "create", object{"kind": "note", "title": "LoRA", "content": strings.Repeat("text ", 2000)})["id"].(string)
		w.note(in("a"), strings.Repeat("text ", 80)+"lora")
		require.Equal(t, named, first(w, object{"query": "lora"}))
	})
	t.Run("OK the place of a common word beside a rare one", func(t *testing.T) {
		for _, query := range []string{"usual narwhal", "narwhal usual"} {
			w := open(t)
			named := w.must(in("a"), "create", object{"kind": "note", "title": "usual", "content": "narwhal and its long tusk"})["id"].(string)
			w.must(in("a"), "create", object{"kind": "note", "title": "other", "content": "narwhal usual"})
			filler(w, "the usual words", 30)
			require.Equal(t, named, first(w, object{"query": query}))
		}
	})
	t.Run("OK a run of characters in a name", func(t *testing.T) {
		w := open(t)
		named := w.entity(in("a"), "画像認識")
		w.note(in("a"), "画像")
		require.Equal(t, named, first(w, object{"query": "画像"}))
	})
}

// Of very many records that have the words the newest are ranked, and all that have them in their names
// and tags. Filters come before that.
func TestSearchAmongVeryMany(t *testing.T) {
	w := open(t)
	me := in("a")
	named := w.entity(me, "needle")
	tagged := w.must(me, "create", object{"kind": "note", "content": "hay", "tags": list("needle")})["id"].(string)
	short := w.must(me, "create", object{"kind": "note", "content": "needle", "tags": list("old")})["id"].(string)
	// Past the handlers: it would take them long.
	w.exec(`INSERT INTO kg_records (id, kind, namespace, created_at, updated_at, tags, properties, body)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		SELECT printf('00000000-0000-4000-8000-%012d', i), 'note', 'a', '', '', '[]', '{}', 'a needle among much hay' FROM n`)
	w.exec(`INSERT INTO kg_fts (rowid, name, body, tags) SELECT seq, '', body, '' FROM kg_records WHERE created_at = ''`)
	got := pluck(w.must(me, "search", object{"query": "needle", "limit": number(100)}), "id")
	require.Equal(t, []string{named, tagged}, got[:2])
	require.NotContains(t, got, short, "it is older than the 20 000 that are ranked")
	require.Len(t, got, 100)
	require.Equal(t, []string{short}, pluck(w.must(me, "search", object{"query": "needle", "tag": "old"}), "id"))
}
