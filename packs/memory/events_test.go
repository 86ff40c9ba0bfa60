package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/memory"
)

func TestEvents(t *testing.T) {
	w := open(t)
	require.Equal(t, []string{"memory.remembered", "memory.forgotten"}, memory.Pack{}.Manifest().Topics)
	about := w.must(me, "create", object{"kind": "note", "content": "x"})["id"].(string)
	w.told = nil
	one := w.remember(me, "secret words", "tags", []any{"hidden"})
	two := w.remember(me, "secret words", "about", about[:8], "salience", number("0.75"))
	w.must(me, "memory.recall", object{"query": "words"})
	w.must(me, "memory.forget", object{"id": one[:13]})
	_, err := w.call(me, "memory.forget", object{"id": one})
	require.Error(t, err)
	_, err = w.call(me, "memory.remember", object{"content": "x", "about": one})
	require.Error(t, err)
	require.Equal(t, []string{
		fmt.Sprintf(`memory.remembered {"id":%q}`, one),
		fmt.Sprintf(`memory.remembered {"id":%q,"about":%q}`, two, about),
		fmt.Sprintf(`memory.forgotten {"id":%q}`, one),
	}, w.told, "ids and nothing of what is kept")
}

// What is told is in the store already; a mistake in it does not pass in silence.
func TestEventsComeAfterTheCommit(t *testing.T) {
	w := open(t)
	broken := errors.New("no such topic")
	seen := -1
	run := func(verb string, params object) error {
		_, err := w.handlers[verb](context.Background(), &packs.Call{Params: packs.Params(params), Token: me, Time: start, Emit: func(string, any) error {
			seen = w.rows("memory_records") // in another transaction
			return broken
		}})
		return err
	}
	id := w.remember(me, "1")
	require.ErrorIs(t, run("memory.remember", object{"content": "2"}), broken)
	require.Equal(t, 2, seen)
	require.ErrorIs(t, run("memory.forget", object{"id": id}), broken)
	require.Equal(t, 1, seen)

	// Nor is anything told that is not in the store.
	w.exec("DROP TABLE memory_words")
	seen = -1
	require.Error(t, run("memory.remember", object{"content": "3"}))
	require.Error(t, run("memory.forget", object{"id": id}))
	require.Equal(t, -1, seen)
}
