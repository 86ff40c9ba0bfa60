package kg_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/verbgate/verbgate/packs"
)

// filled is a graph of n entities, each with a sentence and an edge to the one before.
func filled(b *testing.B, n int) (w *world, ids []string) {
	b.Helper()
	w = open(b)
	me := in("a")
	for len(ids) < n {
		items := make([]any, 0, 1000)
		for i := len(ids); i < min(n, len(ids)+1000); i++ {
			items = append(items, object{
				"kind": "entity", "entity_kind": "concept", "name": fmt.Sprint("concept ", i), "tags": list(fmt.Sprint("t", i%10)),
				"description": fmt.Sprintf("attention cache behaviour of layer %d in model %d, measured over %d runs", i%97, i%31, i%7),
			})
		}
		for _, id := range w.must(me, "create", object{"items": items})["ids"].([]any) {
			ids = append(ids, id.(string))
		}
	}
	return w, ids
}

func (w *world) bench(b *testing.B, verb string, params func(i int) packs.Params) {
	b.Helper()
	call := &packs.Call{Verb: verb, Token: w.who, Time: now, Emit: func(string, any) error { return nil }}
	handler := w.handlers[verb]
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		call.Params = params(i)
		i++
		if _, err := handler(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	w, ids := filled(b, 1000)
	w.bench(b, "get", func(i int) packs.Params { return packs.Params{"id": ids[i%len(ids)]} })
}

func BenchmarkGetByPrefix(b *testing.B) {
	w, ids := filled(b, 1000)
	w.bench(b, "get", func(i int) packs.Params { return packs.Params{"id": ids[i%len(ids)][:13]} })
}

func BenchmarkCreate(b *testing.B) {
	w := open(b)
	w.bench(b, "create", func(i int) packs.Params {
		return packs.Params{"kind": "entity", "entity_kind": "concept", "name": fmt.Sprint("concept ", i), "tags": list("t")}
	})
}

func BenchmarkCreate1000(b *testing.B) {
	w := open(b)
	items := make([]any, 1000)
	for i := range items {
		items[i] = object{"kind": "entity", "entity_kind": "concept", "name": fmt.Sprint("concept ", i), "tags": list("t")}
	}
	w.bench(b, "create", func(int) packs.Params { return packs.Params{"items": items} })
}

func BenchmarkSearch10k(b *testing.B) {
	w, _ := filled(b, 10_000)
	for name, query := range map[string]string{"rare": "4242", "some": "layer 42", "every": "attention cache"} {
		b.Run(name, func(b *testing.B) {
			w.bench(b, "search", func(int) packs.Params { return packs.Params{"query": query} })
		})
	}
}

func BenchmarkList10k(b *testing.B) {
	w, _ := filled(b, 10_000)
	for name, params := range map[string]packs.Params{"newest": {}, "tag": {"tag": "t3"}, "name": {"name_prefix": "concept 99"}} {
		b.Run(name, func(b *testing.B) { w.bench(b, "list", func(int) packs.Params { return params }) })
	}
	b.Run("namespaces", func(b *testing.B) {
		w.who = in("a", "b", "c")
		w.bench(b, "list", func(int) packs.Params { return packs.Params{} })
	})
}
