package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/core"
)

var catalogue = []packs.Listing{
	{Verb: "stats", Pack: "kg", Category: packs.Assertive, Signature: "stats()", Description: "Count."},
	{Verb: "create", Pack: "kg", Category: packs.Commissive, Signature: "create(name: string)", Description: "Create."},
	{Verb: "memory.recall", Pack: "memory", Category: packs.Assertive, Signature: "memory.recall(query: string)", Description: "Recall."},
	{Verb: "verbs", Pack: "core", Category: packs.Assertive, Signature: "verbs(pack?: string, category?: string)", Description: "List."},
}

func call(t testing.TB, params packs.Params, all []packs.Listing) (any, error) {
	t.Helper()
	instance, err := core.Pack{}.Open(context.Background(), packs.Env{})
	require.NoError(t, err)
	defer func() { require.NoError(t, instance.Close()) }()
	return instance.Handlers()["verbs"](context.Background(), &packs.Call{
		Verb: "verbs", Params: params, Catalogue: func() []packs.Listing { return all },
	})
}

func TestVerbs(t *testing.T) {
	for _, c := range []struct {
		name   string
		params packs.Params
		want   []string
		err    string
		param  string
	}{
		{name: "OK all, sorted", want: []string{"create", "memory.recall", "stats", "verbs"}},
		{name: "OK pack", params: packs.Params{"pack": "kg"}, want: []string{"create", "stats"}},
		{name: "OK category", params: packs.Params{"category": "assertive"}, want: []string{"memory.recall", "stats", "verbs"}},
		{name: "OK both", params: packs.Params{"pack": "kg", "category": "commissive"}, want: []string{"create"}},
		{name: "OK none of a category", params: packs.Params{"category": "directive"}, want: []string{}},
		{name: "Err unknown pack", params: packs.Params{"pack": "kgg"}, param: "pack", err: `there is no pack "kgg"; give one of core, kg, memory`},
		{name: "Err empty pack", params: packs.Params{"pack": ""}, param: "pack", err: `there is no pack ""; give one of core, kg, memory`},
		{name: "Err pack in the wrong case", params: packs.Params{"pack": "KG"}, param: "pack", err: "give one of core, kg, memory"},
		{name: "Err unknown category", params: packs.Params{"category": "Assertive"}, param: "category", err: "give one of assertive, commissive, declaration, directive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(catalogue)
			result, err := call(t, c.params, catalogue)
			require.Equal(t, before, catalogue, "the list is shared and stays as it is")
			if c.err != "" {
				var invalid *packs.InvalidError
				require.ErrorAs(t, err, &invalid)
				require.Equal(t, c.param, invalid.Param)
				require.Contains(t, invalid.Message, c.err)
				return
			}
			require.NoError(t, err)
			text, err := json.Marshal(result)
			require.NoError(t, err)
			var got struct {
				Verbs []packs.Listing
				Count int
			}
			require.NoError(t, json.Unmarshal(text, &got))
			names := []string{}
			for _, l := range got.Verbs {
				require.Contains(t, catalogue, l)
				names = append(names, l.Verb)
			}
			require.Equal(t, c.want, names)
			require.Equal(t, len(c.want), got.Count)
			require.NotContains(t, string(text), "null")
		})
	}
}

// A verb that the caller may not know of is named nowhere, nor is a pack that has no other.
func TestVerbsTellsOnlyWhatIsInTheCatalogue(t *testing.T) {
	_, err := call(t, packs.Params{"pack": "memory"}, catalogue[:2])
	require.ErrorContains(t, err, `there is no pack "memory"; give one of kg`)
}

func TestManifest(t *testing.T) {
	manifest := core.Pack{}.Manifest()
	require.NoError(t, manifest.Validate())
	require.Equal(t, manifest, core.Pack{}.Manifest())
	require.Equal(t, "verbs(pack?: string, category?: string)", manifest.Verb("verbs").Signature())
	instance, err := core.Pack{}.Open(context.Background(), packs.Env{})
	require.NoError(t, err)
	require.Len(t, instance.Handlers(), len(manifest.Verbs))
	require.Contains(t, packs.Registered(), packs.Pack(core.Pack{}))

	_, err = manifest.Verb("verbs").Resolve(map[string]any{"category": "assert"})
	require.ErrorContains(t, err, "assertive")
}

func Example() {
	instance, err := core.Pack{}.Open(context.Background(), packs.Env{})
	if err != nil {
		panic(err)
	}
	result, err := instance.Handlers()["verbs"](context.Background(), &packs.Call{
		Verb:   "verbs",
		Params: packs.Params{"pack": "kg"},
		Catalogue: func() []packs.Listing {
			return []packs.Listing{{Verb: "stats", Pack: "kg", Category: packs.Assertive, Signature: "stats()"}}
		},
	})
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(result)
	fmt.Println(string(text))
	// Output:
	// {"verbs":[{"verb":"stats","pack":"kg","category":"assertive","signature":"stats()","description":""}],"count":1}
}

func BenchmarkVerbs(b *testing.B) {
	instance, err := core.Pack{}.Open(context.Background(), packs.Env{})
	if err != nil {
		b.Fatal(err)
	}
	handler := instance.Handlers()["verbs"]
	request := &packs.Call{Verb: "verbs", Catalogue: func() []packs.Listing { return catalogue }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := handler(context.Background(), request); err != nil {
			b.Fatal(err)
		}
	}
}
