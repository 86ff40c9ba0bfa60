package session_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// getsSized expects an event by its cursor and the size of its payload.
func (p *peer) getsSized(cursor uint64, size int) {
	p.tb.Helper()
	var f struct {
		Kind    string
		Cursor  uint64
		Payload json.RawMessage
	}
	require.NoError(p.tb, json.Unmarshal([]byte(p.next()), &f))
	require.Equal(p.tb, "event", f.Kind)
	require.Equal(p.tb, cursor, f.Cursor)
	require.Len(p.tb, f.Payload, size)
}

// Large events stay in the store until there is room for their bytes, and come in order then.
func TestHeavyEvents(t *testing.T) {
	const kib = 1 << 10
	for name, c := range map[string]struct {
		sizes []int // of the events, over and over
		count int
		bound int // Limits.EventBytes
		live  bool
		most  int // bytes that may have been read and not received
	}{
		// What is queued, what the writer took, and an event that was read in vain.
		"OKHistory":      {sizes: []int{256 * kib}, count: 100, most: (4096 + 1024 + 256) * kib},
		"OKLive":         {sizes: []int{256 * kib}, count: 100, live: true, most: (4096 + 1024 + 256) * kib},
		"OKSmallBound":   {sizes: []int{100 * kib}, count: 60, bound: 300 * kib, most: (300 + 300 + 100) * kib},
		"OKOver":         {sizes: []int{100 * kib}, count: 30, bound: 1, most: (100 + 100) * kib},
		"OKOverLive":     {sizes: []int{100 * kib}, count: 30, bound: 1, live: true, most: (100 + 100) * kib},
		"OKMixed":        {sizes: []int{8, 8, 900 * kib, 8, 50 * kib, 8, 8, 8, 8, 300 * kib}, count: 200, bound: 512 * kib, most: (900 + 900 + 900) * kib},
		"OKManyAndHeavy": {sizes: []int{8 * kib}, count: 2000, most: (4096 + 1024 + 8) * kib},
		"OKFullQueue":    {sizes: []int{4 * kib}, count: 1024, live: true, most: (4096 + 1024 + 4) * kib},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStore("t", "u")
				fill := func() {
					for i := range c.count {
						st.addSized("t", c.sizes[i%len(c.sizes)])
					}
				}
				s := newServer(t, session.Config{Events: st, Limits: session.Limits{EventBytes: c.bound}})
				p, other := connect(t, s), connect(t, s)
				if !c.live {
					fill()
				}
				p.subscribe("1", "t", `,"resume_cursor":0`, 0)
				other.subscribe("1", "u", "", 0)
				synctest.Wait()
				if c.live {
					fill()
					synctest.Wait()
				}
				require.Positive(t, st.unread("t", 0))
				for i := range c.count {
					require.LessOrEqual(t, st.unread("t", uint64(3*i)), c.most, i)
					p.getsSized(uint64(3*(i+1)), c.sizes[i%len(c.sizes)])
					synctest.Wait()
				}
				st.add("u", "local", 1)
				other.next()
				other.lives("2")
				p.lives("3")
			})
		})
	}
}

// Large events do not make room for more small ones than the queue has places.
func TestHeavyEventsOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore("t")
		p := connect(t, newServer(t, session.Config{Events: st}))
		p.subscribe("1", "t", "", 0)
		synctest.Wait()
		st.addSized("t", 1<<20)
		synctest.Wait()
		st.add("t", "local", 1025)
		synctest.Wait()
		p.getsSized(3, 1<<20)
		p.getsError("", wire.SubscriberOverflow, "resume from the last cursor")
		p.closed()
	})
}

// A page of large events after small ones is not queued as a whole: what has no room is read again.
func TestHeavyEventsAfterSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const small, heavy, size = 400, 100, 256 << 10
		st := newStore("t")
		st.add("t", "local", small)
		for range heavy {
			st.addSized("t", size)
		}
		p := connect(t, newServer(t, session.Config{Events: st}))
		p.subscribe("1", "t", `,"resume_cursor":0`, 0)
		synctest.Wait()
		st.mu.Lock()
		for i := range st.topics["t"] { // what is queued by now does not see it
			st.topics["t"][i].Payload = []byte(`{"read":2}`)
		}
		st.mu.Unlock()
		old := 0
		for i := range small + heavy {
			payload := p.next()
			require.Contains(t, payload, fmt.Sprintf(`"cursor":%d,`, 3*(i+1)))
			if len(payload) > size {
				old++
			}
		}
		require.Positive(t, old)
		require.LessOrEqual(t, old, (4<<20)/size)
	})
}
