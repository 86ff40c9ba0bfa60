package kg_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
)

func TestManifest(t *testing.T) {
	w := open(t)
	m := w.manifest
	require.NoError(t, m.Validate())
	require.Equal(t, m, kg.Pack{}.Manifest(), "equal data each time")
	require.True(t, slices.ContainsFunc(packs.Registered(), func(p packs.Pack) bool { return p == kg.Pack{} }))

	verbs := []string{}
	for _, v := range m.Verbs {
		verbs = append(verbs, v.Name)
		require.Equal(t, packs.Public, v.Visibility, v.Name)
		require.NotEmpty(t, v.Returns, v.Name)
		require.NotEmpty(t, v.Description, v.Name)
		for _, p := range v.Params {
			require.NotEmpty(t, p.Description, v.Name+"."+p.Name)
		}
	}
	require.ElementsMatch(t, []string{
		"create", "get", "list", "update", "delete", "search", "link", "neighbors", "merge_entity", "merge_note", "stats",
	}, verbs)
	require.Len(t, w.handlers, len(verbs))
	for _, name := range verbs {
		require.NotNil(t, w.handlers[name], name)
	}
	require.NoError(t, w.instance.Close())
}

// What the dispatcher goes by: the record that the gate is told of, what two operations of a request
// must not both write, and who writes at all.
func TestManifestOfVerbs(t *testing.T) {
	type facts struct {
		resource  string
		writeKeys []string
		writes    bool
		category  packs.Category
	}
	want := map[string]facts{
		"create":       {writes: true, category: packs.Commissive},
		"get":          {resource: "id", category: packs.Assertive},
		"list":         {category: packs.Assertive},
		"update":       {resource: "id", writeKeys: []string{"record:{id}"}, writes: true, category: packs.Declaration},
		"delete":       {resource: "id", writeKeys: []string{"record:{id}"}, writes: true, category: packs.Declaration},
		"search":       {category: packs.Assertive},
		"link":         {resource: "source_id", writes: true, category: packs.Commissive},
		"neighbors":    {resource: "id", category: packs.Assertive},
		"merge_entity": {resource: "into_id", writeKeys: []string{"record:{into_id}", "record:{from_id}"}, writes: true, category: packs.Declaration},
		"merge_note":   {resource: "into_id", writeKeys: []string{"record:{into_id}", "record:{from_id}"}, writes: true, category: packs.Declaration},
		"stats":        {category: packs.Assertive},
	}
	got := map[string]facts{}
	for _, v := range (kg.Pack{}).Manifest().Verbs {
		got[v.Name] = facts{v.Resource, v.WriteKeys, v.Writes, v.Category}
	}
	require.Equal(t, want, got)
}

// One record is one key, in whatever case its full id is written. A prefix is another text.
func TestWriteKeysOfIDs(t *testing.T) {
	const id = "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"
	m := kg.Pack{}.Manifest()
	key := `record:"` + id + `"`
	for _, spelling := range []string{id, strings.ToUpper(id), id[:18] + strings.ToUpper(id[18:])} {
		require.Equal(t, []string{key}, m.Verb("update").WriteKeyTuples(object{"id": spelling}))
		require.Equal(t, []string{key}, m.Verb("delete").WriteKeyTuples(object{"id": spelling}))
		require.Equal(t, []string{key, key}, m.Verb("merge_note").WriteKeyTuples(object{"into_id": id, "from_id": spelling}))
	}
	require.Equal(t, []string{`record:"1b4e28ba"`}, m.Verb("update").WriteKeyTuples(object{"id": id[:8]}))
}

func TestSchemaTables(t *testing.T) {
	w := open(t)
	var tables []string
	require.NoError(t, w.backend.Read(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow(`SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
			AND name NOT LIKE 'verbgate\_%' ESCAPE '\'`).Scan((*joined)(&tables))
	}))
	require.ElementsMatch(t, tables, w.manifest.Schema.Tables)
}

type joined []string

func (j *joined) Scan(v any) error {
	*j = strings.Split(v.(string), ",")
	return nil
}

func TestOpenWithoutBackend(t *testing.T) {
	_, err := kg.Pack{}.Open(context.Background(), packs.Env{})
	require.ErrorContains(t, err, "kg: the pack keeps records and needs a backend")
}

// Each check refuses what it is for, and the handler by itself would have refused it too: nothing
// depends on the checks alone.
func TestChecks(t *testing.T) {
	const id1, id2 = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	w := open(t)
	w.plant(id1, "a")
	w.plant(id2, "a")
	set, err := cel.Compile([]packs.Manifest{w.manifest}, cel.Config{})
	require.NoError(t, err)
	failed := map[string]bool{}
	for _, tt := range []struct{ name, verb, params, check string }{
		{"OK entity", "create", `{"kind":"entity","entity_kind":"concept","name":"LoRA","description":"d","tags":["t"],"properties":{"a":1.5}}`, ""},
		{"OK note", "create", `{"kind":"note","content":"c","title":"t","note_kind":"idea","tags":[]}`, ""},
		{"OK items", "create", `{"items":[{"kind":"note","content":"c"}]}`, ""},
		{"OK update of one field", "update", `{"id":"` + id1 + `","content":"c"}`, ""},
		{"OK update with nulls", "update", `{"id":"` + id1 + `","title":null,"note_kind":null,"tags":null,"properties":null}`, ""},
		{"OK list", "list", `{}`, ""},
		{"OK list with filters", "list", `{"kind":"entity","entity_kind":"concept","tag":"t","name_prefix":"","limit":200}`, ""},
		{"OK search", "search", `{"query":"LoRA","kind":"note","note_kind":"idea"}`, ""},
		{"OK link", "link", `{"source_id":"` + id1 + `","target_id":"` + id2 + `","relation":"introduced_by"}`, ""},
		{"OK neighbors", "neighbors", `{"id":"` + id1 + `","relation":"r"}`, ""},
		{"OK stats", "stats", `{}`, ""},
		{"Err nothing", "create", `{}`, "items-or-one"},
		{"Err fields but no kind", "create", `{"name":"x","entity_kind":"y"}`, "items-or-one"},
		{"Err kind and items", "create", `{"kind":"note","items":[{}]}`, "items-or-one"},
		{"Err items and a field", "create", `{"items":[{}],"tags":["x"]}`, "items-alone"},
		{"Err no items", "create", `{"items":[]}`, "items-some"},
		{"Err entity without a name", "create", `{"kind":"entity","entity_kind":"x"}`, "entity-complete"},
		{"Err entity without entity_kind", "create", `{"kind":"entity","name":"x"}`, "entity-complete"},
		{"Err entity with content", "create", `{"kind":"entity","entity_kind":"x","name":"x","content":"x"}`, "entity-fields"},
		{"Err note without content", "create", `{"kind":"note","title":"x"}`, "note-complete"},
		{"Err note with a name", "create", `{"kind":"note","content":"x","name":"x"}`, "note-fields"},
		{"Err blank name", "create", `{"kind":"entity","entity_kind":"x","name":" \n"}`, "name-speaks"},
		{"Err empty content", "create", `{"kind":"note","content":""}`, "content-some"},
		{"Err empty content in update", "update", `{"id":"` + id1 + `","content":""}`, "content-some"},
		{"Err entity_kind", "create", `{"kind":"entity","entity_kind":"Concept","name":"x"}`, "entity-kind-form"},
		{"Err entity_kind with a line break", "create", `{"kind":"entity","entity_kind":"concept\n","name":"x"}`, "entity-kind-form"},
		{"Err entity_kind that looks like ASCII", "create", `{"kind":"entity","entity_kind":"\u212a","name":"x"}`, "entity-kind-form"},
		{"Err empty entity_kind filter", "search", `{"query":"x","entity_kind":""}`, "entity-kind-form"},
		{"Err note_kind", "list", `{"note_kind":"9"}`, "note-kind-form"},
		{"Err empty tag filter", "list", `{"tag":""}`, "tag-speaks"},
		{"Err blank tag filter", "search", `{"query":"x","tag":" "}`, "tag-speaks"},
		{"Err both kind filters", "list", `{"entity_kind":"x","note_kind":"y"}`, "kind-filters"},
		{"Err filter of the other kind", "search", `{"query":"x","kind":"note","entity_kind":"y"}`, "kind-filter-fits"},
		{"Err filter of the other kind, notes", "list", `{"kind":"entity","note_kind":"y"}`, "kind-filter-fits"},
		{"Err blank query", "search", `{"query":" \t"}`, "query-speaks"},
		{"Err nothing to change", "update", `{"id":"` + id1 + `"}`, "change-something"},
		{"Err fields of both kinds", "update", `{"id":"` + id1 + `","name":"x","content":"y"}`, "change-one-kind"},
		{"Err relation", "link", `{"source_id":"` + id1 + `","target_id":"` + id2 + `","relation":"is a"}`, "relation-form"},
		{"Err relation filter", "neighbors", `{"id":"` + id1 + `","relation":""}`, "relation-filter-form"},
		{"Err seed: empty target", "link", `{"source_id":"` + id1 + `","target_id":"","relation":"introduced_by"}`, "ends-given"},
		{"Err itself", "link", `{"source_id":"` + id1 + `","target_id":"` + id1 + `","relation":"r"}`, "ends-differ"},
		{"Err merge with itself", "merge_note", `{"into_id":"` + id1 + `","from_id":"` + id1 + `"}`, "merge-differ"},
		{"Err merge entity with itself", "merge_entity", `{"into_id":"` + id1 + `","from_id":"` + id1 + `"}`, "merge-differ"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params, err := w.manifest.Verb(tt.verb).Resolve(args(t, tt.params))
			require.NoError(t, err)
			err = set.Check(context.Background(), &policy.Input{Verb: tt.verb, Pack: "kg", Params: params})
			_, direct := w.direct(context.Background(), in("a"), tt.verb, params)
			if tt.check == "" {
				require.NoError(t, err)
				require.NoError(t, direct)
				return
			}
			var e *packs.CheckError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.check, e.Check)
			require.NoError(t, e.Err)
			requireKind(t, direct, invalid, "")
			failed[tt.check] = true
		})
	}
	for _, c := range w.manifest.Checks {
		require.True(t, failed[c.Name], "no case fails the check %s", c.Name)
	}
}
