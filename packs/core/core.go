// Package core is the pack that every Verbgate has: its one verb, verbs, lists what can be called.
//
// It keeps no records and knows no other pack: the list comes with each call and holds what that
// caller may know of, so a verb the dispatcher hides is not named here either. Help on one verb is
// not here: every verb answers help=true itself.
package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/packs"
)

func init() { packs.Register(Pack{}) }

// Pack is the core pack. The zero value is ready; importing the package registers it.
type Pack struct{}

var categories = []packs.Category{packs.Assertive, packs.Commissive, packs.Declaration, packs.Directive}

// Manifest describes the pack.
func (Pack) Manifest() packs.Manifest {
	enum := make([]string, len(categories))
	for i, c := range categories {
		enum[i] = string(c)
	}
	return packs.Manifest{
		Name:        "core",
		Description: "What can be called here.",
		Verbs: []packs.Verb{{
			Name:        "verbs",
			Description: "List the verbs that can be called, with their params. Call a verb with help=true to read more about it.",
			Category:    packs.Assertive,
			Visibility:  packs.Public,
			Params: []packs.Param{
				{Name: "pack", Type: packs.String, MaxLength: 32, Description: "Only the verbs of this pack."},
				{Name: "category", Type: packs.String, Enum: enum, Description: "Only verbs of this kind: assertive ones tell, commissive ones add, declarations change what is there, directives make others act."},
			},
			AlwaysVerbose: true, // a shortened signature is a wrong one
			Returns:       "{verbs: [{verb, pack, category, signature, description}], count}, sorted by verb; optional params carry a ? in the signature.",
		}},
	}
}

// Open needs nothing.
func (Pack) Open(context.Context, packs.Env) (packs.Instance, error) { return instance{}, nil }

type instance struct{}

// Handlers implements packs.Instance.
func (instance) Handlers() map[string]packs.Handler { return map[string]packs.Handler{"verbs": verbs} }

// Close implements packs.Instance.
func (instance) Close() error { return nil }

// answer is the result of verbs.
type answer struct {
	Verbs []packs.Listing `json:"verbs"`
	Count int             `json:"count"`
}

func verbs(_ context.Context, call *packs.Call) (any, error) {
	pack, category := call.Params.String("pack"), packs.Category(call.Params.String("category"))
	if call.Params.Has("category") && !slices.Contains(categories, category) {
		return nil, &packs.InvalidError{Param: "category", Message: fmt.Sprintf("there is no category %q; give one of %s", category, join(categories))}
	}
	all := call.Catalogue()
	if call.Params.Has("pack") && !slices.ContainsFunc(all, func(l packs.Listing) bool { return l.Pack == pack }) {
		return nil, &packs.InvalidError{Param: "pack", Message: fmt.Sprintf("there is no pack %q; give one of %s", pack, join(packsOf(all)))}
	}
	shown := []packs.Listing{}
	for _, l := range all {
		if (pack == "" || l.Pack == pack) && (category == "" || l.Category == category) {
			shown = append(shown, l)
		}
	}
	slices.SortStableFunc(shown, func(a, b packs.Listing) int { return strings.Compare(a.Verb, b.Verb) })
	return answer{Verbs: shown, Count: len(shown)}, nil
}

// packsOf names the packs that have verbs in the list, each once.
func packsOf(all []packs.Listing) []string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.Pack
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func join[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
