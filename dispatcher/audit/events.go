package audit

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/verbgate/verbgate/policy"
)

const (
	pageEvents = 1024      // at most, of one call of Events
	pageBytes  = 1 << 20   // of payloads after which a page ends
	maxTold    = 256 << 10 // bytes of a record that is told whole
)

// Event is something a follower of a topic is told (session.md).
type Event struct {
	Topic     string
	Cursor    uint64 // rises by one from event to event of the topic, beginning with 1
	Time      time.Time
	Namespace string // whoever cannot read it must not be told; "" is nobody's
	// Payload is an audit record in the store's own topics, as policy.Record shows it, and whatever was
	// emitted in those of packs. Of a record of more than 256 KiB the params are left out, and if that
	// is not enough, all the callers and policies could make long; what is missing is said. The store has
	// it whole.
	Payload json.RawMessage
}

// ExpiredError says that retention has removed events that come after the cursor.
type ExpiredError struct {
	Topic string
	After uint64 // the cursor that was asked for
	Floor uint64 // the lowest from which nothing is missing
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("events of %s after cursor %d were removed by retention; they are complete after cursor %d", e.Topic, e.After, e.Floor)
}

// Bounds tells where a topic's events begin and end: whoever resumes after a cursor of at least floor
// loses nothing, and head is the cursor of the last event there ever was. Both are 0 for a topic that
// never had an event; what topics there can be is not the store's to know.
func (s *Store) Bounds(ctx context.Context, topic string) (floor, head uint64, err error) {
	l := s.live.Load()
	if l == nil {
		return 0, 0, s.absence()
	}
	err = l.db.Read(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT floor, head FROM topics WHERE name = ?", topic).Scan(&floor, &head)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read the bounds of %s: %w", topic, err)
	}
	return floor, head, nil
}

// Events returns the topic's events with a cursor greater than after, in order and without a gap: at
// most limit of them, and no more once their payloads together exceed 1 MiB, so that a page takes less
// than 2 MiB. Only an empty page says that there are no more. When retention has removed some of them the
// error is an *ExpiredError.
func (s *Store) Events(ctx context.Context, topic string, after uint64, limit int) ([]Event, error) {
	l := s.live.Load()
	switch {
	case l == nil:
		return nil, s.absence()
	case limit < 1:
		return nil, fmt.Errorf("read events of %s: the limit is %d, it must be positive", topic, limit)
	case after > math.MaxInt64:
		return nil, nil // no cursor will ever be greater
	}
	var page []Event
	err := l.db.Read(ctx, func(tx *sql.Tx) error {
		var id int64
		var floor uint64
		err := tx.QueryRowContext(ctx, "SELECT id, floor FROM topics WHERE name = ?", topic).Scan(&id, &floor)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		case after < floor:
			return &ExpiredError{Topic: topic, After: after, Floor: floor}
		}
		query, read := "SELECT event, time, namespace, payload FROM events", scanEvent
		if isOwn(id) {
			query, read = "SELECT event, "+columns+" FROM records", scanTold
		}
		rows, err := tx.QueryContext(ctx, query+" WHERE topic = ? AND event > ? ORDER BY event LIMIT ?", id, int64(after), min(limit, pageEvents))
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size <= pageBytes && rows.Next(); {
			e, err := read(rows)
			if err != nil {
				return err
			}
			e.Topic = topic
			size += len(e.Payload)
			page = append(page, e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", topic, err)
	}
	return page, nil
}

func scanEvent(rows *sql.Rows) (e Event, err error) {
	var at string
	if err := rows.Scan(&e.Cursor, &at, &e.Namespace, (*[]byte)(&e.Payload)); err != nil {
		return e, err
	}
	e.Time, err = time.Parse(timeLayout, at)
	return e, err
}

func scanTold(rows *sql.Rows) (Event, error) {
	cursor, r, err := scan(rows)
	if err != nil {
		return Event{}, err
	}
	payload, err := told(r)
	return Event{Cursor: uint64(cursor), Time: r.Time, Namespace: r.Namespace, Payload: payload}, err
}

// told is the payload of a record.
func told(r policy.Record) (json.RawMessage, error) {
	payload, err := encodeRecord(r)
	if err == nil && len(payload) > maxTold {
		r.Params = json.RawMessage(`{"$withheld":"too long for an event"}`)
		payload, err = encodeRecord(r)
	}
	if err == nil && len(payload) > maxTold {
		payload, err = encodeRecord(policy.Record{
			ID: r.ID, Kind: r.Kind, Time: r.Time, Index: r.Index, Count: r.Count, Decision: r.Decision, Effect: r.Effect, Outcome: r.Outcome,
			Duration: r.Duration, Params: r.Params, Reason: "the record is too long for an event; read it from the store by its id",
		})
	}
	return payload, err
}

func encodeRecord(r policy.Record) ([]byte, error) {
	text, err := r.MarshalJSON()
	text = bytes.TrimSuffix(text, []byte("\n"))
	if !utf8.Valid(text) { // params are kept as they came
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	return text, err
}
