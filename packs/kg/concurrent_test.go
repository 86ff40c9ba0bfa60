package kg_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestConcurrentWriters(t *testing.T) {
	w := open(t)
	const writers, rounds = 5, 8
	var all sync.WaitGroup
	shared := []string{w.note(in("a"), "1"), w.note(in("a"), "2"), w.note(in("a"), "3")}
	for i := range writers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			me := in("a", fmt.Sprint("n", i))
			try := func(verb string, params packs.Params) {
				_, err := w.handlers[verb](context.Background(), &packs.Call{Verb: verb, Params: params, Token: me, Time: now, Emit: w.told.emit})
				var missing *packs.NotFoundError
				var bad *packs.InvalidError
				if err != nil && !asOneOf(err, &missing, &bad) {
					t.Errorf("%s: %v", verb, err)
				}
			}
			some := func() string { return shared[r.IntN(len(shared))] }
			for j := range rounds {
				try("create", packs.Params{"kind": "note", "content": "text of many", "tags": list("t", fmt.Sprint(j))})
				try("link", packs.Params{"source_id": some(), "target_id": some(), "relation": "r"})
				try("update", packs.Params{"id": some(), "properties": object{fmt.Sprint(i, "-", j): true}})
				try("merge_note", packs.Params{"into_id": some(), "from_id": some(), "content": "keep"})
				try("search", packs.Params{"query": "text"})
				try("list", packs.Params{})
				try("neighbors", packs.Params{"id": some()})
				try("stats", nil)
			}
		})
	}
	all.Wait()
	w.sound()
	require.GreaterOrEqual(t, w.rows("kg_records"), writers*rounds+1)
}

// Of many who say the same thing at once one makes the edge and the others get it.
func TestConcurrentLinks(t *testing.T) {
	w := open(t)
	me := in("a")
	params := packs.Params{"source_id": w.note(me, "1"), "target_id": w.note(me, "2"), "relation": "r"}
	var mu sync.Mutex
	var ids []string
	made := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := w.handlers["link"](context.Background(), &packs.Call{Params: params, Token: me, Time: now, Emit: w.told.emit})
			if err != nil {
				t.Error(err)
				return
			}
			answer := args(t, encoded(t, got))
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, answer["id"].(string))
			if answer["created"] == true {
				made++
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, made)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), 1)
	require.Equal(t, 1, w.rows("kg_edges"))
}
