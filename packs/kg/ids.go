package kg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/verbgate/verbgate/packs"
)

// place is where the thing is that an id names.
type place struct {
	seq       int64
	id        string
	kind      string
	namespace string
}

// find resolves an id. A full one is looked up everywhere; a prefix is a search in the readable
// namespaces, which tells nothing about any other.
func find(ctx context.Context, tx *sql.Tx, id packs.IDRef, readable []string) (place, error) {
	q := &query{}
	if id.Full {
		q.add(`SELECT seq, id, kind, namespace FROM kg_records WHERE id = ? UNION ALL SELECT seq, id, 'edge', namespace FROM kg_edges WHERE id = ?`, id.Text, id.Text)
	} else {
		from, to := id.Range()
		q.add(`SELECT seq, id, kind, namespace FROM kg_records WHERE id >= ? AND id < ?`, from, to)
		q.readable("+namespace", readable)
		q.add(`UNION ALL SELECT seq, id, 'edge', namespace FROM kg_edges WHERE id >= ? AND id < ?`, from, to)
		q.readable("+namespace", readable)
		q.add(`ORDER BY id LIMIT ?`, packs.ShownMatches+1)
	}
	places, err := collect(ctx, tx, q, func(scan func(...any) error) (p place, err error) {
		err = scan(&p.seq, &p.id, &p.kind, &p.namespace)
		return p, err
	})
	if err != nil {
		return place{}, err
	}
	ids := make([]string, len(places))
	for i, p := range places {
		ids[i] = p.id
	}
	if _, err := id.One("record", ids); err != nil {
		return place{}, err
	}
	return places[0], nil
}

// findRecord resolves an id that must be an entity's or a note's.
func findRecord(ctx context.Context, tx *sql.Tx, id packs.IDRef, readable []string) (place, error) {
	p, err := find(ctx, tx, id, readable)
	if err == nil && p.kind == kindEdge {
		err = &packs.InvalidError{Param: id.Param, Message: "this is the id of an edge; give an entity's or a note's"}
	}
	return p, err
}

// newID makes the id of a new record.
func newID() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}

// Locate implements packs.Locator for full ids and prefixes, and finds what the handlers find. Text
// that cannot be an id names no record; a prefix that fits several is an *packs.AmbiguousIDError.
func (g *graph) Locate(ctx context.Context, ref packs.ResourceRef) (packs.Location, error) {
	id, err := packs.ParseIDRef(ref.Param, ref.ID)
	if err != nil {
		return packs.Location{}, nil
	}
	p, err := packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (place, error) { return find(ctx, tx, id, ref.Token.Readable()) })
	var missing *packs.NotFoundError
	switch {
	case errors.As(err, &missing):
		return packs.Location{}, nil
	case err != nil:
		return packs.Location{}, fmt.Errorf("locate the record of %s: %w", ref.Verb, err)
	}
	return packs.Location{Exists: true, ID: p.id, Namespace: p.namespace, Kind: p.kind}, nil
}
