package kg

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// linked is the answer to link. Created is false when the edge was there already.
type linked struct {
	*edge
	Created bool `json:"created"`
}

// link makes an edge in the token's primary namespace. Saying the same thing again gives the edge that
// is there; saying it with another weight or other properties is a conflict, for one of the two would
// have to be forgotten.
func (g *graph) link(ctx context.Context, call *packs.Call) (any, error) {
	source, err := packs.ParseIDRef("source_id", call.Params.String("source_id"))
	if err != nil {
		return nil, err
	}
	target, err := packs.ParseIDRef("target_id", call.Params.String("target_id"))
	if err != nil {
		return nil, err
	}
	e, err := newEdge(call)
	if err != nil {
		return nil, err
	}
	out, err := packs.Within(ctx, g.store.Write, func(tx *sql.Tx) (linked, error) {
		from, err := findRecord(ctx, tx, source, call.Token.Readable())
		if err != nil {
			return linked{}, err
		}
		to, err := findRecord(ctx, tx, target, call.Token.Readable())
		if err != nil {
			return linked{}, err
		}
		if from.seq == to.seq {
			return linked{}, &packs.InvalidError{Param: "target_id", Message: "is the source itself; an edge joins two different records"}
		}
		e.SourceID, e.TargetID = from.id, to.id
		there, err := scanEdge(tx.QueryRowContext(ctx, edgeQuery+`
			WHERE e.source = ? AND e.target = ? AND e.relation = ? AND e.namespace = ?`, from.seq, to.seq, e.Relation, e.Namespace).Scan)
		switch {
		case err == nil && there.Weight == e.Weight && string(there.Properties) == string(e.Properties):
			return linked{edge: there}, nil
		case err == nil:
			return linked{}, &packs.ConflictError{Message: fmt.Sprintf(
				"these two are linked by %q already, with another weight or other properties; delete edge %s first", e.Relation, there.ID)}
		case !errors.Is(err, sql.ErrNoRows):
			return linked{}, err
		}
		var weight *string
		if e.Weight != "" {
			weight = (*string)(&e.Weight)
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO kg_edges (id, source, target, relation, namespace, created_at, weight, properties) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			e.ID, from.seq, to.seq, e.Relation, e.Namespace, e.CreatedAt, weight, string(e.Properties))
		return linked{edge: e, Created: true}, err
	})
	if err != nil || !out.Created {
		return out, err
	}
	return tell(call, topicLinked, linkedEvent{ID: out.ID, SourceID: out.SourceID, TargetID: out.TargetID, Relation: out.Relation}, out)
}

// newEdge reads everything about an edge but its ends.
func newEdge(call *packs.Call) (*edge, error) {
	f := &fields{from: call.Params}
	e := &edge{Kind: kindEdge, Namespace: call.Token.Namespace(), CreatedAt: stamp(call.Time)}
	if relation := required(f, "relation", `say how the two are related, as in relation="introduced_by"`, f.label); relation != nil {
		e.Relation = *relation
	}
	if weight, how := f.value("weight"); how == given {
		n, ok := weight.(json.Number)
		if v, err := n.Float64(); !ok || err != nil || v < 0 {
			f.fail("weight", "must be a number of at least 0")
		}
		e.Weight = n
	}
	props, _ := f.object("properties")
	e.Properties = f.properties(props)
	if f.err != nil {
		return nil, f.err
	}
	var err error
	e.ID, err = newID()
	return e, err
}

// edgeQuery reads edges for scanEdge.
const edgeQuery = `SELECT ` + edgeColumns + ` FROM kg_edges e JOIN kg_records s ON s.seq = e.source JOIN kg_records t ON t.seq = e.target`

const edgeColumns = `e.seq, e.id, s.id, t.id, e.relation, e.namespace, e.created_at, e.weight, e.properties`

func scanEdge(scan func(...any) error) (*edge, error) {
	e := &edge{Kind: kindEdge}
	var weight *string
	var props string
	if err := scan(&e.seq, &e.ID, &e.SourceID, &e.TargetID, &e.Relation, &e.Namespace, &e.CreatedAt, &weight, &props); err != nil {
		return nil, err
	}
	if weight != nil {
		e.Weight = json.Number(*weight)
	}
	e.Properties = json.RawMessage(props)
	return e, nil
}

// loadEdge reads an edge that was found in the same transaction.
func loadEdge(ctx context.Context, tx *sql.Tx, seq int64) (*edge, error) {
	return scanEdge(tx.QueryRowContext(ctx, edgeQuery+` WHERE e.seq = ?`, seq).Scan)
}

// countEdges counts those edges e of a record that meet the condition and that neighbors would show:
// both the edge and its far end are in the readable namespaces.
func countEdges(ctx context.Context, tx *sql.Tx, readable []string, record int64, condition string, args ...any) (n int64, err error) {
	q := &query{}
	q.add(`SELECT count(*) FROM kg_edges e JOIN kg_records r ON r.seq = CASE e.source WHEN ? THEN e.target ELSE e.source END WHERE`, record)
	q.add(condition, args...)
	q.readable("+e.namespace", readable)
	q.readable("+r.namespace", readable)
	err = tx.QueryRowContext(ctx, q.sql.String(), q.args...).Scan(&n)
	return n, err
}
