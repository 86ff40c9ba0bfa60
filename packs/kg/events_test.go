package kg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

// told is packs.Call.Emit of the tests: it keeps what the handlers emit, as "topic payload".
type told struct {
	mu     sync.Mutex
	events []string
	before func() // called first, if there is one
	err    error  // the answer
}

func (e *told) emit(topic string, payload any) error {
	if e.before != nil {
		e.before()
	}
	text, err := json.Marshal(payload)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, topic+" "+string(text))
	return errors.Join(err, e.err)
}

// take returns what was emitted since the last take.
func (e *told) take() (events []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	events, e.events = e.events, nil
	return events
}

func TestEvents(t *testing.T) {
	w := open(t)
	me := in("a")
	const secret = "nobody who only follows may read this"
	entity := func(name string) string {
		return w.entity(me, name, object{"description": secret, "tags": list("hidden"), "properties": object{"p": secret}})
	}
	one := entity("one")
	require.Equal(t, []string{fmt.Sprintf(`kg.created {"id":%q,"kind":"entity"}`, one)}, w.told.take())
	two, note := entity("two"), w.note(me, secret)
	require.Equal(t, fmt.Sprintf(`kg.created {"id":%q,"kind":"note"}`, note), w.told.take()[1])

	// A prefix is told as the id it stood for.
	w.must(me, "update", object{"id": note[:13], "content": secret + "!"})
	require.Equal(t, []string{fmt.Sprintf(`kg.updated {"id":%q,"kind":"note"}`, note)}, w.told.take())

	link := object{"source_id": one, "target_id": note[:13], "relation": "cites", "weight": number(2), "properties": object{"p": secret}}
	edge := w.must(me, "link", link)["id"].(string)
	require.Equal(t, []string{fmt.Sprintf(`kg.linked {"id":%q,"source_id":%q,"target_id":%q,"relation":"cites"}`, edge, one, note)}, w.told.take())
	w.must(me, "link", link)
	require.Empty(t, w.told.take(), "nothing happened")

	w.must(me, "link", object{"source_id": two, "target_id": one, "relation": "cites"})
	w.told.take()
	w.must(me, "merge_entity", object{"into_id": two, "from_id": one})
	require.Equal(t, []string{fmt.Sprintf(`kg.merged {"id":%q,"kind":"entity","merged_id":%q,"edges_moved":1,"edges_dropped":1}`, two, one)}, w.told.take())
	other := w.note(me, "other")
	w.told.take()
	w.must(me, "merge_note", object{"into_id": other, "from_id": note})
	require.Equal(t, []string{fmt.Sprintf(`kg.merged {"id":%q,"kind":"note","merged_id":%q,"edges_moved":1,"edges_dropped":0}`, other, note)}, w.told.take())

	w.must(me, "delete", object{"id": edge})
	require.Equal(t, []string{fmt.Sprintf(`kg.deleted {"id":%q,"kind":"edge","edges_deleted":0}`, edge)}, w.told.take())
	w.must(me, "link", object{"source_id": two, "target_id": other, "relation": "r"})
	w.told.take()
	w.must(me, "delete", object{"id": two[:8]})
	require.Equal(t, []string{fmt.Sprintf(`kg.deleted {"id":%q,"kind":"entity","edges_deleted":1}`, two)}, w.told.take())

	for verb, params := range map[string]object{"get": {"id": other}, "list": {}, "search": {"query": "other"}, "neighbors": {"id": other}, "stats": {}} {
		w.must(me, verb, params)
		require.Empty(t, w.told.take(), verb)
	}
	_, err := w.call(me, "delete", object{"id": two})
	require.Error(t, err)
	require.Empty(t, w.told.take(), "a call that failed")
}

// A create of many is one event, which says how many and names the first hundred.
func TestEventOfMany(t *testing.T) {
	w := open(t)
	for _, n := range []int{1, 100, 101, 1000} {
		items := make([]any, n)
		for i := range items {
			items[i] = object{"kind": "note", "content": "x"}
		}
		all := w.must(in("a"), "create", object{"items": items})["ids"].([]any)
		events := w.told.take()
		require.Len(t, events, 1)
		payload, of := strings.CutPrefix(events[0], "kg.created ")
		require.True(t, of)
		require.Less(t, len(payload), 5<<10)
		require.Equal(t, object{"count": number(n), "ids": all[:min(n, 100)]}, args(t, payload))
	}
}

// What is told is in the store already, and topics are declared.
func TestEventsComeAfterTheCommit(t *testing.T) {
	w := open(t)
	me := in("a")
	seen := 0
	w.told.before = func() { seen = w.rows("kg_records")*10 + w.rows("kg_edges") } // in another transaction
	topics := []string{}
	step := func(want int, verb string, params object) string {
		seen = -1
		id, _ := w.must(me, verb, params)["id"].(string)
		require.Equal(t, want, seen, verb)
		topic, _, _ := strings.Cut(w.told.take()[0], " ")
		topics = append(topics, topic)
		return id
	}
	one := step(10, "create", object{"kind": "note", "content": "1"})
	two := step(20, "create", object{"kind": "note", "content": "2"})
	step(30, "create", object{"items": list(object{"kind": "note", "content": "3"})})
	step(31, "link", object{"source_id": one, "target_id": two, "relation": "r"})
	step(31, "update", object{"id": one, "content": "x"})
	step(20, "merge_note", object{"into_id": one, "from_id": two})
	step(10, "delete", object{"id": one})
	slices.Sort(topics)
	require.ElementsMatch(t, w.manifest.Topics, slices.Compact(topics), "all that are declared, and no other")
}

// A mistake in what is emitted does not pass in silence.
func TestEmitFails(t *testing.T) {
	w := open(t)
	one, two := w.note(in("a"), "1"), w.note(in("a"), "2")
	w.told.err = errors.New("no such topic")
	calls := everyVerb(one, two)
	for _, verb := range []string{"create", "update", "link", "merge_note", "delete"} {
		_, err := w.handlers[verb](context.Background(), &packs.Call{Verb: verb, Params: calls[verb], Token: in("a"), Time: now, Emit: w.told.emit})
		require.ErrorIs(t, err, w.told.err, verb)
	}
}
