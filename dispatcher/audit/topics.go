package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/verbgate/verbgate/policy"
)

// maxPayload bounds what a pack may tell in one event, in bytes. It is what packs.Call.Emit allows.
const maxPayload = 64 << 10

// topicOf is the store's own topics (session.md). A plan asks the gate what it would say, so whoever
// watches decisions sees it there; its kind tells.
func topicOf(kind policy.RecordKind) (topic string, ok bool) {
	switch kind {
	case policy.KindDecision, policy.KindOutcome, policy.KindPlan:
		return "audit.decision", true
	case policy.KindRefusal:
		return "audit.refusal", true
	case policy.KindGateActivation:
		return "gate.activation", true
	case policy.KindGateOutage:
		return "gate.outage", true
	case policy.KindLateDecision:
		return "gate.late_decision", true
	}
	return "", false
}

// isOwn reports whether a topic's events are records. The rows of the store's own topics were made first.
func isOwn(topic int64) bool { return topic <= lastOwnTopic }

const lastOwnTopic = 5

// ledger hands out cursors inside a write transaction. A topic's head is read and raised under the
// file's one write lock, which the transaction took when it began and keeps until it has committed: so
// whoever sees a cursor sees all the lower ones, whichever process wrote them, and a transaction that
// fails has used none up.
type ledger struct {
	tx     *sql.Tx
	topics map[string]*ledgerTopic
	insert *sql.Stmt // of an event; nil before the first
}

type ledgerTopic struct {
	id, head int64
	raised   bool
}

func openLedger(ctx context.Context, tx *sql.Tx) (*ledger, error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, id, head FROM topics")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	l := &ledger{tx: tx, topics: map[string]*ledgerTopic{}}
	for rows.Next() {
		var name string
		t := &ledgerTopic{}
		if err := rows.Scan(&name, &t.id, &t.head); err != nil {
			return nil, err
		}
		l.topics[name] = t
	}
	return l, rows.Err()
}

// next is the next cursor of a topic that is there.
func (t *ledgerTopic) next() int64 {
	t.head++
	t.raised = true
	return t.head
}

// unused takes back the cursor that next gave last.
func (t *ledgerTopic) unused() { t.head-- }

// of is the topic of a kind of records, or nil.
func (l *ledger) of(kind policy.RecordKind) *ledgerTopic {
	name, ok := topicOf(kind)
	if !ok {
		return nil
	}
	return l.topics[name]
}

// named returns a topic, made if it is new.
func (l *ledger) named(ctx context.Context, name string) (*ledgerTopic, error) {
	if t := l.topics[name]; t != nil {
		return t, nil
	}
	result, err := l.tx.ExecContext(ctx, "INSERT INTO topics (name) VALUES (?)", name)
	if err != nil {
		return nil, err
	}
	t := &ledgerTopic{}
	if t.id, err = result.LastInsertId(); err != nil {
		return nil, err
	}
	l.topics[name] = t
	return t, nil
}

// close writes the heads back.
func (l *ledger) close(ctx context.Context) error {
	for _, t := range l.topics {
		if !t.raised {
			continue
		}
		if _, err := l.tx.ExecContext(ctx, "UPDATE topics SET head = ? WHERE id = ?", t.head, t.id); err != nil {
			return err
		}
	}
	return nil
}

// emit stores what packs told with the record.
func (l *ledger) emit(ctx context.Context, r *policy.Record) (err error) {
	if l.insert == nil && len(r.Events) > 0 {
		if l.insert, err = l.tx.PrepareContext(ctx, insertEvent); err != nil { // ends with the transaction
			return err
		}
	}
	for _, e := range r.Events {
		if len(e.Payload) > maxPayload || !json.Valid(e.Payload) {
			return fmt.Errorf("record %q: the payload of an event of %s is not JSON, or longer than %d bytes", r.ID, e.Topic, maxPayload)
		}
		t, err := l.named(ctx, e.Topic)
		if err != nil {
			return err
		}
		if isOwn(t.id) || e.Topic == "" {
			return fmt.Errorf("record %q: %q is no topic that a pack can tell of", r.ID, e.Topic)
		}
		if _, err := l.insert.ExecContext(ctx, t.id, t.next(), formatTime(r.Time), r.Namespace, string(e.Payload)); err != nil {
			return err
		}
	}
	return nil
}
