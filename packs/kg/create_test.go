package kg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestCreate(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		name, params string
		want         string // the record without id and times
		kind, text   string
	}{
		{name: "OK seed", params: `{"kind":"entity","entity_kind":"concept","name":"LoRA"}`,
			want: `{"kind":"entity","entity_kind":"concept","name":"LoRA","tags":[],"properties":{},"namespace":"a"}`},
		{name: "OK entity with everything", params: `{"kind":"entity","entity_kind":"paper","name":"<LoRA> & co","description":"","tags":["x","y","x"],
				"properties":{"int":9007199254740993,"huge":123456789012345678901234567890,"dec":1.0,"exp":1E2,"deep":[{"n":null,"t":true}]}}`,
			want: `{"kind":"entity","entity_kind":"paper","name":"<LoRA> & co","description":"","tags":["x","y"],"namespace":"a",
				"properties":{"int":9007199254740993,"huge":123456789012345678901234567890,"dec":1.0,"exp":1E2,"deep":[{"n":null,"t":true}]}}`},
		{name: "OK note", params: `{"kind":"note","content":"hello"}`,
			want: `{"kind":"note","content":"hello","tags":[],"properties":{},"namespace":"a"}`},
		{name: "OK note with everything", params: `{"kind":"note","note_kind":"observation","title":"T","content":" c ","tags":["x"],"properties":{"a":"b"}}`,
			want: `{"kind":"note","note_kind":"observation","title":"T","content":" c ","tags":["x"],"properties":{"a":"b"},"namespace":"a"}`},
		{name: "OK odd text", params: `{"kind":"note","title":"\u202eRTL \u05d0","content":"nul \u0000 tab \t emoji \ud83d\ude80 sep \u2028"}`,
			want: `{"kind":"note","title":"\u202eRTL \u05d0","content":"nul \u0000 tab \t emoji \ud83d\ude80 sep \u2028","tags":[],"properties":{},"namespace":"a"}`},
		{name: "OK 64 KiB", params: `{"kind":"note","content":"` + long + `"}`,
			want: `{"kind":"note","content":"` + long + `","tags":[],"properties":{},"namespace":"a"}`},
		{name: "Err nothing", params: `{}`, kind: invalid, text: `kind: is missing; write kind="entity"`},
		{name: "Err kind", params: `{"kind":"edge"}`, kind: invalid, text: "kind"},
		{name: "Err no name", params: `{"kind":"entity","entity_kind":"x"}`, kind: invalid, text: "name: is missing"},
		{name: "Err no entity_kind", params: `{"kind":"entity","name":"x"}`, kind: invalid, text: "entity_kind: is missing"},
		{name: "Err blank name", params: `{"kind":"entity","entity_kind":"x","name":" \t"}`, kind: invalid, text: "name: is blank"},
		{name: "Err entity_kind form", params: `{"kind":"entity","entity_kind":"Big Thing","name":"x"}`, kind: invalid, text: "entity_kind: must begin"},
		{name: "Err field of the other kind", params: `{"kind":"entity","entity_kind":"x","name":"x","content":"c"}`, kind: invalid, text: "content: is no field of an entity"},
		{name: "Err note without content", params: `{"kind":"note","title":"x"}`, kind: invalid, text: "content: is missing"},
		{name: "Err blank content", params: `{"kind":"note","content":"\n"}`, kind: invalid, text: "content: is blank"},
		{name: "Err too long", params: `{"kind":"note","content":"` + long + `x"}`, kind: invalid, text: "content"},
		{name: "Err blank tag", params: `{"kind":"note","content":"x","tags":["a",""]}`, kind: invalid, text: "tags: element [1] is blank"},
		{name: "Err null", params: `{"kind":"note","content":"x","title":null}`, kind: invalid, text: "title"},
		{name: "Err properties too big", params: `{"kind":"note","content":"x","properties":{"a":"` + long + `"}}`, kind: invalid, text: "properties: take"},
		{name: "Err items and more", params: `{"items":[{"kind":"note","content":"x"}],"kind":"note"}`, kind: invalid, text: "items: stands alone"},
		{name: "Err no items", params: `{"items":[]}`, kind: invalid, text: "items: is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t)
			got, err := w.call(in("a", "b"), "create", args(t, tt.params))
			requireKind(t, err, tt.kind, tt.text)
			if tt.kind != ok {
				require.Zero(t, w.rows("kg_records"))
				return
			}
			require.Equal(t, got, w.must(in("elsewhere"), "get", object{"id": got["id"]}))
			require.Regexp(t, uuid4, got["id"])
			require.Equal(t, "2026-03-04T04:06:07.000008Z", got["created_at"])
			require.Equal(t, got["created_at"], got["updated_at"])
			for _, k := range []string{"id", "created_at", "updated_at"} {
				delete(got, k)
			}
			require.Equal(t, args(t, tt.want), got)
		})
	}
}

func TestCreateItems(t *testing.T) {
	note := object{"kind": "note", "content": "x"}
	many := func(n int, last any) []any {
		items := make([]any, n)
		for i := range items {
			items[i] = object{"kind": "entity", "entity_kind": "thing", "name": fmt.Sprint("thing ", i), "tags": list("bulk")}
		}
		if last != nil {
			items[n-1] = last
		}
		return items
	}
	for _, tt := range []struct {
		name       string
		items      any
		count      int
		kind, text string
	}{
		{name: "OK one", items: list(note), count: 1},
		{name: "OK mixed", items: many(3, note), count: 3},
		{name: "OK 1000", items: many(1000, nil), count: 1000},
		{name: "Err 1001", items: many(1001, nil), kind: invalid, text: "items"},
		{name: "Err last of 1000", items: many(1000, object{"kind": "entity", "entity_kind": "thing"}), kind: invalid, text: "items[999].name: is missing"},
		{name: "Err not an object", items: list(note, "x"), kind: invalid, text: "items[1]"},
		{name: "Err no array", items: "x", kind: invalid, text: "items"},
		{name: "Err null", items: nil, kind: invalid, text: "items"},
		{name: "Err misspelt member", items: list(object{"kind": "note", "content": "x", "contents": "y"}), kind: invalid, text: "items[0].contents: is no field of a note; those are kind, note_kind"},
		{name: "Err strange member", items: list(object{"kind": "note", "content": "x", "a\u202e\n": "y"}), kind: invalid, text: `items[0]."a\u202e\n"`},
		{name: "Err wrong types", items: list(object{"kind": "note", "content": list()}), kind: invalid, text: "items[0].content: must be a string"},
		{name: "Err tag types", items: list(object{"kind": "note", "content": "x", "tags": list(true)}), kind: invalid, text: "items[0].tags: element [0] must be a string"},
		{name: "Err tags no list", items: list(object{"kind": "note", "content": "x", "tags": "a"}), kind: invalid, text: "items[0].tags: must be an array"},
		{name: "Err tags too many", items: list(object{"kind": "note", "content": "x", "tags": distinct(33)}), kind: invalid, text: "items[0].tags: are 33"},
		{name: "Err tag too long", items: list(object{"kind": "note", "content": "x", "tags": list(strings.Repeat("t", 129))}), kind: invalid, text: "items[0].tags: element [0] has 129 bytes"},
		{name: "Err properties type", items: list(object{"kind": "note", "content": "x", "properties": list()}), kind: invalid, text: "items[0].properties: must be an object"},
		{name: "Err name too long", items: list(object{"kind": "entity", "entity_kind": "x", "name": strings.Repeat("n", 513)}), kind: invalid, text: "items[0].name: has 513 bytes"},
		{name: "Err null in an item", items: list(object{"kind": "note", "content": "x", "title": nil}), kind: invalid, text: "items[0].title: is null"},
		{name: "Err nested items", items: list(object{"items": list(note)}), kind: invalid, text: "items[0].kind: is missing"},
		{name: "Err unknown kind", items: list(object{"kind": "edge"}), kind: invalid, text: `items[0].kind: must be "entity" or "note"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t)
			// The handler by itself: it must not lean on what the manifest has checked.
			_, err := w.direct(context.Background(), in("a"), "create", packs.Params{"items": tt.items})
			requireKind(t, err, tt.kind, tt.text)
			require.Equal(t, tt.count, w.rows("kg_records"))
			require.Equal(t, tt.count, w.rows("kg_fts"))
		})
	}
	t.Run("OK the answer is in the order of the items", func(t *testing.T) {
		w := open(t)
		got := w.must(in("a"), "create", object{"items": many(3, nil)})
		require.Len(t, got, 2)
		require.EqualValues(t, "3", got["count"])
		for i, id := range got["ids"].([]any) {
			require.Equal(t, fmt.Sprint("thing ", i), w.must(in("a"), "get", object{"id": id})["name"])
		}
	})
	t.Run("Err cancelled half way leaves nothing", func(t *testing.T) {
		w := open(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := w.direct(ctx, in("a"), "create", packs.Params{"items": many(1000, nil)})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, w.rows("kg_records"))
	})
}

func distinct(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprint("tag", i)
	}
	return out
}
