package audit

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	pruneRows  = 256         // removed in one transaction, at most
	pruneBytes = 1 << 20     // after which a transaction takes no further row
	pruneEvery = time.Minute // looks for what is due
	prunePause = 5 * time.Millisecond
	pruneSlack = 1024 // rows, at most, that wait for the next look
)

// Retention says what is kept. The zero value keeps everything, for evidence is not the store's to throw
// away. Rows go from the oldest on, in the order in which they were stored; one that must stay keeps those
// after it. The file does not shrink; what comes later takes the room.
type Retention struct {
	Age time.Duration // of the time of a record; older ones are removed within about a minute
	// Rows is how many records, and how many events that packs emitted, there may be. Up to a tenth more
	// of them, and at most 1024, wait for the next look, a minute later at most.
	Rows int64
}

// shelf is a table of which the oldest rows are removed.
type shelf struct {
	look, last, floors, remove string
	pruned                     func(*live) *atomic.Int64
}

func newShelf(table, key, size string, pruned func(*live) *atomic.Int64) shelf {
	return shelf{
		look: "SELECT " + key + ", time, " + size + " FROM " + table + " ORDER BY " + key + fmt.Sprintf(" LIMIT %d", pruneRows),
		last: "SELECT coalesce(max(" + key + "), 0) FROM " + table,
		// NOT INDEXED: by key, which is short, and not in the order of topics, which is the whole table.
		floors: "SELECT topic, max(event) FROM " + table + " NOT INDEXED WHERE " + key + " <= ? AND topic IS NOT NULL GROUP BY topic",
		remove: "DELETE FROM " + table + " WHERE " + key + " <= ?",
		pruned: pruned,
	}
}

var shelves = []shelf{
	newShelf("records", "cursor", "octet_length(reason) + coalesce(octet_length(params), 0)", func(l *live) *atomic.Int64 { return &l.prunedRecords }),
	newShelf("events", "seq", "octet_length(payload)", func(l *live) *atomic.Int64 { return &l.prunedEvents }),
}

// retain removes what retention lets go: at the start, once a minute, and when the writer says that there
// may be too many rows. It ends with ctx.
func (l *live) retain(ctx context.Context) {
	failing := false
	for {
		before := l.prunedRecords.Load() + l.prunedEvents.Load()
		err := l.prune(ctx)
		switch n := l.prunedRecords.Load() + l.prunedEvents.Load() - before; {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			l.log.Warn("old audit records could not be removed; it is tried again once a minute", "error", err)
		case n > 0:
			l.log.Info("removed old audit records and events", "rows", n)
		}
		failing = err != nil
		select {
		case <-l.due:
		case <-time.After(pruneEvery):
		case <-ctx.Done():
			return
		}
	}
}

// prune removes all that is due, a few rows at a time.
func (l *live) prune(ctx context.Context) error {
	for i := range shelves {
		for {
			began := time.Now()
			n, err := l.pruneSome(ctx, &shelves[i])
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			shelves[i].pruned(l).Add(n)
			// Other processes do not queue for the write lock, they try again and again: leave it free for
			// at least as long as it was held.
			select {
			case <-time.After(max(prunePause, time.Since(began))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// pruneSome removes the first rows of a shelf that are due and raises the floors of their topics. What
// is due stays so, since rows are only added at one end and taken at the other: so that the looking
// needs no lock.
func (l *live) pruneSome(ctx context.Context, s *shelf) (removed int64, err error) {
	end, err := l.dueUntil(ctx, s)
	if err != nil || end == 0 {
		return 0, err
	}
	err = l.db.Write(ctx, func(tx *sql.Tx) error {
		floors, err := readFloors(ctx, tx, s, end)
		if err != nil {
			return err
		}
		for topic, floor := range floors {
			if _, err := tx.ExecContext(ctx, "UPDATE topics SET floor = max(floor, ?) WHERE id = ?", floor, topic); err != nil {
				return err
			}
		}
		result, err := tx.ExecContext(ctx, s.remove, end)
		if err == nil {
			removed, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old rows: %w", err)
	}
	return removed, nil
}

// dueUntil is the key of the last row that one transaction shall remove, or 0.
func (l *live) dueUntil(ctx context.Context, s *shelf) (end int64, err error) {
	oldest := ""
	if l.keep.Age > 0 {
		oldest = formatTime(time.Now().Add(-l.keep.Age))
	}
	err = l.db.Read(ctx, func(tx *sql.Tx) error {
		tooMany := int64(0) // keys rise without gaps
		if l.keep.Rows > 0 {
			if err := tx.QueryRowContext(ctx, s.last).Scan(&tooMany); err != nil {
				return err
			}
			tooMany -= l.keep.Rows
		}
		rows, err := tx.QueryContext(ctx, s.look)
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := int64(0); size <= pruneBytes && rows.Next(); {
			var key, bytes int64
			var at string
			if err := rows.Scan(&key, &at, &bytes); err != nil {
				return err
			}
			if key > tooMany && at >= oldest {
				break
			}
			end, size = key, size+bytes
		}
		return rows.Err()
	})
	if err != nil {
		return 0, fmt.Errorf("look for old rows: %w", err)
	}
	return end, nil
}

func readFloors(ctx context.Context, tx *sql.Tx, s *shelf, end int64) (map[int64]int64, error) {
	rows, err := tx.QueryContext(ctx, s.floors, end)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	floors := map[int64]int64{}
	for rows.Next() {
		var topic, floor int64
		if err := rows.Scan(&topic, &floor); err != nil {
			return nil, err
		}
		floors[topic] = floor
	}
	return floors, rows.Err()
}

// grown tells the remover when enough was stored that there may be too much. Only the writer calls it.
func (l *live) grown(rows int64) {
	if l.keep.Rows == 0 {
		return
	}
	if l.fresh += rows; l.fresh < min(pruneSlack, max(1, l.keep.Rows/10)) {
		return
	}
	l.fresh = 0
	select {
	case l.due <- struct{}{}:
	default: // it will look anyway
	}
}
