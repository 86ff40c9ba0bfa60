package kg

import (
	"context"
	"database/sql"

	"github.com/verbgate/verbgate/packs"
)

const (
	maxQuery    = 4096
	maxTerms    = 32
	searchLimit = 20
	searchMost  = 100
	matchAll    = "all"
	matchAny    = "any"
)

// hits is the answer to search.
type hits struct {
	Items []hit `json:"items"`
	Count int   `json:"count"`
}

type hit struct {
	summary
	Score   float64 `json:"score"` // against the best hit, which has 1
	Snippet string  `json:"snippet,omitempty"`
}

// search finds records of the readable namespaces by their words, best first; among equals the newest
// comes first.
func (g *graph) search(ctx context.Context, call *packs.Call) (any, error) {
	f := &fields{from: call.Params}
	var wanted []term
	if text := required(f, "query", `write at least one word, as in query="LoRA"`, bounded(f.text, maxQuery)); text != nil {
		wanted = terms(*text)
	}
	switch {
	case len(wanted) == 0:
		f.fail("query", `holds nothing to look for; write at least one word, as in query="LoRA"`)
	case len(wanted) > maxTerms:
		f.fail("query", "has %d words, more than the %d allowed; keep the telling ones", len(wanted), maxTerms)
	}
	matching := f.choice("match", matchAll, matchAny)
	only := f.filter()
	limit := f.limit(searchLimit, searchMost)
	if f.err != nil {
		return nil, f.err
	}
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (hits, error) {
		r := &ranking{tx: tx, readable: call.Token.Readable(), terms: wanted, all: matching != matchAny}
		best, err := r.best(ctx, only, limit)
		if err != nil {
			return hits{}, err
		}
		items, err := show(ctx, tx, best, wanted)
		return hits{Items: items, Count: len(items)}, err
	})
}

// show reads the records that were found, in the order given.
func show(ctx context.Context, tx *sql.Tx, found []candidate, wanted []term) ([]hit, error) {
	items := make([]hit, 0, len(found))
	if len(found) == 0 {
		return items, nil
	}
	stmt, err := tx.PrepareContext(ctx, `SELECT `+recordColumns+` FROM kg_records r WHERE r.seq = ?`)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	for _, c := range found {
		r, err := scanRecord(stmt.QueryRowContext(ctx, c.seq).Scan)
		if err != nil {
			return nil, err
		}
		h := hit{summary: r.summary(), Score: share(c.score, found[0].score)}
		if body := *r.body(); body != nil {
			h.Snippet = snippet(*body, wanted)
		}
		items = append(items, h)
	}
	return items, nil
}
