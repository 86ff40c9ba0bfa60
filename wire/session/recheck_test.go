package session_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// Each activation asks again, before the next event: what was queued under the old policy is held until
// the answer, and then judged by it.
func TestRecheck(t *testing.T) {
	var readable atomic.Pointer[[]string]
	var asked atomic.Int32
	var block atomic.Pointer[chan struct{}]
	start := func(t *testing.T, denied error) (*session.Server, *store, *peer) {
		asked.Store(0)
		block.Store(nil)
		readable.Store(&[]string{"local", "second"})
		st := newStore("t", "u")
		s := newServer(t, session.Config{Events: st, Handler: &handler{
			subscribe: func(ctx context.Context, _ session.Peer, topic string, _ *uint64) ([]string, error) {
				asked.Add(1)
				if gate := block.Load(); gate != nil {
					select {
					case <-*gate:
					case <-ctx.Done():
					}
				}
				if r := *readable.Load(); r != nil || topic == "u" {
					return slices.Clone(r), nil
				}
				return nil, denied
			},
		}})
		p := connect(t, s)
		p.subscribe("t", "t", "", 0)
		p.subscribe("u", "u", "", 0)
		return s, st, p
	}
	t.Run("OKNarrower", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, st, p := start(t, nil)
			st.add("t", "local", 1)
			synctest.Wait() // the writer is stuck with the first
			st.add("t", "second", 1)
			st.add("t", "local", 1)
			synctest.Wait() // both are queued
			readable.Store(&[]string{"local"})
			gate := make(chan struct{})
			block.Store(&gate)
			s.Recheck()
			p.getsEvents("t", 3) // was being written
			synctest.Wait()
			p.send(`{"kind":"request","id":"x","ops":"ping()"}`)
			p.gets(`{"kind":"response","id":"x","result":{"echo":"ping()"}}`) // and no event before it
			close(gate)
			p.getsEvents("t", 9)
			require.Equal(t, int32(4), asked.Load())
		})
	})
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"ErrRevoked":     {&session.Rejection{Message: "no longer"}, "no longer"},
		"ErrUnavailable": {errors.New("inside"), "the policy no longer allows the subscription of t"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st, p := start(t, c.err)
				other := connect(t, s)
				other.subscribe("u", "u", "", 0)
				readable.Store(new([]string))
				s.Recheck()
				st.add("t", "local", 1)
				p.getsError("", wire.SubscriptionRevoked, c.message)
				p.closed()
				other.lives("1")
			})
		})
	}
	// It ends what is in flight at once, however slowly the peer reads.
	t.Run("ErrInFlight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			var refuse atomic.Bool
			s := newServer(t, session.Config{Events: newStore("t"), Handler: &handler{
				request: func(ctx context.Context, _ session.Peer, _ session.Request, _, _ int) ([]byte, bool) {
					<-ctx.Done()
					ended <- ctx.Err()
					return nil, false
				},
				subscribe: func(context.Context, session.Peer, string, *uint64) ([]string, error) {
					if refuse.Load() {
						return nil, errors.New("no")
					}
					return nil, nil
				},
			}})
			p := connect(t, s)
			p.subscribe("1", "t", "", 0)
			p.send(`{"kind":"request","id":"2","ops":""}`)
			synctest.Wait()
			refuse.Store(true)
			s.Recheck()
			synctest.Wait()
			require.Len(t, ended, 1)
			p.getsError("", wire.SubscriptionRevoked, "")
			p.closed()
		})
	})
	// The answer to a question asked before an unsubscribe does not bring events back.
	t.Run("OKUnsubscribedMeanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, st, p := start(t, nil)
			st.add("t", "local", 1)
			synctest.Wait()
			st.add("t", "local", 1)
			synctest.Wait()
			gate := make(chan struct{})
			block.Store(&gate)
			s.Recheck()
			synctest.Wait()
			p.send(`{"kind":"unsubscribe","id":"1","topic":"t"}`)
			synctest.Wait()
			close(gate)
			synctest.Wait()
			p.getsEvents("t", 3)
			p.gets(`{"kind":"unsubscribe_ack","id":"1","topic":"t"}`)
			p.lives("2")
		})
	})
	t.Run("OKUnsubscribed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, p := start(t, nil)
			p.send(`{"kind":"unsubscribe","id":"1","topic":"t"}`)
			p.next()
			s.Recheck()
			synctest.Wait()
			require.Equal(t, int32(3), asked.Load())
			p.lives("2")
		})
	})
	// A policy that came while the first was being asked is asked as well.
	t.Run("ErrMeanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, p := start(t, &session.Rejection{Message: "no longer"})
			p.send(`{"kind":"unsubscribe","id":"1","topic":"t"}`)
			p.next()
			gate := make(chan struct{})
			block.Store(&gate)
			p.send(`{"kind":"subscribe","id":"2","topic":"t"}`)
			synctest.Wait()
			s.Recheck()
			block.Store(nil)
			close(gate)
			p.gets(`{"kind":"subscribe_ack","id":"2","topic":"t","start_cursor":0}`)
			synctest.Wait()
			require.Equal(t, int32(5), asked.Load()) // t, u, t; and for the new policy t and u
			readable.Store(new([]string))
			s.Recheck()
			p.getsError("", wire.SubscriptionRevoked, "no longer")
			p.closed()
		})
	})
}
