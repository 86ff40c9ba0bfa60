package cel_test

import (
	"testing"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy/cel"
)

func BenchmarkCheckFive(b *testing.B) {
	set := compile(b,
		one(`!has(params.s) || size(params.s) <= 200`),
		one(`!has(params.limit) || (params.limit >= 1 && params.limit <= 100)`),
		one(`!(has(params.id) && has(params.meta))`),
		one(`!has(params.short) || params.short in ["entity", "note", "edge"]`),
		one(`token.actor.kind == "agent" || token.namespace == "local"`),
	)
	in := input(b, `{"s":"attention cache behaviour","limit":10,"short":"note"}`)
	b.ReportAllocs()
	for b.Loop() {
		_ = set.Check(b.Context(), in)
	}
}

func BenchmarkCheckLoop(b *testing.B) {
	set := compile(b, one(`params.tags.all(t, size(t) > 0 && size(t) <= 64)`))
	in := input(b, `{"tags":["a","b","c","d","e"]}`)
	b.ReportAllocs()
	for b.Loop() {
		_ = set.Check(b.Context(), in)
	}
}

func BenchmarkCheckFails(b *testing.B) {
	set := compile(b, packs.Check{Name: "one", Rule: `params.limit < 5`, MessageRule: `"limit is " + string(params.limit)`, Verbs: []string{"create"}})
	in := input(b, `{"limit":10}`)
	b.ReportAllocs()
	for b.Loop() {
		_ = set.Check(b.Context(), in)
	}
}

func BenchmarkCompile(b *testing.B) {
	manifests := []packs.Manifest{manifest(one(`!has(params.s) || size(params.s) <= 200`), one(`!has(params.limit) || params.limit > 0`))}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = cel.Compile(manifests, cel.Config{})
	}
}
