package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// pageRows is how many records are in memory at once while reading.
const pageRows = 256

// Filter says which records to read. Zero fields do not restrict; the others all must hold.
type Filter struct {
	After  string    // the id of a record: only those stored after it
	Since  time.Time // at or after
	Until  time.Time // before
	Limit  int       // at most so many
	Newest bool      // the last Limit ones in place of the first; needs Limit. The order stays the cursor's.

	Kind       policy.RecordKind
	RequestID  string
	DecisionID string
	SessionID  string
	Actor      string // kind:id
	Namespace  string
	Verb       string
	Pack       string
	Decision   string
	Effect     string
	Outcome    string
	ErrorCode  string
}

// where returns the condition, beside the cursor's bounds, and its arguments. The plus keeps SQLite
// from reading a time range in the order of time, which it would have to sort again for every page.
func (f *Filter) where() (string, []any) {
	conditions, args := []string{"TRUE"}, []any{}
	add := func(condition string, value string, set bool) {
		if set {
			conditions = append(conditions, condition)
			args = append(args, value)
		}
	}
	for _, c := range []struct{ column, value string }{
		{"kind", string(f.Kind)}, {"request_id", f.RequestID}, {"decision_id", f.DecisionID}, {"session_id", f.SessionID},
		{"actor", f.Actor}, {"namespace", f.Namespace}, {"verb", f.Verb}, {"pack", f.Pack}, {"decision", f.Decision},
		{"effect", f.Effect}, {"outcome", f.Outcome}, {"error_code", f.ErrorCode},
	} {
		add(c.column+" = ?", c.value, c.value != "")
	}
	if f.DecisionID != "" {
		conditions = append(conditions, "decision_id <> ''") // so that the partial index is taken
	}
	add("+time >= ?", formatTime(f.Since), !f.Since.IsZero())
	add("+time < ?", formatTime(f.Until), !f.Until.IsZero())
	return strings.Join(conditions, " AND "), args
}

// Records reads the records that pass f, in the order they were stored, as they were when the
// reading began, but for what retention removes meanwhile. They are read in pages, so the loop may take
// its time, and come without what packs emitted, which Events tells. An error ends the sequence; an After
// that no record has is a *packs.NotFoundError.
func (s *Store) Records(ctx context.Context, f Filter) iter.Seq2[policy.Record, error] {
	return func(yield func(policy.Record, error) bool) {
		l := s.live.Load()
		if l == nil {
			yield(policy.Record{}, s.absence())
			return
		}
		if err := l.read(ctx, f, func(r policy.Record) bool { return yield(r, nil) }); err != nil {
			yield(policy.Record{}, fmt.Errorf("read audit records: %w", err))
		}
	}
}

func (l *live) read(ctx context.Context, f Filter, yield func(policy.Record) bool) error {
	if f.Limit < 0 || f.Newest && f.Limit == 0 {
		return errors.New("a limit must be positive, and the newest records need one")
	}
	after, last, err := l.bounds(ctx, f)
	for left := f.Limit; err == nil && after < last; {
		size := pageRows
		if f.Limit > 0 {
			size = min(size, left)
		}
		var page []policy.Record
		if page, after, err = l.page(ctx, f, after, last, size); err != nil {
			return err
		}
		for _, r := range page {
			if !yield(r) {
				return nil
			}
		}
		if left -= len(page); len(page) < size || left == 0 {
			return nil
		}
	}
	return err
}

// bounds turns f's range into cursors: the records to look at are in (after, last].
func (l *live) bounds(ctx context.Context, f Filter) (after, last int64, err error) {
	where, args := f.where()
	err = l.db.Read(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(cursor), 0) FROM records").Scan(&last); err != nil {
			return err
		}
		if f.After != "" {
			err := tx.QueryRowContext(ctx, "SELECT cursor FROM records WHERE id = ?", f.After).Scan(&after)
			if errors.Is(err, sql.ErrNoRows) {
				return &packs.NotFoundError{Kind: "audit record", ID: f.After}
			}
			if err != nil {
				return err
			}
		}
		if !f.Since.IsZero() || !f.Until.IsZero() {
			until := "9999-12-31T23:59:59.999999999Z"
			if !f.Until.IsZero() {
				until = formatTime(f.Until)
			}
			// Answered from the index on time alone.
			var first, final int64
			err := tx.QueryRowContext(ctx, "SELECT coalesce(min(cursor), 0), coalesce(max(cursor), 0) FROM records WHERE time >= ? AND time < ?",
				formatTime(f.Since), until).Scan(&first, &final)
			if err != nil {
				return err
			}
			after, last = max(after, first-1), min(last, final)
		}
		if f.Newest {
			err := tx.QueryRowContext(ctx, "SELECT cursor - 1 FROM records WHERE cursor > ? AND cursor <= ? AND "+where+
				" ORDER BY cursor DESC LIMIT 1 OFFSET ?", append(append([]any{after, last}, args...), f.Limit-1)...).Scan(&after)
			if err != nil && !errors.Is(err, sql.ErrNoRows) { // fewer than Limit: all of them
				return err
			}
		}
		return nil
	})
	return after, last, err
}

func (l *live) page(ctx context.Context, f Filter, after, last int64, size int) (page []policy.Record, end int64, err error) {
	where, args := f.where()
	err = l.db.Read(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT cursor, "+columns+" FROM records WHERE cursor > ? AND cursor <= ? AND "+where+
			" ORDER BY cursor LIMIT ?", append(append([]any{after, last}, args...), size)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			cursor, r, err := scan(rows)
			if err != nil {
				return err
			}
			page, end = append(page, r), cursor
		}
		return rows.Err()
	})
	return page, end, err
}
