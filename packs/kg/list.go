package kg

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
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
	f := &fields{from: call.Params}
	only := f.filter()
	if prefix, how := f.text("name_prefix", maxName); how == given {
		only.prefix = *prefix
	}
	oldest := f.choice("order", "newest", "oldest") == "oldest"
	limit := f.limit(listLimit, listMost)
	if f.err != nil {
		return nil, f.err
	}
	return packs.Within(ctx, g.store.Read, func(tx *sql.Tx) (page[*record], error) {
		from, err := beginning(ctx, tx)
		if err != nil {
			return page[*record]{}, err
		}
		from = f.start(from, call.Verb, only.kind, only.subKind, only.tag, only.prefix, fmt.Sprint(oldest))
		if f.err != nil {
			return page[*record]{}, f.err
		}
		q := listing(call.Token.Readable(), only, from, oldest, limit+1)
		return turn(ctx, tx, q, from, limit, func(scan func(...any) error) (*record, int64, int, error) {
			r, err := scanRecord(scan)
			if err != nil {
				return nil, 0, 0, err
			}
			return r, r.seq, r.size(), nil
		})
	})
}

// listing is the query for the next rows of a list.
func listing(readable []string, only filter, from cursor, oldest bool, rows int) *query {
	// Each namespace gives its first rows in the order of an index and stops; one condition over several
	// namespaces would read all their rows to sort them.
	q := &query{}
	q.add(`SELECT ` + recordColumns + ` FROM kg_records r WHERE r.seq IN (`)
	for i, namespaces := range groups(readable) {
		if i > 0 {
			q.add(`UNION ALL`)
		}
		q.add(`SELECT seq FROM (SELECT r.seq FROM kg_records r WHERE true`)
		q.readable("r.namespace", namespaces)
		only.apply(q)
		from.apply(q, "r.seq", oldest)
		q.add(`LIMIT ?)`, rows)
	}
	q.add(`)`)
	from.apply(q, "r.seq", oldest)
	q.add(`LIMIT ?`, rows)
	return q
}

// maxGroups keeps a listing below what SQLite allows one statement to be made of.
const maxGroups = 64

// groups are the namespaces to list one by one, or all in one when they are very many.
func groups(namespaces []string) [][]string {
	if len(namespaces) > maxGroups {
		return [][]string{namespaces}
	}
	return slices.Collect(slices.Chunk(namespaces, 1))
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

// filter reads the filters that list and search have. One that is there but says nothing is refused:
// it must not pass for no filter at all.
func (f *fields) filter() filter {
	only := filter{kind: f.choice("kind", "", kindEntity, kindNote)}
	if tag, how := f.spoken("tag", maxTag); how == given {
		only.tag = *tag
	}
	for _, s := range []struct{ param, kind string }{{"entity_kind", kindEntity}, {"note_kind", kindNote}} {
		label, how := f.label(s.param)
		switch {
		case how != given:
		case only.kind != "" && only.kind != s.kind:
			f.fail(s.param, "is a filter for records of the kind %s; the call asks for another kind", s.kind)
		default:
			only.kind, only.subKind = s.kind, *label
		}
	}
	return only
}

// apply adds the conditions, but for the namespaces, to a query over the table alias r.
func (f filter) apply(q *query) {
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
		q.add(`AND r.name_fold >= ? AND r.name_fold < ?`, low, low+"\xff")
	}
}

// limit reads how many rows to show at most.
func (f *fields) limit(preset, most int) int {
	v, how := f.value("limit")
	if how != given {
		return preset
	}
	n, ok := v.(json.Number)
	i, err := n.Int64()
	if !ok || err != nil || i < 1 || i > int64(most) {
		f.fail("limit", "must be a whole number from 1 to %d", most)
		return preset
	}
	return int(i)
}
