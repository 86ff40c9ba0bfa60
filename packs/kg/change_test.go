package kg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestUpdate(t *testing.T) {
	const (
		entity = `{"kind":"entity","entity_kind":"concept","name":"n","description":"d","tags":["x"],"properties":{"a":1,"b":{"c":2},"n":null}}`
		note   = `{"kind":"note","note_kind":"idea","title":"t","content":"c","tags":["x"],"properties":{"a":1}}`
	)
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		name, record, params string
		want                 string // what is different from the record
		gone                 []string
		kind, text           string
	}{
		{name: "OK name", record: entity, params: `{"name":"m"}`, want: `{"name":"m"}`},
		{name: "OK everything of an entity", record: entity, params: `{"entity_kind":"paper","name":"m","description":"","tags":["y","z"]}`,
			want: `{"entity_kind":"paper","name":"m","description":"","tags":["y","z"]}`},
		{name: "OK null removes a description", record: entity, params: `{"description":null}`, gone: []string{"description"}},
		{name: "OK everything of a note", record: note, params: `{"note_kind":"fact","title":"u","content":"v"}`, want: `{"note_kind":"fact","title":"u","content":"v"}`},
		{name: "OK null removes title and kind", record: note, params: `{"note_kind":null,"title":null}`, gone: []string{"title", "note_kind"}},
		{name: "OK null removes tags", record: note, params: `{"tags":null}`, want: `{"tags":[]}`},
		{name: "OK no tags", record: note, params: `{"tags":[]}`, want: `{"tags":[]}`},
		{name: "OK one property", record: entity, params: `{"properties":{"z":1.50}}`, want: `{"properties":{"a":1,"b":{"c":2},"n":null,"z":1.50}}`},
		{name: "OK a property as a whole", record: entity, params: `{"properties":{"b":{"d":3}}}`, want: `{"properties":{"a":1,"b":{"d":3},"n":null}}`},
		{name: "OK null removes a property", record: entity, params: `{"properties":{"a":null,"zz":null}}`, want: `{"properties":{"b":{"c":2},"n":null}}`},
		{name: "OK null removes all properties", record: entity, params: `{"properties":null}`, want: `{"properties":{}}`},
		{name: "OK no properties is no change", record: entity, params: `{"properties":{}}`},
		{name: "Err nothing", record: entity, params: `{}`, kind: invalid, text: "nothing to change"},
		{name: "Err name null", record: entity, params: `{"name":null}`, kind: invalid, text: "name"},
		{name: "Err entity_kind null", record: entity, params: `{"entity_kind":null}`, kind: invalid, text: "entity_kind"},
		{name: "Err content null", record: note, params: `{"content":null}`, kind: invalid, text: "content"},
		{name: "Err blank name", record: entity, params: `{"name":" "}`, kind: invalid, text: "name: is blank"},
		{name: "Err note field", record: entity, params: `{"content":"c"}`, kind: invalid, text: "content: is no field of an entity, which this is"},
		{name: "Err note field null", record: entity, params: `{"title":null}`, kind: invalid, text: "title: is no field of an entity"},
		{name: "Err entity field", record: note, params: `{"name":"c"}`, kind: invalid, text: "name: is no field of a note, which this is"},
		{name: "Err kind is fixed", record: note, params: `{"kind":"entity"}`, kind: invalid, text: "kind"},
		{name: "Err properties together too big", record: entity, params: `{"properties":{"z":"` + long + `"}}`, kind: invalid, text: "properties: take"},
		{name: "Err one bad field changes nothing", record: entity, params: `{"name":"m","entity_kind":"B A D"}`, kind: invalid, text: "entity_kind: must begin"},
	} {
		for _, way := range []string{"", " by hand"} {
			t.Run(tt.name+way, func(t *testing.T) {
				w := open(t)
				before := w.must(in("a"), "create", args(t, tt.record))
				params := with(args(t, tt.params), "id", before["id"])
				call := w.call
				if way != "" {
					call = func(who packs.Token, verb string, p object) (object, error) {
						return w.direct(context.Background(), who, verb, p)
					}
				}
				got, err := call(in("b"), "update", params) // by id: the namespace is not compared
				requireKind(t, err, tt.kind, tt.text)
				after := w.must(in("a"), "get", object{"id": before["id"]})
				if tt.kind != ok {
					require.Equal(t, before, after)
					return
				}
				require.Equal(t, got, after)
				if tt.want != "" {
					for k, v := range args(t, tt.want) {
						before[k] = v
					}
				}
				for _, k := range tt.gone {
					delete(before, k)
				}
				require.Equal(t, before, after)
			})
		}
	}
	t.Run("OK time", func(t *testing.T) {
		w := open(t)
		id := w.note(in("a"), "x")
		result, err := w.handlers["update"](context.Background(), &packs.Call{
			Params: packs.Params{"id": id, "content": "y"}, Token: in("a"), Time: now.Add(time.Hour), Emit: w.told.emit,
		})
		require.NoError(t, err)
		require.NotNil(t, result)
		got := w.must(in("a"), "get", object{"id": id})
		require.Equal(t, "2026-03-04T04:06:07.000008Z", got["created_at"])
		require.Equal(t, "2026-03-04T05:06:07.000008Z", got["updated_at"])
	})
	t.Run("Err not there", func(t *testing.T) {
		w := open(t)
		_, err := w.call(in("a"), "update", object{"id": "11111111-1111-4111-8111-111111111111", "name": "x"})
		requireKind(t, err, notFound, "no record")
	})
	t.Run("Err an edge", func(t *testing.T) {
		w := open(t)
		e := w.must(in("a"), "link", object{"source_id": w.note(in("a"), "x"), "target_id": w.note(in("a"), "y"), "relation": "r"})
		_, err := w.call(in("a"), "update", object{"id": e["id"], "properties": object{}})
		requireKind(t, err, invalid, "id: this is an edge")
	})
}

func TestDelete(t *testing.T) {
	w := open(t)
	me := in("a")
	hub, x, y := w.entity(me, "hub", object{"tags": list("t")}), w.note(me, "x"), w.note(me, "y")
	w.must(me, "link", object{"source_id": hub, "target_id": x, "relation": "r"})
	w.must(in("b"), "link", object{"source_id": y, "target_id": hub, "relation": "r"})
	edge := w.must(me, "link", object{"source_id": x, "target_id": y, "relation": "r"})["id"]

	got := w.must(token{namespace: "c", read: []string{"a", "b", "c"}}, "delete", object{"id": hub}) // by id: the namespace is not compared
	require.Equal(t, object{"id": hub, "kind": "entity", "deleted": true, "edges_deleted": number(2)}, got)
	require.Equal(t, 1, w.rows("kg_edges"))
	require.Zero(t, w.rows("kg_tags"))
	for _, verb := range []string{"get", "delete", "neighbors"} {
		_, err := w.call(me, verb, object{"id": hub})
		requireKind(t, err, notFound, hub)
		_, err = w.call(me, verb, object{"id": hub[:8]})
		requireKind(t, err, notFound, hub[:8])
	}

	got = w.must(me, "delete", object{"id": edge})
	require.Equal(t, object{"id": edge, "kind": "edge", "deleted": true, "edges_deleted": number(0)}, got)
	require.Equal(t, 2, w.rows("kg_records"))
	_, err := w.call(me, "get", object{"id": edge})
	requireKind(t, err, notFound, "no record")

	_, err = w.call(me, "delete", object{"id": "abc"})
	requireKind(t, err, invalid, "id")
	_, err = w.call(me, "delete", object{"id": nil})
	requireKind(t, err, invalid, "id")
}

// All edges go with a record, or over to another; the answer and the event count those that neighbors
// showed the caller before.
func TestEdgesOfOthersAreNotCounted(t *testing.T) {
	for _, tt := range []struct {
		name           string
		who            packs.Token
		shown          int // of the edges of hub
		moved, dropped int // by a merge
	}{
		{"OK own and foreign", in("a"), 2, 1, 1},
		{"OK two namespaces", in("a", "b"), 5, 3, 2},
		{"OK all", in("a", "b", "z"), 10, 6, 4},
		{"OK edges of others to own records", token{namespace: "a", read: []string{"z"}}, 1, 1, 0},
		{"OK none", token{namespace: "a"}, 0, 0, 0},
	} {
		build := func(t *testing.T) (w *world, hub, into string) {
			w = open(t)
			hub, into = w.entity(in("a"), "hub"), w.entity(in("a"), "into")
			near, mine, far := w.note(in("a"), "near"), w.note(in("b"), "mine"), w.note(in("z"), "far")
			for _, e := range []struct{ namespace, source, target, relation string }{
				{"a", hub, near, "r"}, {"a", hub, into, "between"},
				{"b", near, hub, "r"}, {"b", hub, mine, "r"}, {"b", into, hub, "between"},
				{"z", hub, near, "r"}, {"z", far, hub, "r"}, {"a", hub, far, "r"}, {"a", hub, far, "known"}, {"z", hub, into, "between"},
				{"a", into, far, "known"},
			} {
				w.must(in(e.namespace), "link", object{"source_id": e.source, "target_id": e.target, "relation": e.relation})
			}
			w.told.take()
			require.Len(t, w.must(tt.who, "neighbors", object{"id": hub})["items"], tt.shown)
			return w, hub, into
		}
		t.Run(tt.name+", delete", func(t *testing.T) {
			w, hub, _ := build(t)
			require.EqualValues(t, fmt.Sprint(tt.shown), w.must(tt.who, "delete", object{"id": hub})["edges_deleted"])
			require.Equal(t, []string{fmt.Sprintf(`kg.deleted {"id":%q,"kind":"entity","edges_deleted":%d}`, hub, tt.shown)}, w.told.take())
			require.Equal(t, 1, w.rows("kg_edges"), "all edges are gone, whoever wrote them")
			w.sound()
		})
		t.Run(tt.name+", merge", func(t *testing.T) {
			w, hub, into := build(t)
			got := w.must(tt.who, "merge_entity", object{"into_id": into, "from_id": hub})
			require.EqualValues(t, fmt.Sprint(tt.moved), got["edges_moved"])
			require.EqualValues(t, fmt.Sprint(tt.dropped), got["edges_dropped"])
			require.Contains(t, w.told.take()[0], fmt.Sprintf(`"edges_moved":%d,"edges_dropped":%d}`, tt.moved, tt.dropped))
			require.Equal(t, 7, w.rows("kg_edges"), "all edges moved, whoever wrote them")
			w.sound()
		})
	}
}

func TestMerge(t *testing.T) {
	w := open(t)
	me := in("a", "b")
	into := w.entity(me, "LoRA", object{"tags": list("x", "y"), "properties": args(t, `{"k":1.0,"own":true}`)})
	from := w.entity(me, "lora", object{"tags": list("y", "z"), "properties": args(t, `{"k":2,"year":2021}`), "description": "d"})
	n1, n2, n3 := w.note(me, "1"), w.note(me, "2"), w.note(me, "3")
	link := func(who token, source, target, relation string, weight any) string {
		p := object{"source_id": source, "target_id": target, "relation": relation}
		if weight != nil {
			p["weight"] = weight
		}
		return w.must(who, "link", p)["id"].(string)
	}
	kept := link(me, into, n1, "r", number(1))
	link(me, from, n1, "r", number(2))          // into says so already
	moved1 := link(me, from, n1, "s", nil)      // another relation
	moved2 := link(in("b"), from, n1, "r", nil) // another namespace
	moved3 := link(me, n2, from, "r", nil)
	kept2 := link(me, n3, into, "r", nil)
	link(me, n3, from, "r", nil)   // said already
	link(me, from, into, "r", nil) // would lead to itself
	link(me, into, from, "r", nil)

	got := w.must(me, "merge_entity", object{"into_id": into, "from_id": from[:13]})
	require.Equal(t, into, got["id"])
	require.Equal(t, from, got["merged_id"])
	require.EqualValues(t, "3", got["edges_moved"])
	require.EqualValues(t, "4", got["edges_dropped"])
	record := got["record"].(object)
	require.Equal(t, record, w.must(me, "get", object{"id": into}))
	require.Equal(t, "LoRA", record["name"])
	require.Equal(t, "d", record["description"])
	require.Equal(t, list("x", "y", "z"), record["tags"])
	require.Equal(t, args(t, `{"k":1.0,"own":true,"year":2021}`), record["properties"])
	_, err := w.call(me, "get", object{"id": from})
	requireKind(t, err, notFound, from)
	require.ElementsMatch(t, []string{kept, kept2, moved1, moved2, moved3}, pluck(w.must(me, "neighbors", object{"id": into}), "edge_id"))
	require.Equal(t, 5, w.rows("kg_edges"))
	require.Equal(t, 3, w.rows("kg_tags"))
}

func TestMergeNotes(t *testing.T) {
	for _, tt := range []struct {
		name, into, from, how, want string
	}{
		{"OK append", `{"content":"one"}`, `{"content":"two","title":"T","note_kind":"idea"}`, "", `{"content":"one\n\ntwo","title":"T","note_kind":"idea"}`},
		{"OK keep", `{"content":"one","title":"S","note_kind":"fact"}`, `{"content":"two","title":"T","note_kind":"idea"}`, "keep", `{"content":"one","title":"S","note_kind":"fact"}`},
		{"OK equal contents once", `{"content":"one"}`, `{"content":"one"}`, "append", `{"content":"one"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t)
			id := func(text string) string {
				return w.must(in("a"), "create", with(args(t, text), "kind", "note"))["id"].(string)
			}
			params := object{"into_id": id(tt.into), "from_id": id(tt.from)}
			if tt.how != "" {
				params["content"] = tt.how
			}
			got := w.must(in("a"), "merge_note", params)["record"].(object)
			for _, k := range []string{"content", "title", "note_kind"} {
				require.Equal(t, args(t, tt.want)[k], got[k], k)
			}
		})
	}
}

func TestMergeRefusals(t *testing.T) {
	w := open(t)
	a, z := in("a", "z"), in("z")
	long := strings.Repeat("x", 40<<10)
	e1, e2, far := w.entity(a, "1"), w.entity(a, "2"), w.entity(z, "far")
	n1, n2, farNote := w.note(a, long), w.note(a, long+"y"), w.note(z, "far")
	edge := w.must(a, "link", object{"source_id": e1, "target_id": e2, "relation": "r"})["id"]
	tagged1, tagged2 := w.entity(a, "t", object{"tags": distinct(32)}), w.entity(a, "t", object{"tags": list("one more")})
	big1, big2 := w.entity(a, "p", object{"properties": object{"p": long}}), w.entity(a, "p", object{"properties": object{"q": long}})
	gone := "11111111-1111-4111-8111-111111111111"
	for _, tt := range []struct {
		name, verb string
		into, from any
		more       object
		kind, text string
	}{
		{name: "Err from elsewhere", verb: "merge_entity", into: e1, from: far, kind: mismatch, text: `from_id is not in the namespace "a"`},
		{name: "Err into elsewhere", verb: "merge_entity", into: far, from: e1, kind: mismatch, text: `into_id is not in the namespace "a"`},
		{name: "Err both elsewhere", verb: "merge_entity", into: far, from: far, kind: mismatch, text: "into_id"},
		{name: "Err of a foreign record not even the kind is told", verb: "merge_entity", into: e1, from: farNote, kind: mismatch, text: "from_id"},
		{name: "Err notes", verb: "merge_note", into: n1, from: farNote, kind: mismatch, text: "from_id"},
		{name: "Err the same", verb: "merge_entity", into: e1, from: e1, kind: invalid, text: "from_id: is the same record"},
		{name: "Err the same by prefix", verb: "merge_entity", into: e1, from: strings.ToUpper(e1[:20]), kind: invalid, text: "from_id: is the same record"},
		{name: "Err a note", verb: "merge_entity", into: e1, from: n1, kind: invalid, text: "from_id: is the id of a record of the kind note"},
		{name: "Err an entity", verb: "merge_note", into: e1, from: n1, kind: invalid, text: "into_id: is the id of a record of the kind entity"},
		{name: "Err an edge", verb: "merge_entity", into: e1, from: edge, kind: invalid, text: "from_id: is the id of a record of the kind edge"},
		{name: "Err nothing there", verb: "merge_entity", into: gone, from: e1, kind: notFound, text: gone},
		{name: "Err nothing there to merge", verb: "merge_entity", into: e1, from: gone, kind: notFound, text: gone},
		{name: "Err no id", verb: "merge_entity", into: e1, from: "", kind: invalid, text: "from_id"},
		{name: "Err too many tags", verb: "merge_entity", into: tagged1, from: tagged2, kind: conflict, text: "33 tags"},
		{name: "Err too many properties", verb: "merge_entity", into: big1, from: big2, kind: conflict, text: "properties of the two"},
		{name: "Err too much text", verb: "merge_note", into: n1, from: n2, kind: conflict, text: `content="keep"`},
		{name: "Err content", verb: "merge_note", into: n1, from: n2, more: object{"content": "mix"}, kind: invalid, text: "content"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			records, edges := w.rows("kg_records"), w.rows("kg_edges")
			params := packs.Params{"into_id": tt.into, "from_id": tt.from}
			for k, v := range tt.more {
				params[k] = v
			}
			_, err := w.direct(context.Background(), a, tt.verb, params)
			requireKind(t, err, tt.kind, tt.text)
			require.Equal(t, records, w.rows("kg_records"))
			require.Equal(t, edges, w.rows("kg_edges"))
		})
	}
}
