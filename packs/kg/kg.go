// Package kg is the knowledge graph pack: entities, notes and the typed edges between them, behind
// the bare verbs create, get, list, update, delete, search, link, neighbors, merge_entity,
// merge_note and stats.
//
// What it does not do: it judges nobody. Whether a caller may do what he asks was decided by the gate
// before a handler runs; the token is attribution. Nor does it open its store: it is handed a
// packs.Backend and speaks SQL that SQLite with FTS5 understands.
//
// Namespaces. What is written goes to the token's primary namespace. A full id resolves wherever the
// record is, because ids are random and globally unique; everything that searches (list, search,
// stats, the far ends of neighbors, and an id that is only a prefix) sees the token's readable
// namespaces and nothing else, so that an unknown namespace is an empty one and never "all". The two
// merges work inside the token's primary namespace only, and answer a full id from elsewhere with a
// mismatch: whoever has the id learns that the record exists, as he does from get. What a delete or a
// merge does to the edges of others it does in silence: it counts those that neighbors would show.
//
// Events. Once a change is in the store, kg.created, kg.updated, kg.deleted, kg.linked or kg.merged tells
// which records it was about, by id and kind; what is in them is for get, and so for the gate. What happens
// to a record by its full id is told in the namespace of the call, which need not be the record's.
//
// Invariants. A handler's effect is one transaction: all of it or nothing. Ids are UUIDv4 and say
// nothing about order; order is a sequence number that only grows and is never used twice, and it
// never leaves the package but sealed inside a cursor. The full text index is written in the same transaction
// as the record. Every value reaches SQL as a bound argument. Numbers inside properties keep the
// spelling the caller sent. No answer to a search, be it a hit, its score or its place, depends on
// records outside the readable namespaces.
package kg

import (
	"context"
	"errors"

	"github.com/verbgate/verbgate/packs"
)

func init() { packs.Register(Pack{}) }

// Pack is the knowledge graph pack. The zero value is ready; importing the package registers it.
type Pack struct{}

// Open returns the pack's handlers on env.Backend, which must be migrated to the manifest's schema.
// The instance also is a packs.Locator. It owns no goroutine and no connection.
func (Pack) Open(_ context.Context, env packs.Env) (packs.Instance, error) {
	if env.Backend == nil {
		return nil, errors.New("kg: the pack keeps records and needs a backend")
	}
	return &graph{store: env.Backend}, nil
}

// graph is the open pack. It is immutable; the store is what changes.
type graph struct{ store packs.Backend }

// Handlers implements packs.Instance.
func (g *graph) Handlers() map[string]packs.Handler {
	return map[string]packs.Handler{
		"create":       g.create,
		"get":          g.get,
		"list":         g.list,
		"update":       g.update,
		"delete":       g.delete,
		"search":       g.search,
		"link":         g.link,
		"neighbors":    g.neighbors,
		"merge_entity": g.mergeEntity,
		"merge_note":   g.mergeNote,
		"stats":        g.stats,
	}
}

// Close implements packs.Instance. The backend belongs to whoever opened it.
func (g *graph) Close() error { return nil }
