package kg_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestLink(t *testing.T) {
	w := open(t)
	me := in("a")
	source, target, far := w.entity(me, "s"), w.note(me, "t"), w.note(in("z"), "far")
	edge := w.must(me, "link", object{"source_id": source, "target_id": target, "relation": "taken"})["id"].(string)
	gone := "11111111-1111-4111-8111-111111111111"
	for _, tt := range []struct {
		name       string
		params     string
		source     any
		target     any
		want       string
		kind, text string
	}{
		{name: "OK", source: source, target: target, params: `{"relation":"introduced_by"}`, want: `{"relation":"introduced_by","properties":{},"created":true}`},
		{name: "OK everything", source: source, target: target, params: `{"relation":"full","weight":0.50,"properties":{"n":1e2}}`,
			want: `{"relation":"full","weight":0.50,"properties":{"n":1e2},"created":true}`},
		{name: "OK weight 0 is a weight", source: source, target: target, params: `{"relation":"zero","weight":0}`, want: `{"relation":"zero","weight":0,"properties":{},"created":true}`},
		{name: "OK prefixes", source: source[:8], target: target[:9], params: `{"relation":"short"}`, want: `{"relation":"short","properties":{},"created":true}`},
		{name: "OK the other way round", source: target, target: source, params: `{"relation":"taken"}`, want: `{"relation":"taken","properties":{},"created":true}`},
		{name: "OK an end in another namespace", source: source, target: far, params: `{"relation":"cites"}`, want: `{"relation":"cites","properties":{},"created":true}`},
		{name: "OK again", source: source, target: target, params: `{"relation":"taken"}`, want: `{"relation":"taken","properties":{},"created":false}`},
		{name: "Err again with a weight", source: source, target: target, params: `{"relation":"taken","weight":1}`, kind: conflict, text: edge},
		{name: "Err again with properties", source: source, target: target, params: `{"relation":"taken","properties":{"a":1}}`, kind: conflict, text: `linked by "taken" already`},
		{name: "Err seed: empty target", source: source, target: "", params: `{"relation":"introduced_by"}`, kind: invalid, text: "target_id: an empty string is no id"},
		{name: "Err empty source", source: "", target: target, params: `{"relation":"r"}`, kind: invalid, text: "source_id: an empty string is no id"},
		{name: "Err itself", source: source, target: source, params: `{"relation":"r"}`, kind: invalid, text: "target_id: is the source itself"},
		{name: "Err itself by prefix", source: source, target: source[:10], params: `{"relation":"r"}`, kind: invalid, text: "target_id: is the source itself"},
		{name: "Err no such target", source: source, target: gone, params: `{"relation":"r"}`, kind: notFound, text: gone},
		{name: "Err no such source", source: gone, target: target, params: `{"relation":"r"}`, kind: notFound, text: gone},
		{name: "Err prefix out of sight", source: source, target: far[:8], params: `{"relation":"r"}`, kind: notFound, text: far[:8]},
		{name: "Err an edge", source: source, target: edge, params: `{"relation":"r"}`, kind: invalid, text: "target_id: this is the id of an edge"},
		{name: "Err relation form", source: source, target: target, params: `{"relation":"Introduced By"}`, kind: invalid, text: "relation: must begin"},
		{name: "Err no relation", source: source, target: target, params: `{}`, kind: invalid, text: "relation"},
		{name: "Err weight", source: source, target: target, params: `{"relation":"r","weight":-1}`, kind: invalid, text: "weight: must be"},
		{name: "Err weight type", source: source, target: target, params: `{"relation":"r","weight":"1"}`, kind: invalid, text: "weight: must be"},
		{name: "Err weight null", source: source, target: target, params: `{"relation":"r","weight":null}`, kind: invalid, text: "weight: is null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := with(with(args(t, tt.params), "source_id", tt.source), "target_id", tt.target)
			edges := w.rows("kg_edges")
			_, err := w.call(me, "link", params)
			if tt.kind != ok {
				require.Error(t, err)
				_, err = w.direct(context.Background(), me, "link", params)
				requireKind(t, err, tt.kind, tt.text)
				require.Equal(t, edges, w.rows("kg_edges"))
				return
			}
			require.NoError(t, err)
			got := w.must(me, "link", params)
			require.Equal(t, false, got["created"])
			delete(got, "created")
			require.Equal(t, got, w.must(in("q"), "get", object{"id": got["id"]}))
			require.Regexp(t, uuid4, got["id"])
			require.Equal(t, "edge", got["kind"])
			require.Equal(t, "a", got["namespace"])
			for k, v := range args(t, tt.want) {
				if k != "created" {
					require.Equal(t, v, got[k], k)
				}
			}
		})
	}
	t.Run("OK what another namespace says is neither seen nor in the way", func(t *testing.T) {
		got := w.must(in("b"), "link", object{"source_id": source, "target_id": target, "relation": "taken", "weight": number(9)})
		require.Equal(t, true, got["created"])
		require.Equal(t, "b", got["namespace"])
	})
}

func TestNeighbors(t *testing.T) {
	w := open(t)
	a, b, z := in("a"), in("b"), in("z")
	both := in("a", "b")
	hub := w.entity(a, "hub")
	n1, n2, e3, far := w.note(a, "1"), w.note(b, "2"), w.entity(a, "3"), w.note(z, "far")
	link := func(who token, source, target, relation string) string {
		return w.must(who, "link", object{"source_id": source, "target_id": target, "relation": relation})["id"].(string)
	}
	out1, in2, out3, twice := link(a, hub, n1, "cites"), link(b, n2, hub, "cites"), link(a, hub, e3, "part_of"), link(a, hub, n1, "part_of")
	toFar := link(a, hub, far, "cites")  // a readable edge to a record that is not
	farSays := link(z, hub, n1, "cites") // an edge that is not readable between records that are
	link(a, n1, e3, "cites")             // none of hub's
	for _, tt := range []struct {
		name       string
		who        packs.Token
		params     object
		want       []string
		kind, text string
	}{
		{name: "OK all, newest first", who: both, want: []string{twice, out3, in2, out1}},
		{name: "OK both", who: both, params: object{"direction": "both"}, want: []string{twice, out3, in2, out1}},
		{name: "OK out", who: both, params: object{"direction": "out"}, want: []string{twice, out3, out1}},
		{name: "OK in", who: both, params: object{"direction": "in"}, want: []string{in2}},
		{name: "OK relation", who: both, params: object{"relation": "cites"}, want: []string{in2, out1}},
		{name: "OK kind", who: both, params: object{"kind": "entity"}, want: []string{out3}},
		{name: "OK limit", who: both, params: object{"limit": number(1)}, want: []string{twice}},
		{name: "OK readable only", who: a, want: []string{twice, out3, out1}},
		{name: "OK by id from anywhere, but nothing that only others read", who: b, want: []string{in2}},
		{name: "OK no namespace at all", who: token{namespace: "a"}, want: []string{}},
		{name: "OK everything readable", who: in("a", "b", "z"), want: []string{farSays, toFar, twice, out3, in2, out1}},
		{name: "Err direction", who: a, params: object{"direction": "up"}, kind: invalid, text: "direction"},
		{name: "Err empty direction", who: a, params: object{"direction": ""}, kind: invalid, text: "direction"},
		{name: "Err empty relation", who: a, params: object{"relation": ""}, kind: invalid, text: "relation"},
		{name: "Err kind", who: a, params: object{"kind": "edge"}, kind: invalid, text: "kind"},
		{name: "Err limit", who: a, params: object{"limit": number(0)}, kind: invalid, text: "limit"},
		{name: "Err cursor", who: a, params: object{"cursor": "x"}, kind: invalid, text: "cursor"},
		{name: "Err no id", who: a, params: object{"id": "hub"}, kind: invalid, text: "id"},
		{name: "Err an edge", who: a, params: object{"id": out1}, kind: invalid, text: "id: this is the id of an edge"},
		{name: "Err not there", who: a, params: object{"id": "11111111-1111-4111-8111-111111111111"}, kind: notFound, text: "no record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := object{"id": hub}
			for k, v := range tt.params {
				params[k] = v
			}
			got, err := w.call(tt.who, "neighbors", params)
			requireKind(t, err, tt.kind, tt.text)
			direct, err := w.direct(context.Background(), tt.who, "neighbors", params)
			requireKind(t, err, tt.kind, tt.text)
			if tt.kind == ok {
				require.Equal(t, hub, got["id"])
				require.Equal(t, tt.want, pluck(got, "edge_id"))
				require.Equal(t, got, direct)
			}
		})
	}
	t.Run("OK shape", func(t *testing.T) {
		got := w.must(both, "neighbors", object{"id": hub[:8], "direction": "in"})
		require.Equal(t, object{"id": hub, "items": list(object{
			"edge_id": in2, "direction": "in", "relation": "cites", "properties": object{}, "namespace": "b", "created_at": "2026-03-04T04:06:07.000008Z",
			"record": object{"id": n2, "kind": "note", "tags": []any{}, "namespace": "b", "updated_at": "2026-03-04T04:06:07.000008Z"},
		})}, got)
	})
	t.Run("OK pages", func(t *testing.T) {
		center := w.entity(a, "center")
		var want []string
		for i := range 7 {
			want = append(want, link(a, center, w.note(a, fmt.Sprint(i)), "r"))
		}
		slices.Reverse(want)
		var got []string
		params := object{"id": center, "limit": number(3)}
		for {
			page := w.must(a, "neighbors", params)
			got = append(got, pluck(page, "edge_id")...)
			next, more := page["next_cursor"]
			if !more {
				break
			}
			params = with(params, "cursor", next)
			_, err := w.call(a, "neighbors", with(params, "direction", "out"))
			requireKind(t, err, invalid, "cursor: belongs to another query")
			_, err = w.call(a, "neighbors", with(params, "id", hub))
			requireKind(t, err, invalid, "cursor: belongs to another query")
		}
		require.Equal(t, want, got)
	})
}

func TestStats(t *testing.T) {
	w := open(t)
	a, b, z := in("a"), in("b"), in("z")
	e := w.entity(a, "1")
	w.entity(b, "2")
	w.entity(a, "3", object{"entity_kind": "paper"})
	n := w.note(a, "plain")
	w.must(b, "create", object{"kind": "note", "note_kind": "idea", "content": "x"})
	w.must(a, "link", object{"source_id": e, "target_id": n, "relation": "says"})
	w.must(z, "link", object{"source_id": e, "target_id": n, "relation": "says"})
	w.note(z, "foreign")
	for _, tt := range []struct {
		name string
		who  packs.Token
		want string
	}{
		{"OK both", in("a", "b"), `{"entities":3,"notes":2,"edges":1,"by_entity_kind":{"concept":2,"paper":1},"by_note_kind":{"idea":1},"by_relation":{"says":1},"by_namespace":{"a":3,"b":2}}`},
		{"OK one", b, `{"entities":1,"notes":1,"edges":0,"by_entity_kind":{"concept":1},"by_note_kind":{"idea":1},"by_relation":{},"by_namespace":{"b":2}}`},
		{"OK unknown", in("nowhere"), `{"entities":0,"notes":0,"edges":0,"by_entity_kind":{},"by_note_kind":{},"by_relation":{},"by_namespace":{}}`},
		{"OK none at all", token{namespace: "a"}, `{"entities":0,"notes":0,"edges":0,"by_entity_kind":{},"by_note_kind":{},"by_relation":{},"by_namespace":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, args(t, tt.want), w.must(tt.who, "stats", object{}))
		})
	}
	t.Run("OK the most frequent hundred", func(t *testing.T) {
		items := make([]any, 0, 151)
		for i := range 150 {
			items = append(items, object{"kind": "entity", "entity_kind": fmt.Sprintf("kind_%03d", i), "name": "x"})
		}
		items = append(items, object{"kind": "entity", "entity_kind": "kind_149", "name": "x"})
		w.must(in("many"), "create", object{"items": items})
		got := w.must(in("many"), "stats", object{})
		require.EqualValues(t, "151", got["entities"])
		kinds := got["by_entity_kind"].(object)
		require.Len(t, kinds, 100)
		require.EqualValues(t, "2", kinds["kind_149"])
		require.Contains(t, kinds, "kind_098")
		require.NotContains(t, kinds, "kind_099")
	})
}
