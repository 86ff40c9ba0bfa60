package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/verbgate/verbgate/policy"
)

const columns = "id, kind, time, request_id, decision_id, op_index, op_count, source, session_id, actor, namespace, verb, pack, " +
	"decision, effect, reason, code, obligations, outcome, error_code, duration_us, gate, revision, params"

// timeLayout has a fixed width, so that times sort as text.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// insertRecord leaves alone a record that is there already: whoever had no answer, because the time for
// it ran out, sends the batch again, and cannot know that it was written.
var insertRecord = "INSERT INTO records (" + columns + ", topic, event) VALUES (?" + strings.Repeat(", ?", strings.Count(columns, ",")+2) +
	") ON CONFLICT (id) DO NOTHING"

const insertEvent = "INSERT INTO events (topic, event, time, namespace, payload) VALUES (?, ?, ?, ?, ?)"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// probe commits a change that means nothing.
func probe(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE probes SET count = count + 1")
	return err
}

func insert(ctx context.Context, tx *sql.Tx, jobs []*job) error {
	l, err := openLedger(ctx, tx)
	if err != nil {
		return err
	}
	record, err := tx.PrepareContext(ctx, insertRecord)
	if err != nil {
		return err
	}
	defer record.Close()
	for _, j := range jobs {
		for i := range j.batch {
			r := &j.batch[i]
			obligations, params, err := encode(r)
			if err != nil {
				return err
			}
			var topic, cursor any
			if t := l.of(r.Kind); t != nil {
				topic, cursor = t.id, t.next()
			}
			res, err := record.ExecContext(ctx, r.ID, string(r.Kind), formatTime(r.Time), r.RequestID, r.DecisionID, r.Index, r.Count,
				r.Source, r.SessionID, r.Actor, r.Namespace, r.Verb, r.Pack, r.Decision, r.Effect, r.Reason, r.Code, obligations,
				r.Outcome, r.ErrorCode, r.Duration.Microseconds(), r.Gate, r.Revision, params, topic, cursor)
			if err != nil {
				return fmt.Errorf("record %q: %w", r.ID, err)
			}
			if n, err := res.RowsAffected(); err != nil {
				return fmt.Errorf("record %q: %w", r.ID, err)
			} else if n == 0 {
				if t := l.of(r.Kind); t != nil {
					t.unused()
				}
				// SQLite has counted the row that it left out, and retention counts rows by their cursors.
				if _, err := tx.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'records'"); err != nil {
					return err
				}
				continue
			}
			if err := l.emit(ctx, r); err != nil {
				return err
			}
		}
	}
	return l.close(ctx)
}

// encode returns the columns of r that are JSON; params is nil when there are none.
func encode(r *policy.Record) (obligations string, params any, err error) {
	obligations = "[]"
	if len(r.Obligations) > 0 {
		text, err := json.Marshal(r.Obligations)
		if err != nil {
			return "", nil, fmt.Errorf("record %q: obligations: %w", r.ID, err)
		}
		obligations = string(text)
	}
	// A year of more or fewer digits could be written but neither sorted nor read again.
	if year := r.Time.UTC().Year(); year < 0 || year > 9999 {
		return "", nil, fmt.Errorf("record %q: its time is in the year %d", r.ID, year)
	}
	if r.Params != nil {
		if !json.Valid(r.Params) {
			return "", nil, fmt.Errorf("record %q: params are not JSON", r.ID)
		}
		params = string(r.Params)
	}
	return obligations, params, nil
}

// scan reads one row of "cursor, columns".
func scan(rows *sql.Rows) (cursor int64, r policy.Record, err error) {
	var at, obligations string
	var us int64
	var params sql.NullString
	err = rows.Scan(&cursor, &r.ID, &r.Kind, &at, &r.RequestID, &r.DecisionID, &r.Index, &r.Count, &r.Source, &r.SessionID,
		&r.Actor, &r.Namespace, &r.Verb, &r.Pack, &r.Decision, &r.Effect, &r.Reason, &r.Code, &obligations, &r.Outcome,
		&r.ErrorCode, &us, &r.Gate, &r.Revision, &params)
	if err != nil {
		return 0, r, err
	}
	if r.Time, err = time.Parse(timeLayout, at); err != nil {
		return 0, r, fmt.Errorf("record %q: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(obligations), &r.Obligations); err != nil {
		return 0, r, fmt.Errorf("record %q: obligations: %w", r.ID, err)
	}
	r.Duration = time.Duration(us) * time.Microsecond
	if params.Valid {
		r.Params = json.RawMessage(params.String)
	}
	return cursor, r, nil
}
