package kg

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/verbgate/verbgate/packs"
)

// neighborhood is the answer to neighbors.
type neighborhood struct {
	ID string `json:"id"` // whose neighbours they are
	page[neighbor]
}

// neighbor is the far end of one edge. A record that is linked twice is listed twice.
type neighbor struct {
	EdgeID     string          `json:"edge_id"`
	Direction  string          `json:"direction"` // out: from the record in question to this one
	Relation   string          `json:"relation"`
	Weight     json.Number     `json:"weight,omitempty"`
	Properties json.RawMessage `json:"properties"`
	Namespace  string          `json:"namespace"` // the edge's
	CreatedAt  string          `json:"created_at"`
	Record     summary         `json:"record"`
}

// The directions of neighbors.
const (
	outgoing = "out"
	incoming = "in"
)

// neighbors lists the edges of a record with their far ends, the newest edge first. The record itself
// resolves like any id; an edge is listed only when both it and its far end are in readable namespaces.
func (g *graph) neighbors(ctx context.Context, call *packs.Call) (any, error) {
	id, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	f := &fields{from: call.Params}
	limit := f.limit(listLimit, listMost)
	direction := f.choice("direction", "both", outgoing, incoming)
	kind := f.choice("kind", "", kindEntity, kindNote)
	relation, _ := f.label("relation")
	if f.err != nil {
		return nil, f.err
	}
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (neighborhood, error) {
		center, err := findRecord(ctx, tx, id, call.Token.Readable())
		if err != nil {
			return neighborhood{}, err
		}
		from, err := beginning(ctx, tx)
		if err != nil {
			return neighborhood{}, err
		}
		from = f.start(from, call.Verb, center.id, direction, *cmp.Or(relation, new(string)), kind)
		if f.err != nil {
			return neighborhood{}, f.err
		}
		q := &query{}
		q.add(`SELECT e.seq, e.id, e.source = ?, e.relation, e.namespace, e.created_at, e.weight, e.properties,
				r.id, r.kind, r.sub_kind, r.namespace, r.updated_at, r.name, r.tags
			FROM kg_edges e JOIN kg_records r ON r.seq = CASE e.source WHEN ? THEN e.target ELSE e.source END WHERE`, center.seq, center.seq)
		switch direction {
		case outgoing:
			q.add(`e.source = ?`, center.seq)
		case incoming:
			q.add(`e.target = ?`, center.seq)
		default:
			q.add(`(e.source = ? OR e.target = ?)`, center.seq, center.seq)
		}
		q.readable("+e.namespace", call.Token.Readable())
		q.readable("+r.namespace", call.Token.Readable())
		if relation != nil {
			q.add(`AND e.relation = ?`, *relation)
		}
		if kind != "" {
			q.add(`AND r.kind = ?`, kind)
		}
		from.apply(q, "e.seq", false)
		q.add(`LIMIT ?`, limit+1)
		found, err := turn(ctx, tx, q, from, limit, scanNeighbor)
		return neighborhood{ID: center.id, page: found}, err
	})
}

func scanNeighbor(scan func(...any) error) (n neighbor, seq int64, size int, err error) {
	var (
		out           bool
		r             record
		weight        *string
		subKind, name *string
		props, tags   string
	)
	err = scan(&seq, &n.EdgeID, &out, &n.Relation, &n.Namespace, &n.CreatedAt, &weight, &props,
		&r.ID, &r.Kind, &subKind, &r.Namespace, &r.UpdatedAt, &name, &tags)
	err = errors.Join(err, json.Unmarshal([]byte(tags), &r.Tags))
	if err != nil {
		return n, 0, 0, err
	}
	n.Direction = incoming
	if out {
		n.Direction = outgoing
	}
	if weight != nil {
		n.Weight = json.Number(*weight)
	}
	n.Properties = json.RawMessage(props)
	*r.subKind(), *r.name() = subKind, name
	n.Record = r.summary()
	return n, seq, r.size() + len(props), nil
}
