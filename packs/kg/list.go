package kg

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/verbgate/verbgate/packs"
)

const (
	listLimit = 50
	listMost  = 200
	// pageBytes is about where a page ends early, so that an answer stays well below what one may
	// hold even when every character must be escaped.
	pageBytes = 1 << 20
)

// page is an answer that may go on. NextCursor is left out on the last page.
type page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// list shows whole records of the readable namespaces in the order of their creation.
func (g *graph) list(ctx context.Context, call *packs.Call) (any, error) {
	f, err := filterOf(call.Params)
	if err != nil {
		return nil, err
	}
	f.prefix = call.Params.String("name_prefix")
	limit, err := limitOf(call.Params, listLimit, listMost)
	if err != nil {
		return nil, err
	}
	oldest := call.Params.String("order") == "oldest"
	from, err := startOf(call.Params, f.fingerprint(call.Verb, oldest))
	if err != nil {
		return nil, err
	}
	q := &query{}
	q.add(`SELECT ` + recordColumns + ` FROM kg_records r WHERE true`)
	f.apply(q, call.Token.Readable())
	from.apply(q, "r.seq", oldest)
	q.add(`LIMIT ?`, limit+1)
	return reading(ctx, g.store, func(tx *sql.Tx) (page[*record], error) {
		return turn(ctx, tx, q, from, limit, func(scan func(...any) error) (*record, int64, int, error) {
			r, err := scanRecord(scan)
			if err != nil {
				return nil, 0, 0, err
			}
			return r, r.seq, r.size(), nil
		})
	})
}

// turn reads one page: at most limit rows of a query that asks for one more, fewer when they are big.
func turn[T any](ctx context.Context, tx *sql.Tx, q *query, from cursor, limit int,
	read func(scan func(...any) error) (row T, seq int64, size int, err error)) (page[T], error) {
	rows, err := tx.QueryContext(ctx, q.sql.String(), q.args...)
	if err != nil {
		return page[T]{}, err
	}
	defer rows.Close()
	out := page[T]{Items: []T{}}
	bytes := 0
	for rows.Next() {
		row, seq, size, err := read(rows.Scan)
		if err != nil {
			return page[T]{}, err
		}
		bytes += size
		if n := len(out.Items); n == limit || n > 0 && bytes > pageBytes {
			out.NextCursor = from.String()
			return out, nil
		}
		out.Items = append(out.Items, row)
		from.seq = seq
	}
	return out, rows.Err()
}

// filter narrows list and search. The zero filter lets every record of the namespaces pass.
type filter struct {
	kind, subKind, tag, prefix string
}

func filterOf(p packs.Params) (filter, error) {
	f := filter{kind: p.String("kind"), tag: p.String("tag")}
	for _, s := range []struct{ param, kind string }{{"entity_kind", kindEntity}, {"note_kind", kindNote}} {
		sub := p.String(s.param)
		switch {
		case sub == "":
		case f.kind != "" && f.kind != s.kind:
			return filter{}, &packs.InvalidError{Param: s.param, Message: fmt.Sprintf("goes with kind=%q only", s.kind)}
		default:
			f.kind, f.subKind = s.kind, sub
		}
	}
	return f, nil
}

// apply adds the conditions, the namespaces first, to a query over the table alias r.
func (f filter) apply(q *query, readable []string) {
	q.readable("r.namespace", readable)
	if f.kind != "" {
		q.add(`AND r.kind = ?`, f.kind)
	}
	if f.subKind != "" {
		q.add(`AND r.sub_kind = ?`, f.subKind)
	}
	if f.tag != "" {
		q.add(`AND EXISTS (SELECT 1 FROM kg_tags t WHERE t.record = r.seq AND t.tag = ?)`, f.tag)
	}
	if f.prefix != "" {
		// A range and not LIKE: there are no wildcards to escape, and an index serves it. No UTF-8
		// text holds the byte 0xFF, so what begins with the prefix sorts before it.
		low := strings.ToLower(f.prefix)
		q.add(`AND r.name_fold >= ? AND r.name_fold < CAST(? AS TEXT)`, low, []byte(low+"\xff"))
	}
}

// fingerprint tells apart the queries whose cursors must not be mixed up.
func (f filter) fingerprint(verb string, oldest bool) []string {
	return []string{verb, f.kind, f.subKind, f.tag, f.prefix, fmt.Sprint(oldest)}
}

// limitOf reads limit. The manifest has filled in the default and checked the range for calls that
// came through the pipeline.
func limitOf(p packs.Params, absent, most int) (int, error) {
	if !p.Has("limit") {
		return absent, nil
	}
	n := p.Int("limit")
	if n < 1 || n > int64(most) {
		return 0, &packs.InvalidError{Param: "limit", Message: fmt.Sprintf("must be a whole number from 1 to %d", most)}
	}
	return int(n), nil
}
