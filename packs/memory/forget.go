package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// forgotten is the answer to memory.forget.
type forgotten struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Forgotten bool   `json:"forgotten"`
}

// forget deletes a memory; its tags go with it.
func (m *memories) forget(ctx context.Context, call *packs.Call) (any, error) {
	ref, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	out, err := packs.Within(ctx, m.store.Write, func(tx *sql.Tx) (forgotten, error) {
		p, err := find(ctx, tx, ref, call.Token.Readable())
		if err != nil {
			return forgotten{}, err
		}
		for _, statement := range []string{"DELETE FROM memory_words WHERE rowid = ?", "DELETE FROM memory_records WHERE seq = ?"} {
			if _, err := tx.ExecContext(ctx, statement, p.seq); err != nil {
				return forgotten{}, err
			}
		}
		return forgotten{ID: p.id, Namespace: p.namespace, Forgotten: true}, nil
	})
	if err != nil {
		return nil, err
	}
	return out, call.Emit(topicForgotten, event{ID: out.ID})
}

// Locate implements packs.Locator and finds what the handlers find. Text that cannot be an id names no
// memory; a prefix that fits several is an *packs.AmbiguousIDError.
func (m *memories) Locate(ctx context.Context, ref packs.ResourceRef) (packs.Location, error) {
	id, err := packs.ParseIDRef(ref.Param, ref.ID)
	if err != nil {
		return packs.Location{}, nil
	}
	p, err := packs.Within(ctx, m.store.Read, func(tx *sql.Tx) (place, error) { return find(ctx, tx, id, ref.Token.Readable()) })
	var missing *packs.NotFoundError
	switch {
	case errors.As(err, &missing):
		return packs.Location{}, nil
	case err != nil:
		return packs.Location{}, fmt.Errorf("locate the memory of %s: %w", ref.Verb, err)
	}
	return packs.Location{Exists: true, ID: p.id, Namespace: p.namespace, Kind: "memory"}, nil
}
