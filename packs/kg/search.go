package kg

import (
	"context"
	"database/sql"
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
	operator := " AND "
	if f.choice("match", matchAll, matchAny) == matchAny {
		operator = " OR "
	}
	only := f.filter()
	limit := f.limit(searchLimit, searchMost)
	if f.err != nil {
		return nil, f.err
	}
	q := &query{}
	q.add(`SELECT `+recordColumns+`, `+bm25+` AS score
		FROM kg_fts JOIN kg_records r ON r.seq = kg_fts.rowid WHERE kg_fts MATCH ?`, match(wanted, operator))
	q.readable("+r.namespace", call.Token.Readable())
	only.apply(q)
	q.add(`ORDER BY score, r.seq DESC LIMIT ?`, limit)
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (hits, error) {
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
