package kg

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/verbgate/verbgate/packs"
)

const (
	maxQuery     = 4096
	maxTerms     = 32
	searchLimit  = 20
	searchMost   = 100
	matchAll     = "all"
	matchAny     = "any"
	bm25         = "bm25(kg_fts, 8.0, 1.0, 4.0)" // name, body, tags
	scoreDecimal = 1e4
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
	text := call.Params.String("query")
	wanted := terms(text)
	switch {
	case len(text) > maxQuery:
		return nil, &packs.InvalidError{Param: "query", Message: fmt.Sprintf("has %d bytes, more than the %d allowed", len(text), maxQuery)}
	case len(wanted) == 0:
		return nil, &packs.InvalidError{Param: "query", Message: `holds nothing to look for; write at least one word, as in query="LoRA"`}
	case len(wanted) > maxTerms:
		return nil, &packs.InvalidError{Param: "query", Message: fmt.Sprintf("has %d words, more than the %d allowed; keep the telling ones", len(wanted), maxTerms)}
	}
	operator := " AND "
	if call.Params.String("match") == matchAny {
		operator = " OR "
	}
	f, err := filterOf(call.Params)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(call.Params, searchLimit, searchMost)
	if err != nil {
		return nil, err
	}
	q := &query{}
	q.add(`SELECT `+recordColumns+`, `+bm25+` AS score
		FROM kg_fts JOIN kg_records r ON r.seq = kg_fts.rowid WHERE kg_fts MATCH ?`, match(wanted, operator))
	f.apply(q, call.Token.Readable())
	q.add(`ORDER BY score, r.seq DESC LIMIT ?`, limit)
	return reading(ctx, g.store, func(tx *sql.Tx) (hits, error) {
		items, err := collect(ctx, tx, q, func(scan func(...any) error) (hit, error) {
			var score float64
			r, err := scanRecord(scan, &score)
			if err != nil {
				return hit{}, err
			}
			h := hit{summary: r.summary(), Score: score}
			if body := *r.body(); body != nil {
				h.Snippet = snippet(*body, wanted)
			}
			return h, nil
		})
		if err != nil {
			return hits{}, err
		}
		relate(items)
		return hits{Items: items, Count: len(items)}, nil
	})
}

// relate turns bm25's numbers (negative, the best first) into shares of the best.
func relate(items []hit) {
	if len(items) == 0 {
		return
	}
	best := items[0].Score
	for i := range items {
		share := 1.0
		if best != 0 {
			share = items[i].Score / best
		}
		items[i].Score = math.Round(share*scoreDecimal) / scoreDecimal
	}
}
