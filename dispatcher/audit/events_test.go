package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

// all reads a topic from after to its end, a few events at a time, and holds it to be without gaps.
func all(t testing.TB, store *audit.Store, topic string, after uint64) (events []audit.Event) {
	t.Helper()
	for {
		page, err := store.Events(t.Context(), topic, after, 7)
		require.NoError(t, err)
		if len(page) == 0 {
			return events
		}
		for _, e := range page {
			after++
			require.Equal(t, after, e.Cursor)
			require.Equal(t, topic, e.Topic)
		}
		events = append(events, page...)
	}
}

func requireBounds(t testing.TB, store *audit.Store, topic string, floor, head uint64) {
	t.Helper()
	f, h, err := store.Bounds(t.Context(), topic)
	require.NoError(t, err)
	require.Equal(t, [2]uint64{floor, head}, [2]uint64{f, h}, topic)
}

// emitting returns records that carry what a pack emitted.
func emitting(from, to int, topics ...string) []policy.Record {
	batch := records(from, to)
	for i := range batch {
		for k, topic := range topics {
			batch[i].Events = append(batch[i].Events, policy.Event{Topic: topic, Payload: json.RawMessage(fmt.Sprintf(`{"id":"%s","n":%d}`, batch[i].ID, k))})
		}
	}
	return batch
}

func TestTopics(t *testing.T) {
	store, path := open(t)
	batch := records(0, 7)
	want := map[string][]int{}
	for i, c := range []struct {
		kind  policy.RecordKind
		topic string
	}{
		{policy.KindDecision, "audit.decision"}, {policy.KindRefusal, "audit.refusal"}, {policy.KindOutcome, "audit.decision"},
		{policy.KindGateActivation, "gate.activation"}, {policy.KindPlan, "audit.decision"}, {policy.KindGateOutage, "gate.outage"},
		{policy.KindLateDecision, "gate.late_decision"},
	} {
		batch[i].Kind, batch[i].Namespace = c.kind, fmt.Sprintf("ns-%d", i)
		want[c.topic] = append(want[c.topic], i)
	}
	stranger := record(100)
	stranger.Kind = "of no topic"
	require.NoError(t, store.Append(t.Context(), append(batch[:4:4], stranger)))
	require.NoError(t, store.Append(t.Context(), batch[4:]))
	check := func(store *audit.Store) {
		for topic, records := range want {
			requireBounds(t, store, topic, 0, uint64(len(records)))
			events := all(t, store, topic, 0)
			require.Len(t, events, len(records), topic)
			for k, i := range records {
				require.Equal(t, batch[i].Namespace, events[k].Namespace)
				require.Equal(t, batch[i].Time, events[k].Time)
				text, err := batch[i].MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, strings.TrimSpace(string(text)), string(events[k].Payload))
			}
		}
	}
	check(store)
	require.NoError(t, store.Close())
	store = openAt(t, path)
	check(store)
	require.NoError(t, store.Append(t.Context(), records(200, 201)))
	requireBounds(t, store, "audit.decision", 0, 4)
	require.Equal(t, "id-200", recordOf(t, all(t, store, "audit.decision", 3)[0]).ID, "cursors go on after a restart")
}

func recordOf(t testing.TB, e audit.Event) (r policy.Record) {
	t.Helper()
	require.NoError(t, json.Unmarshal(e.Payload, &r))
	return r
}

func TestPackEvents(t *testing.T) {
	store, path := open(t)
	batch := emitting(0, 3, "kg.created", "kg.linked", "kg.created")
	batch[1].Events = nil
	batch[2].Namespace = "other"
	require.NoError(t, store.Append(t.Context(), batch))
	require.NoError(t, store.Append(t.Context(), emitting(3, 4, "kg.linked", "memory.forgotten")))
	check := func(store *audit.Store) {
		for topic, want := range map[string][]string{
			"kg.created":       {`{"id":"id-0","n":0}`, `{"id":"id-0","n":2}`, `{"id":"id-2","n":0}`, `{"id":"id-2","n":2}`},
			"kg.linked":        {`{"id":"id-0","n":1}`, `{"id":"id-2","n":1}`, `{"id":"id-3","n":0}`},
			"memory.forgotten": {`{"id":"id-3","n":1}`},
		} {
			requireBounds(t, store, topic, 0, uint64(len(want)))
			got := []string{}
			for _, e := range all(t, store, topic, 0) {
				got = append(got, string(e.Payload))
				n := parse(t, strings.Split(string(e.Payload), `"`)[3])
				require.Equal(t, record(n).Time, e.Time, "the record's")
				require.Equal(t, []string{"local", "", "other", "local"}[n], e.Namespace, "the record's")
			}
			require.Equal(t, want, got)
		}
	}
	check(store)
	require.EqualValues(t, 8, store.Stats().Events)
	require.Len(t, all(t, store, "audit.decision", 0), 4)
	require.NotContains(t, string(all(t, store, "audit.decision", 0)[0].Payload), "kg.created", "a record does not repeat them")
	require.NoError(t, store.Close())
	check(openAt(t, path))
}

// What cannot be stored takes its batch with it and uses no cursor up.
func TestBadEvents(t *testing.T) {
	store, _ := open(t)
	for name, e := range map[string]policy.Event{
		"half JSON":            {Topic: "kg.created", Payload: json.RawMessage(`{"a"`)},
		"nothing":              {Topic: "kg.created"},
		"too long":             {Topic: "kg.created", Payload: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)},
		"no topic":             {Payload: json.RawMessage(`{}`)},
		"a topic of the store": {Topic: "audit.decision", Payload: json.RawMessage(`{"forged":true}`)},
	} {
		batch := emitting(0, 3, "kg.created")
		batch[2].Events = append(batch[2].Events, e)
		require.Error(t, store.Append(t.Context(), batch), name)
	}
	require.Empty(t, read(t, store, audit.Filter{}))
	requireBounds(t, store, "kg.created", 0, 0)
	requireBounds(t, store, "audit.decision", 0, 0)
	batch := emitting(0, 1, "kg.created")
	batch[0].Events[0].Payload = json.RawMessage(`"` + strings.Repeat("x", 64<<10-2) + `"`)
	require.NoError(t, store.Append(t.Context(), batch))
	require.Equal(t, batch[0].Events[0].Payload, all(t, store, "kg.created", 0)[0].Payload)
}

func TestPages(t *testing.T) {
	store, _ := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 3000)))
	page := func(topic string, after uint64, limit int) (cursors []uint64) {
		events, err := store.Events(t.Context(), topic, after, limit)
		require.NoError(t, err)
		for _, e := range events {
			cursors = append(cursors, e.Cursor)
		}
		return cursors
	}
	require.Equal(t, []uint64{1, 2, 3}, page("audit.decision", 0, 3))
	require.Equal(t, []uint64{2999, 3000}, page("audit.decision", 2998, 3))
	require.Len(t, page("audit.decision", 0, math.MaxInt), 1024, "a page has an end")
	for _, after := range []uint64{3000, 3001, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		require.Empty(t, page("audit.decision", after, 10), after)
	}
	require.Empty(t, page("no.topic", 0, 10))
	require.Empty(t, page("no.topic", 7, 10))
	requireBounds(t, store, "no.topic", 0, 0)
	requireBounds(t, store, "gate.outage", 0, 0)
	for _, limit := range []int{0, -1} {
		_, err := store.Events(t.Context(), "audit.decision", 0, limit)
		require.ErrorContains(t, err, "must be positive")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := store.Events(ctx, "audit.decision", 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = store.Bounds(ctx, "audit.decision")
	require.ErrorIs(t, err, context.Canceled)
}

// Whatever is stored, a page stays small and every event comes.
func TestPagesAreBounded(t *testing.T) {
	store, _ := open(t)
	const n = 100
	batch := emitting(0, n, "kg.created")
	for i := range batch {
		batch[i].Params = json.RawMessage(`{"text":"` + strings.Repeat("p", 200<<10) + `"}`)
		batch[i].Events[0].Payload = json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	}
	require.NoError(t, store.Append(t.Context(), batch))
	for _, topic := range []string{"audit.decision", "kg.created"} {
		after := uint64(0)
		for after < n {
			page, err := store.Events(t.Context(), topic, after, n)
			require.NoError(t, err)
			size := 0
			for _, e := range page {
				size += len(e.Payload)
				after++
				require.Equal(t, after, e.Cursor)
			}
			require.NotZero(t, size)
			require.Less(t, size, 2<<20)
		}
	}
}

// A record that is too long for an event is told in part, and says so.
func TestLongRecordsAreToldInPart(t *testing.T) {
	store, _ := open(t)
	long := func(n int) string { return strings.Repeat("é", n/2) }
	batch := records(0, 5)
	batch[0].Params = json.RawMessage(`{"text":"` + long(200<<10) + `"}`)
	batch[1].Params = json.RawMessage(`{"text":"` + long(300<<10) + `"}`)
	batch[2].Reason = long(300 << 10)
	batch[3].Obligations = []string{long(1 << 20)}
	batch[4].Params = json.RawMessage("{\"bytes\":\"a\xffb\"}")
	require.NoError(t, store.Append(t.Context(), batch))
	events := all(t, store, "audit.decision", 0)
	require.Equal(t, batch[0], recordOf(t, events[0]), "whole")

	require.JSONEq(t, `{"$withheld":"too long for an event"}`, string(recordOf(t, events[1]).Params))
	rest := recordOf(t, events[1])
	rest.Params = batch[1].Params
	require.Equal(t, batch[1], rest, "all but the params")
	for i := 2; i < 4; i++ {
		require.Less(t, len(events[i].Payload), 1024)
		told := recordOf(t, events[i])
		require.Contains(t, told.Reason, "read it from the store by its id")
		require.Equal(t, []any{batch[i].ID, batch[i].Kind, batch[i].Time, "allow", "allowed", "success"},
			[]any{told.ID, told.Kind, told.Time, told.Decision, told.Effect, told.Outcome})
		require.Equal(t, "local", events[i].Namespace)
	}
	require.Contains(t, string(events[4].Payload), "a\ufffdb", "events are UTF-8")
	require.Equal(t, batch, read(t, store, audit.Filter{}), "the store has them whole")
}

func TestEventsOfAStoreThatIsNotOpen(t *testing.T) {
	store, err := audit.New(audit.Config{Path: filepath.Join(t.TempDir(), "audit.db")})
	require.NoError(t, err)
	check := func(want error) {
		_, err := store.Events(t.Context(), "audit.decision", 0, 1)
		require.ErrorIs(t, err, want)
		_, _, err = store.Bounds(t.Context(), "audit.decision")
		require.ErrorIs(t, err, want)
		<-store.Changed()
	}
	check(audit.ErrNotOpen)
	require.NoError(t, store.Open(t.Context()))
	waiting := store.Changed()
	require.NoError(t, store.Close())
	<-waiting
	check(audit.ErrClosed)
}
