package kg_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func TestListFilters(t *testing.T) {
	w := open(t)
	a, b, z := in("a"), in("b"), in("z")
	first := w.entity(a, "Alpha", object{"tags": list("x", "y")})
	second := w.entity(a, "alphabet", object{"entity_kind": "paper", "tags": list("y")})
	third := w.must(a, "create", object{"kind": "note", "content": "c", "note_kind": "observation", "title": "ALPINE%"})["id"].(string)
	fourth := w.note(b, "in b")
	w.entity(z, "Alpha", object{"tags": list("x", "y")})
	both := in("a", "b")
	for _, tt := range []struct {
		name       string
		who        packs.Token
		params     object
		want       []string
		kind, text string
	}{
		{name: "OK newest first", who: both, want: []string{fourth, third, second, first}},
		{name: "OK oldest first", who: both, params: object{"order": "oldest"}, want: []string{first, second, third, fourth}},
		{name: "OK one namespace", who: a, want: []string{third, second, first}},
		{name: "OK kind", who: both, params: object{"kind": "entity"}, want: []string{second, first}},
		{name: "OK notes", who: both, params: object{"kind": "note"}, want: []string{fourth, third}},
		{name: "OK entity_kind", who: both, params: object{"entity_kind": "paper"}, want: []string{second}},
		{name: "OK note_kind", who: both, params: object{"note_kind": "observation", "kind": "note"}, want: []string{third}},
		{name: "OK tag", who: both, params: object{"tag": "y"}, want: []string{second, first}},
		{name: "OK tag and kind", who: both, params: object{"tag": "y", "entity_kind": "concept"}, want: []string{first}},
		{name: "OK tag is text", who: both, params: object{"tag": "%"}, want: []string{}},
		{name: "OK name_prefix in either case", who: both, params: object{"name_prefix": "ALPHA"}, want: []string{second, first}},
		{name: "OK name_prefix of a title", who: both, params: object{"name_prefix": "alpine%"}, want: []string{third}},
		{name: "OK name_prefix is text", who: both, params: object{"name_prefix": "al%"}, want: []string{}},
		{name: "OK name_prefix of one character is text", who: both, params: object{"name_prefix": "_"}, want: []string{}},
		{name: "OK no namespace at all", who: token{namespace: "a"}, want: []string{}},
		{name: "OK unknown namespace", who: in("nowhere"), want: []string{}},
		{name: "OK a star is a name like any other", who: in("*"), want: []string{}},
		{name: "OK an empty namespace is not all", who: in(""), want: []string{}},
		{name: "Err kind", who: a, params: object{"kind": "edge"}, kind: invalid, text: "kind"},
		{name: "Err empty kind", who: a, params: object{"kind": ""}, kind: invalid, text: "kind"},
		{name: "Err empty tag", who: a, params: object{"tag": ""}, kind: invalid, text: "tag: is blank"},
		{name: "Err empty entity_kind", who: a, params: object{"entity_kind": ""}, kind: invalid, text: "entity_kind"},
		{name: "Err both kinds", who: a, params: object{"entity_kind": "x", "note_kind": "y"}, kind: invalid, text: "note_kind"},
		{name: "Err the wrong kind", who: a, params: object{"entity_kind": "x", "kind": "note"}, kind: invalid, text: "entity_kind: is a filter for records of the kind entity"},
		{name: "Err order", who: a, params: object{"order": "random"}, kind: invalid, text: "order"},
		{name: "Err null", who: a, params: object{"tag": nil}, kind: invalid, text: "tag"},
	} {
		for via, call := range map[string]func() (object, error){
			"":         func() (object, error) { return w.call(tt.who, "list", tt.params) },
			" by hand": func() (object, error) { return w.direct(context.Background(), tt.who, "list", tt.params) },
		} {
			t.Run(tt.name+via, func(t *testing.T) {
				got, err := call()
				requireKind(t, err, tt.kind, tt.text)
				if tt.kind == ok {
					require.Equal(t, tt.want, pluck(got, "id"))
					require.NotContains(t, got, "next_cursor")
				}
			})
		}
	}
}

func TestListLimits(t *testing.T) {
	w := open(t)
	me := in("a")
	for i := range 60 {
		w.note(me, fmt.Sprint(i))
	}
	for _, tt := range []struct {
		name, params string
		want         int
		kind         string
	}{
		{name: "OK default", params: `{}`, want: 50},
		{name: "OK one", params: `{"limit":1}`, want: 1},
		{name: "OK most", params: `{"limit":200}`, want: 60},
		{name: "Err none", params: `{"limit":0}`, kind: invalid},
		{name: "Err more", params: `{"limit":201}`, kind: invalid},
		{name: "Err negative", params: `{"limit":-1}`, kind: invalid},
		{name: "Err fraction", params: `{"limit":1.5}`, kind: invalid},
		{name: "Err huge", params: `{"limit":18446744073709551617}`, kind: invalid},
		{name: "Err text", params: `{"limit":"5"}`, kind: invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.call(me, "list", args(t, tt.params))
			requireKind(t, err, tt.kind, "limit")
			direct, err := w.direct(context.Background(), me, "list", args(t, tt.params))
			requireKind(t, err, tt.kind, "limit")
			if tt.kind == ok {
				require.Len(t, got["items"], tt.want)
				require.Equal(t, got, direct)
			}
		})
	}
	t.Run("OK long records end a page early", func(t *testing.T) {
		for range 20 {
			w.must(me, "create", object{"kind": "note", "note_kind": "long", "content": strings.Repeat("\x00", 64<<10)})
		}
		pages := w.pages(me, "list", object{"note_kind": "long", "limit": number(200)})
		require.Greater(t, len(pages), 1)
		require.Len(t, slices.Concat(pages...), 20)
		require.Less(t, len(pages[0]), 17)
	})
}

// pages reads a listing to its end.
func (w *world) pages(who packs.Token, verb string, params object) (pages [][]string) {
	w.t.Helper()
	for {
		got := w.must(who, verb, params)
		pages = append(pages, pluck(got, "id"))
		next, more := got["next_cursor"]
		if !more {
			return pages
		}
		params = with(params, "cursor", next)
	}
}

func TestCursor(t *testing.T) {
	w := open(t)
	me := in("a", "b")
	var want []string
	for i := range 7 {
		who := in("a")
		if i%2 == 1 {
			who = in("b")
		}
		want = append(want, w.note(who, fmt.Sprint(i)))
		w.note(in("z"), "not seen")
	}
	t.Run("OK oldest first", func(t *testing.T) {
		require.Equal(t, [][]string{want[:3], want[3:6], want[6:]}, w.pages(me, "list", object{"limit": number(3), "order": "oldest"}))
	})
	t.Run("OK newest first", func(t *testing.T) {
		newest := slices.Clone(want)
		slices.Reverse(newest)
		require.Equal(t, newest, slices.Concat(w.pages(me, "list", object{"limit": number(3)})...))
	})
	t.Run("OK no page after one that is just full", func(t *testing.T) {
		require.Len(t, w.pages(me, "list", object{"limit": number(7)}), 1)
	})
	t.Run("OK deletions do not disturb", func(t *testing.T) {
		page := w.must(me, "list", object{"limit": number(2), "order": "oldest"})
		w.must(me, "delete", object{"id": want[1]}) // the very record the cursor stands on
		rest := w.must(me, "list", object{"limit": number(200), "order": "oldest", "cursor": page["next_cursor"]})
		require.Equal(t, want[2:], pluck(rest, "id"))
	})
	t.Run("OK very many namespaces", func(t *testing.T) {
		for _, n := range []int{64, 65, 1200} {
			many := token{namespace: "a", read: []string{"a", "b"}}
			for i := len(many.read); i < n; i++ {
				many.read = append(many.read, fmt.Sprint("n", i))
			}
			require.Equal(t, slices.Concat(w.pages(me, "list", object{"limit": number(2)})...),
				slices.Concat(w.pages(many, "list", object{"limit": number(2)})...))
			require.Equal(t, "6", string(w.must(many, "stats", object{})["notes"].(json.Number)))
		}
	})
	good := w.must(me, "list", object{"limit": number(2)})["next_cursor"].(string)
	elsewhere := open(t)
	elsewhere.note(me, "1")
	elsewhere.note(me, "2")
	another := elsewhere.must(me, "list", object{"limit": number(1)})["next_cursor"].(string)
	for name, cursor := range map[string]string{
		"Err empty":        "",
		"Err text":         "next",
		"Err seq":          "5",
		"Err cut":          good[:len(good)-1],
		"Err long":         strings.Repeat("A", 64),
		"Err line break":   good[:4] + "\n" + good[4:],
		"Err padding":      good + "=",
		"Err injection":    "1' OR '1'='1",
		"Err made up":      base64.RawURLEncoding.EncodeToString([]byte("0123456789abcdef")),
		"Err not sealed":   base64.RawURLEncoding.EncodeToString([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
		"Err of old":       base64.RawURLEncoding.EncodeToString([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
		"Err another file": another,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.call(me, "list", object{"cursor": cursor})
			requireKind(t, err, invalid, "cursor: is not one that an answer gave")
		})
	}
	for name, params := range map[string]object{
		"Err another filter": {"cursor": good, "kind": "note"},
		"Err another order":  {"cursor": good, "order": "oldest"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.call(me, "list", params)
			requireKind(t, err, invalid, "cursor: belongs to another query")
		})
	}
	t.Run("Err another verb", func(t *testing.T) {
		_, err := w.call(me, "neighbors", object{"id": want[0], "cursor": good})
		requireKind(t, err, invalid, "cursor: belongs to another query")
	})
	t.Run("OK another limit", func(t *testing.T) {
		_, err := w.call(me, "list", object{"cursor": good, "limit": number(9)})
		require.NoError(t, err)
	})
}

// A cursor does not tell how much others have written: no two of one listing are alike.
func TestCursorTellsNothing(t *testing.T) {
	w := open(t)
	me := in("a")
	hub := w.note(me, "hub")
	for range 12 {
		w.must(me, "link", object{"source_id": hub, "target_id": w.note(me, "x"), "relation": "r"})
	}
	for verb, params := range map[string]object{"list": {"limit": number(1)}, "neighbors": {"id": hub, "limit": number(1)}} {
		var before []byte
		for range 11 {
			next := w.must(me, verb, params)["next_cursor"]
			b, err := base64.RawURLEncoding.DecodeString(next.(string))
			require.NoError(t, err)
			if before != nil {
				differ := 0
				for i := range b {
					differ += bits.OnesCount8(b[i] ^ before[i])
				}
				require.Greater(t, differ, 30, "of 128 bits, about half of which differ between two places")
			}
			before = b
			params = with(params, "cursor", next)
		}
	}
}

// A cursor goes on in another process, and in a folder that was made before cursors were sealed.
func TestCursorOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	reopen := func(migrations int) *world {
		files := sqlite.New(dir, nil)
		t.Cleanup(func() { require.NoError(t, files.Close()) })
		manifest := kg.Pack{}.Manifest()
		schema := manifest.Schema
		schema.Migrations = schema.Migrations[:migrations]
		backend, err := files.OpenBackend(context.Background(), "kg", manifest.Name, schema)
		require.NoError(t, err)
		instance, err := kg.Pack{}.Open(context.Background(), packs.Env{Backend: backend})
		require.NoError(t, err)
		return &world{t: t, instance: instance, handlers: instance.Handlers(), manifest: manifest, backend: backend, who: in("a"), told: &told{}}
	}
	w := reopen(1)
	one, two := w.note(in("a"), "1"), w.note(in("a"), "2")
	got := reopen(2).must(in("a"), "list", object{"limit": number(1)})
	require.Equal(t, []string{two}, pluck(got, "id"))
	require.Equal(t, []string{one}, pluck(reopen(2).must(in("a"), "list", object{"cursor": got["next_cursor"]}), "id"))
}

// Whoever pages through a listing while others write sees every record that was there throughout,
// once, in order.
func TestListUnderWrites(t *testing.T) {
	for _, order := range []string{"newest", "oldest"} {
		t.Run("OK "+order, func(t *testing.T) {
			w := open(t)
			me := in("a")
			var there []string
			for i := range 40 {
				there = append(there, w.note(me, fmt.Sprint(i)))
			}
			if order == "newest" {
				slices.Reverse(there)
			}
			var writers sync.WaitGroup
			stop := make(chan struct{})
			for range 3 {
				writers.Go(func() { // ends when stop is closed
					for {
						select {
						case <-stop:
							return
						default:
						}
						_, err := w.direct(context.Background(), me, "create", packs.Params{"kind": "note", "content": "late"})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			var seen []string
			params := object{"limit": number(3), "order": order}
			for len(seen) < len(there) || !containsAll(seen, there) {
				got := w.must(me, "list", params)
				seen = append(seen, pluck(got, "id")...)
				next, more := got["next_cursor"]
				if !more {
					break
				}
				params = with(params, "cursor", next)
			}
			close(stop)
			writers.Wait()
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(seen))), len(seen), "a record was listed twice")
			seen = slices.DeleteFunc(seen, func(id string) bool { return !slices.Contains(there, id) })
			require.Equal(t, there, seen)
		})
	}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
