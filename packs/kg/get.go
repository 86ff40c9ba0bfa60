package kg

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/verbgate/verbgate/packs"
)

// get shows one record or edge.
func (g *graph) get(ctx context.Context, call *packs.Call) (any, error) {
	id, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (any, error) {
		p, err := find(ctx, tx, id, call.Token.Readable())
		if err != nil {
			return nil, err
		}
		if p.kind == kindEdge {
			return loadEdge(ctx, tx, p.seq)
		}
		return load(ctx, tx, p.seq)
	})
}

// counts is the answer to stats.
type counts struct {
	Entities     int64            `json:"entities"`
	Notes        int64            `json:"notes"`
	Edges        int64            `json:"edges"`
	ByEntityKind map[string]int64 `json:"by_entity_kind"`
	ByNoteKind   map[string]int64 `json:"by_note_kind"`
	ByRelation   map[string]int64 `json:"by_relation"`
	ByNamespace  map[string]int64 `json:"by_namespace"`
}

// shownCounts is how many kinds or relations stats names, the most frequent ones.
const shownCounts = 100

// stats counts what is in the readable namespaces.
func (g *graph) stats(ctx context.Context, call *packs.Call) (any, error) {
	readable := call.Token.Readable()
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (counts, error) {
		c := counts{ByEntityKind: map[string]int64{}, ByNoteKind: map[string]int64{}, ByRelation: map[string]int64{}, ByNamespace: map[string]int64{}}
		records := &query{}
		records.add(`SELECT r.kind, coalesce(r.sub_kind, ''), r.namespace, count(*) AS n FROM kg_records r WHERE true`)
		records.readable("r.namespace", readable)
		records.add(`GROUP BY r.kind, r.sub_kind, r.namespace`)
		kinds := map[string]map[string]int64{kindEntity: {}, kindNote: {}}
		_, err := collect(ctx, tx, records, func(scan func(...any) error) (none struct{}, err error) {
			var kind, sub, namespace string
			var n int64
			if err := scan(&kind, &sub, &namespace, &n); err != nil {
				return none, err
			}
			kinds[kind][sub] += n
			c.ByNamespace[namespace] += n
			return none, nil
		})
		if err != nil {
			return c, err
		}
		c.Entities, c.ByEntityKind = summed(kinds[kindEntity])
		c.Notes, c.ByNoteKind = summed(kinds[kindNote])

		edges := &query{}
		edges.add(`SELECT e.relation, count(*) FROM kg_edges e WHERE true`)
		edges.readable("e.namespace", readable)
		edges.add(`GROUP BY e.relation`)
		relations := map[string]int64{}
		_, err = collect(ctx, tx, edges, func(scan func(...any) error) (none struct{}, err error) {
			var relation string
			var n int64
			err = scan(&relation, &n)
			relations[relation] = n
			return none, err
		})
		c.Edges, c.ByRelation = summed(relations)
		return c, err
	})
}

// summed returns the total, and the most frequent names with their counts. Records without a kind
// count in the total only.
func summed(all map[string]int64) (total int64, shown map[string]int64) {
	names := make([]string, 0, len(all))
	for name, n := range all {
		total += n
		if name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	shown = map[string]int64{}
	for _, name := range names[:min(len(names), shownCounts)] {
		shown[name] = all[name]
	}
	return total, shown
}
