package kg

import (
	"context"
	"database/sql"

	"github.com/verbgate/verbgate/packs"
)

// deleted is the answer to delete.
type deleted struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Deleted      bool   `json:"deleted"`
	EdgesDeleted int64  `json:"edges_deleted"`
}

// delete removes a record with all its edges, whoever wrote them, or one edge. An edge without an end
// cannot be; but the answer counts only those that the caller could have listed.
func (g *graph) delete(ctx context.Context, call *packs.Call) (any, error) {
	id, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	out, err := packs.Within(ctx, g.store.Write, func(tx *sql.Tx) (deleted, error) {
		p, err := find(ctx, tx, id, call.Token.Readable())
		if err != nil {
			return deleted{}, err
		}
		out := deleted{ID: p.id, Kind: p.kind, Deleted: true}
		if p.kind == kindEdge {
			_, err = tx.ExecContext(ctx, `DELETE FROM kg_edges WHERE seq = ?`, p.seq)
			return out, err
		}
		const itsEdges = `(e.source = ? OR e.target = ?)`
		if out.EdgesDeleted, err = countEdges(ctx, tx, call.Token.Readable(), p.seq, itsEdges, p.seq, p.seq); err != nil {
			return deleted{}, err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM kg_edges AS e WHERE `+itsEdges, p.seq, p.seq); err != nil {
			return deleted{}, err
		}
		return out, remove(ctx, tx, p.seq)
	})
	if err != nil {
		return nil, err
	}
	return tell(call, topicDeleted, deletedEvent{ID: out.ID, Kind: out.Kind, EdgesDeleted: out.EdgesDeleted}, out)
}
