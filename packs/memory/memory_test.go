package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func TestManifest(t *testing.T) {
	manifest := memory.Pack{}.Manifest()
	require.NoError(t, manifest.Validate())
	require.Equal(t, manifest, memory.Pack{}.Manifest())
	require.Contains(t, packs.Registered(), packs.Pack(memory.Pack{}))
	require.Equal(t, packs.Subhandler, manifest.Verb("memory.recall_score").Visibility)
	_, err := memory.Pack{}.Open(context.Background(), packs.Env{})
	require.ErrorContains(t, err, "needs a backend")

	w := open(t)
	require.Len(t, w.instance.Handlers(), len(manifest.Verbs))
	// What the dispatcher goes by: the record the gate is told of, what must not be written twice, who writes.
	type facts struct {
		resource  string
		writeKeys []string
		writes    bool
		category  packs.Category
	}
	got := map[string]facts{}
	for _, v := range manifest.Verbs {
		require.Contains(t, w.instance.Handlers(), v.Name)
		got[v.Name] = facts{v.Resource, v.WriteKeys, v.Writes, v.Category}
	}
	require.Equal(t, map[string]facts{
		"memory.remember":     {writes: true, category: packs.Commissive},
		"memory.recall":       {category: packs.Assertive},
		"memory.forget":       {resource: "id", writeKeys: []string{"memory:{id}"}, writes: true, category: packs.Declaration},
		"memory.recall_score": {resource: "id", category: packs.Assertive},
	}, got)
	// Every table the migrations made is declared, so that no other pack can claim one.
	for _, table := range manifest.Schema.Tables {
		w.rows(table)
	}
}

func TestRemember(t *testing.T) {
	w := open(t)
	about := w.must(me, "create", object{"kind": "entity", "entity_kind": "concept", "name": "LoRA"})["id"].(string)
	edgeEnd := w.must(me, "create", object{"kind": "note", "content": "x"})["id"].(string)
	edge := w.must(me, "link", object{"source_id": about, "target_id": edgeEnd, "relation": "cites"})["id"].(string)
	for _, c := range []struct {
		name   string
		params object
		want   object // what is there beside id, namespace and created_at
		kind   any    // of require.ErrorAs
		text   string
	}{
		{name: "OK least", params: object{"content": "tea"}, want: object{"content": "tea", "tags": []any{}, "salience": number("0.5")}},
		{name: "OK all", params: object{"content": "tea", "about": about, "tags": []any{"b", "a", "b"}, "salience": number("1")},
			want: object{"content": "tea", "about": about, "tags": []any{"b", "a"}, "salience": number("1")}},
		{name: "OK about by prefix", params: object{"content": "tea", "about": strings.ToUpper(about[:8])},
			want: object{"content": "tea", "about": about, "tags": []any{}, "salience": number("0.5")}},
		{name: "OK salience zero", params: object{"content": "tea", "salience": number("0")}, want: object{"content": "tea", "tags": []any{}, "salience": number("0")}},
		{name: "OK text of any kind", params: object{"content": "\x00\"'%_*()-- DROP TABLE\u202e \U0001f9e0"},
			want: object{"content": "\x00\"'%_*()-- DROP TABLE\u202e \U0001f9e0", "tags": []any{}, "salience": number("0.5")}},
		{name: "OK longest", params: object{"content": strings.Repeat("x", 16<<10)}, want: object{"content": strings.Repeat("x", 16<<10), "tags": []any{}, "salience": number("0.5")}},
		{name: "Err too long", params: object{"content": strings.Repeat("x", 16<<10+1)}, kind: new(*packs.InvalidError), text: "16384"},
		{name: "Err no content", params: object{}, kind: new(*packs.InvalidError), text: "content"},
		{name: "Err blank", params: object{"content": " \n"}, kind: new(*packs.InvalidError), text: "blank"},
		{name: "Err salience above", params: object{"content": "x", "salience": number("1.01")}, kind: new(*packs.InvalidError), text: "at most 1"},
		{name: "Err salience below", params: object{"content": "x", "salience": number("-0.1")}, kind: new(*packs.InvalidError), text: "at least 0"},
		{name: "Err blank tag", params: object{"content": "x", "tags": []any{"a", " "}}, kind: new(*packs.InvalidError), text: "tag"},
		{name: "Err long tag", params: object{"content": "x", "tags": []any{strings.Repeat("a", 65)}}, kind: new(*packs.InvalidError), text: "64"},
		{name: "Err about is no id", params: object{"content": "x", "about": "LoRA"}, kind: new(*packs.InvalidError), text: "about"},
		{name: "Err about is empty", params: object{"content": "x", "about": ""}, kind: new(*packs.InvalidError), text: "about"},
		{name: "Err about is not there", params: object{"content": "x", "about": "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"}, kind: new(*packs.NotFoundError), text: "1b4e28ba"},
		{name: "Err about is an edge", params: object{"content": "x", "about": edge}, kind: new(*packs.InvalidError), text: "edge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := [3]int{w.rows("memory_records"), w.rows("memory_tags"), w.rows("memory_words")}
			got, err := w.call(me, "memory.remember", c.params)
			if c.kind != nil {
				require.ErrorAs(t, err, c.kind)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, before, [3]int{w.rows("memory_records"), w.rows("memory_tags"), w.rows("memory_words")})
				return
			}
			require.NoError(t, err)
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, got["id"])
			require.Equal(t, "a", got["namespace"])
			require.Equal(t, "2026-03-04T04:06:07.000008Z", got["created_at"])
			for _, name := range []string{"id", "namespace", "created_at"} {
				delete(got, name)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A handler holds to the manifest's bounds even when nobody checked before it.
func TestUncheckedParams(t *testing.T) {
	w := open(t)
	many := []any{}
	for i := range 33 {
		many = append(many, fmt.Sprint(i))
	}
	for verb, all := range map[string][]object{
		"memory.remember": {
			{}, {"content": number("1")}, {"content": "\xff"}, {"content": strings.Repeat("x", 1<<20)}, {"content": "x", "salience": number("2")},
			{"content": "x", "salience": "1"}, {"content": "x", "tags": many}, {"content": "x", "tags": []any{""}},
			{"content": "x", "about": number("1")},
		},
		"memory.recall": {
			{}, {"query": nil}, {"query": ""}, {"query": "?!"}, {"query": strings.Repeat("x", 1<<20)}, {"query": "x", "limit": number("0")},
			{"query": "x", "limit": number("101")}, {"query": "x", "limit": number("-1")}, {"query": "x", "limit": "10"}, {"query": fmt.Sprint(many)},
		},
		"memory.forget":       {{}, {"id": ""}, {"id": "%%%%%%%%"}, {"id": number("12345678")}},
		"memory.recall_score": {{}, {"id": "12345678"}, {"id": "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"}, {"query": "x"}},
	} {
		for _, params := range all {
			_, err := w.direct(me, verb, params)
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid, "%s %.80v", verb, params)
			require.NotEmpty(t, invalid.Param)
		}
	}
	require.Zero(t, w.rows("memory_records"))
}

// What the nested get answers decides: a refusal comes through as it is, and so does what a policy
// took out of the answer.
func TestAboutPassesTheGate(t *testing.T) {
	w := open(t)
	for name, c := range map[string]struct {
		answer string
		err    error
		want   string
	}{
		"refused":     {err: &packs.InvokeError{Verb: "get", Code: "permission_denied", Message: `permission denied for verb "get": no`}, want: "permission denied"},
		"id redacted": {answer: `{"kind":"note"}`, want: "its id is not shown to you"},
		"id null":     {answer: `{"id":null,"kind":"note"}`, want: "its id is not shown to you"},
		"id cut":      {answer: `{"id":"1b4e28ba","kind":"note"}`, want: "its id is not shown to you"},
		"all null":    {answer: `null`, want: "its id is not shown to you"},
	} {
		asked := 0
		_, err := w.handlers["memory.remember"](context.Background(), &packs.Call{
			Params: packs.Params{"content": "x", "about": "1B4E28BA"}, Token: me, Time: start,
			Invoke: func(_ context.Context, verb string, params packs.Params) (json.RawMessage, error) {
				asked++
				require.Equal(t, "get", verb)
				require.Equal(t, packs.Params{"id": "1B4E28BA"}, params)
				return json.RawMessage(c.answer), c.err
			},
		})
		require.ErrorContains(t, err, c.want, name)
		if c.err != nil {
			require.True(t, errors.Is(err, c.err), name)
		}
		require.Equal(t, 1, asked)
	}
	require.Zero(t, w.rows("memory_records"))
}

func TestForget(t *testing.T) {
	const (
		one     = "aaaaaaaa-1111-4111-8111-111111111111"
		foreign = "aaaaaaaa-2222-4222-8222-222222222222"
		far     = "cccccccc-4444-4444-8444-444444444444"
	)
	for _, c := range []struct {
		name, id string
		who      token
		want     string
		kind     any
		text     string
	}{
		{name: "OK full", id: one, who: me, want: one},
		{name: "OK full in upper case", id: strings.ToUpper(one), who: me, want: one},
		{name: "OK full resolves globally", id: far, who: me, want: far},
		{name: "OK prefix, though a foreign one fits", id: "aaaaaaaa", who: me, want: one},
		{name: "OK prefix with dashes", id: "aaaaaaaa-1", who: me, want: one},
		{name: "Err prefix of a foreign one", id: "cccccccc", who: me, kind: new(*packs.NotFoundError), text: `no memory with id "cccccccc"`},
		{name: "Err prefix of nothing", id: "eeeeeeee", who: me, kind: new(*packs.NotFoundError), text: "no memory"},
		{name: "Err full of nothing", id: "eeeeeeee-1111-4111-8111-111111111111", who: me, kind: new(*packs.NotFoundError), text: "no memory"},
		{name: "Err ambiguous", id: "dddddddd", who: me, kind: new(*packs.AmbiguousIDError), text: "dddddddd-0004-4444-8444-444444444444 and others"},
		{name: "Err short", id: "aaaaaaa", who: me, kind: new(*packs.InvalidError), text: "8 hex digits"},
		{name: "Err wildcard", id: "aaaaaaa%", who: me, kind: new(*packs.InvalidError), text: "hex digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			w.plant(one, "a")
			w.plant(foreign, "z")
			w.plant(far, "z")
			for i := range 6 {
				w.plant(fmt.Sprintf("dddddddd-000%d-4444-8444-444444444444", i), "a2")
			}
			w.plant("dddddddd-0000-4444-8444-44444444444f", "z")
			all := w.rows("memory_records")
			location, locateErr := w.instance.(packs.Locator).Locate(context.Background(), packs.ResourceRef{Verb: "memory.forget", Param: "id", ID: c.id, Token: c.who})
			got, err := w.call(c.who, "memory.forget", object{"id": c.id})
			if c.kind != nil {
				require.ErrorAs(t, err, c.kind)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, all, w.rows("memory_records"))
				require.Zero(t, location)
				var ambiguous *packs.AmbiguousIDError
				require.Equal(t, errors.As(err, &ambiguous), locateErr != nil)
				return
			}
			require.NoError(t, err)
			require.NoError(t, locateErr)
			require.Equal(t, packs.Location{Exists: true, ID: c.want, Namespace: got["namespace"].(string), Kind: "memory"}, location)
			require.Equal(t, c.want, got["id"])
			require.Equal(t, true, got["forgotten"])
			require.Equal(t, all-1, w.rows("memory_records"))
		})
	}
}

func TestForgetLeavesNothing(t *testing.T) {
	w := open(t)
	id := w.remember(me, "secret words", "tags", []any{"hidden"})
	w.remember(me, "other words")
	require.Len(t, w.recall(me, "secret words hidden"), 2)
	w.must(me, "memory.forget", object{"id": id})
	require.Equal(t, []string{"other words"}, w.recall(me, "secret words hidden"))
	require.Empty(t, w.recall(me, "words", "tag", "hidden"))
	require.Equal(t, 1, w.rows("memory_records"))
	require.Zero(t, w.rows("memory_tags"))
	require.Equal(t, 1, w.rows("memory_words"))
	_, err := w.call(me, "memory.forget", object{"id": id})
	var missing *packs.NotFoundError
	require.ErrorAs(t, err, &missing)
}

// A store that is away, or damaged, is no answer and nobody's "not found".
func TestStoreFails(t *testing.T) {
	w := open(t)
	id := w.remember(me, "tea")
	ref := packs.ResourceRef{Verb: "memory.forget", Param: "id", ID: id, Token: me}
	calls := map[string]object{
		"memory.remember": {"content": "x", "tags": []any{"t"}}, "memory.recall": {"query": "tea"},
		"memory.forget": {"id": id}, "memory.recall_score": {"id": id[:8], "query": "tea"},
	}
	w.exec("DROP TABLE memory_words")
	for verb, params := range calls {
		_, err := w.direct(me, verb, params)
		require.Error(t, err, verb)
	}
	require.Equal(t, 1, w.rows("memory_records"), "nothing half done")
	require.Zero(t, w.rows("memory_tags"))

	require.NoError(t, w.backend.(*sqlite.DB).Close())
	var unavailable *packs.UnavailableError
	for verb, params := range calls {
		_, err := w.direct(me, verb, params)
		require.ErrorAs(t, err, &unavailable, verb)
		require.Equal(t, "main", unavailable.Backend)
	}
	_, err := w.instance.(packs.Locator).Locate(context.Background(), ref)
	require.ErrorAs(t, err, &unavailable, "the policy then sees that nobody can tell")
}

func TestConcurrentUse(t *testing.T) {
	w := open(t)
	var group sync.WaitGroup
	for g := range 6 {
		group.Go(func() {
			for n := range 10 {
				text, err := w.direct(me, "memory.remember", object{"content": fmt.Sprintf("shared word number%d", g*10+n), "tags": []any{"t"}})
				if err != nil {
					t.Error(err)
					return
				}
				var one struct{ ID string }
				if err := json.Unmarshal(text, &one); err != nil {
					t.Error(err)
				}
				if _, err := w.direct(me, "memory.recall", object{"query": "shared"}); err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					if _, err := w.direct(me, "memory.forget", object{"id": one.ID}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	require.Len(t, w.recall(me, "shared", "limit", number("100")), 30)
	require.Equal(t, 30, w.rows("memory_words"))
}
