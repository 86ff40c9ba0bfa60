// Package memory is the memory pack: short texts worth keeping (memory.remember), found again by their
// words, their age and their weight (memory.recall), dropped by id (memory.forget). An internal verb,
// memory.recall_score, explains the score of one memory for one query.
//
// What it does not do: it judges nobody (the gate did, before a handler runs), opens no store of its
// own, and keeps no copy of the knowledge graph. A memory may be about a record of pack kg; whether
// that is there is asked through the whole pipeline when the memory is written, so a caller can only
// tie a memory to a record he may get. What becomes of the record later does not touch the memory.
//
// Namespaces. A memory belongs to the token's primary namespace. recall, and an id that is only a
// prefix, search the readable namespaces and nothing else, and the statistics behind a score are taken
// from these alone: no memory of another namespace changes a result, nor an order. A full id resolves
// wherever the memory is.
//
// Events. memory.remembered and memory.forgotten tell the id of a memory once it is stored or gone, and
// what it is about, never its text.
//
// Invariants. A handler's effect is one transaction. The clock is the call's. The same store, query,
// token and time give the same answer. Every value reaches SQL as a bound argument, and what reaches
// the full text index's query language is letters and digits in quotes.
package memory

import (
	"context"
	"errors"

	"github.com/verbgate/verbgate/packs"
)

func init() { packs.Register(Pack{}) }

// Pack is the memory pack. The zero value is ready; importing the package registers it.
type Pack struct{}

// Open returns the pack's handlers on env.Backend, which must be migrated to the manifest's schema.
// The instance is also a packs.Locator. It owns no goroutine and no connection.
func (Pack) Open(_ context.Context, env packs.Env) (packs.Instance, error) {
	if env.Backend == nil {
		return nil, errors.New("memory: the pack keeps records and needs a backend")
	}
	return &memories{store: env.Backend}, nil
}

// memories is the open pack. It is immutable; the store is what changes.
type memories struct{ store packs.Backend }

// Handlers implements packs.Instance.
func (m *memories) Handlers() map[string]packs.Handler {
	return map[string]packs.Handler{
		"memory.remember":     m.remember,
		"memory.recall":       m.recall,
		"memory.forget":       m.forget,
		"memory.recall_score": m.recallScore,
	}
}

// Close implements packs.Instance. The backend belongs to whoever opened it.
func (m *memories) Close() error { return nil }
