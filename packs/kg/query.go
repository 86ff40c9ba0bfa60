package kg

import (
	"context"
	"database/sql"
	"strings"
)

// query is SQL being put together. The fragments are constants of this package; whatever a caller sent
// is in args.
type query struct {
	sql  strings.Builder
	args []any
}

func (q *query) add(fragment string, args ...any) {
	q.sql.WriteString(fragment)
	q.sql.WriteByte(' ')
	q.args = append(q.args, args...)
}

// readable adds the condition that the column is one of the namespaces. None at all is no row. A plus
// before the column keeps SQLite from going by the index of the namespaces, where another leads to
// far fewer rows.
func (q *query) readable(column string, namespaces []string) {
	if len(namespaces) == 1 {
		// The usual case, in the form that can use an index in order.
		q.add("AND "+column+" = ?", namespaces[0])
		return
	}
	q.add("AND " + column + " IN (")
	for i, n := range namespaces {
		if i > 0 {
			q.add(",")
		}
		q.add("?", n)
	}
	q.add(")")
}

// collect runs the query and reads every row.
func collect[T any](ctx context.Context, tx *sql.Tx, q *query, read func(scan func(...any) error) (T, error)) ([]T, error) {
	rows, err := tx.QueryContext(ctx, q.sql.String(), q.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
