package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

func event(topic string, cursor uint64) string {
	return fmt.Sprintf(`{"kind":"event","topic":"%s","cursor":%d,"occurred_at":"2026-01-02T03:04:05Z","payload":{"n":1}}`, topic, cursor)
}

func (p *peer) subscribe(id, topic, more string, start uint64) {
	p.tb.Helper()
	p.send(fmt.Sprintf(`{"kind":"subscribe","id":"%s","topic":"%s"%s}`, id, topic, more))
	p.gets(fmt.Sprintf(`{"kind":"subscribe_ack","id":"%s","topic":"%s","start_cursor":%d}`, id, topic, start))
}

func (p *peer) getsEvents(topic string, cursors ...uint64) {
	p.tb.Helper()
	for _, cursor := range cursors {
		p.gets(event(topic, cursor))
	}
}

func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore("t", "u")
		s := newServer(t, session.Config{Events: st})
		p := connect(t, s)
		p.subscribe("empty", "t", "", 0) // an empty topic starts at 0
		st.add("u", "local", 1)
		st.add("t", "local", 2)
		p.getsEvents("t", 6, 9)

		p.send(`{"kind":"subscribe","id":"twice","topic":"t"}`)
		p.getsError("twice", wire.AlreadySubscribed, "")
		st.add("t", "other", 1) // not readable: skipped, and so is what has no namespace
		st.add("t", "", 1)
		st.add("t", "local", 1)
		p.getsEvents("t", 18)

		p.send(`{"kind":"unsubscribe","id":"un","topic":"t"}`)
		p.gets(`{"kind":"unsubscribe_ack","id":"un","topic":"t"}`)
		st.add("t", "local", 1)
		synctest.Wait()
		p.send(`{"kind":"unsubscribe","id":"un2","topic":"t"}`) // it may be said again
		p.gets(`{"kind":"unsubscribe_ack","id":"un2","topic":"t"}`)
		p.subscribe("head", "t", "", 21) // again, from the head
		st.add("t", "local", 1)
		p.getsEvents("t", 24)

		other := connect(t, s)
		other.subscribe("r", "t", `,"resume_cursor":0`, 0)
		other.getsEvents("t", 6, 9, 18, 21, 24)
		other.subscribe("u", "u", `,"resume_cursor":1`, 1) // between two cursors
		other.getsEvents("u", 3)
		ahead := connect(t, s)
		ahead.subscribe("a", "t", `,"resume_cursor":30`, 30) // ahead of the head: starts there
		st.add("t", "local", 3)
		ahead.getsEvents("t", 33)
		other.getsEvents("t", 27, 30, 33)
		p.getsEvents("t", 27, 30, 33)
	})
}

func TestSubscribeRefused(t *testing.T) {
	failing := errors.New("disk on fire at /secret")
	for name, c := range map[string]struct {
		topic, more string
		answer      error
		store       func(*store)
		operators   func(session.Identity) bool
		none        bool
		code        wire.ErrorCode
		message     string
	}{
		"ErrDenied":      {topic: "t", answer: &session.Rejection{Message: "because"}, code: wire.SubscriptionDenied, message: "because"},
		"ErrUnavailable": {topic: "t", answer: failing, code: wire.SubscriptionDenied, message: "the subscription was denied"},
		"ErrUnknown":     {topic: "nonsense", code: wire.SubscriptionDenied, message: "there is no such topic"},
		"ErrEmptyTopic":  {topic: "", code: wire.SubscriptionDenied, message: "there is no such topic"},
		"ErrLongTopic":   {topic: strings.Repeat("t", 257), answer: &session.Rejection{Message: "asked"}, code: wire.SubscriptionDenied, message: "there is no such topic"},
		"ErrLongMessage": {topic: "t", answer: &session.Rejection{Message: strings.Repeat("\x01\xff", 10_000)}, code: wire.SubscriptionDenied, message: "\x01\ufffd\x01"},
		"ErrNoEvents":    {topic: "t", none: true, code: wire.SubscriptionDenied, message: "this server has no events"},
		"ErrStore":       {topic: "t", store: func(s *store) { s.fail(failing) }, code: wire.Internal, message: "the topic could not be read"},
		"ErrExpired":     {topic: "t", more: `,"resume_cursor":5`, store: func(s *store) { s.add("t", "local", 3); s.prune("t", 6) }, code: wire.CursorExpired, message: "cursor 5 are no longer retained; the earliest cursor to resume from is 6"},
		// The gate is asked before the cursor is looked at.
		"ErrDeniedFirst": {topic: "t", more: `,"resume_cursor":5`, answer: &session.Rejection{Message: "because"}, store: func(s *store) { s.add("t", "local", 3); s.prune("t", 6) }, code: wire.SubscriptionDenied, message: "because"},
		"ErrNoOperators": {topic: "gate.activation", code: wire.SubscriptionDenied, message: "only operators"},
		"ErrNoOperator":  {topic: "gate.activation", operators: func(id session.Identity) bool { return id.ID == "bob" }, code: wire.SubscriptionDenied, message: "only operators"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			st := newStore("t", "gate.activation")
			if c.store != nil {
				c.store(st)
			}
			cfg := session.Config{Events: st, Operators: c.operators, Handler: &handler{
				subscribe: func(context.Context, session.Peer, string, *uint64) ([]string, error) {
					return []string{"local"}, c.answer
				},
			}}
			if c.none {
				cfg.Events = nil
			}
			p := connect(t, newServer(t, cfg))
			p.send(`{"kind":"subscribe","id":"s","topic":"` + c.topic + `"` + c.more + `}`)
			p.getsError("s", c.code, c.message)
			p.lives("1")
		})
	}
	t.Run("ErrPanic", func(t *testing.T) {
		noLeak(t)
		p := connect(t, newServer(t, session.Config{Events: newStore("t"), Handler: &handler{
			subscribe: func(context.Context, session.Peer, string, *uint64) ([]string, error) { panic("secret") },
		}}))
		p.send(`{"kind":"subscribe","id":"s","topic":"t"}`)
		p.getsError("s", wire.SubscriptionDenied, "the subscription was denied")
		p.lives("1")
	})
}

func TestSubscribeAsksTheGate(t *testing.T) {
	noLeak(t)
	type question struct {
		peer   session.Identity
		topic  string
		resume *uint64
	}
	var asked []question
	st := newStore("t", "gate.activation")
	p := connect(t, newServer(t, session.Config{
		Events:    st,
		Operators: func(id session.Identity) bool { return id.ID == "alice" },
		Handler: &handler{subscribe: func(_ context.Context, peer session.Peer, topic string, resume *uint64) ([]string, error) {
			asked = append(asked, question{peer.Identity, topic, resume})
			return nil, nil
		}},
	}))
	resume := uint64(4)
	p.subscribe("1", "t", `,"resume_cursor":4`, 4)
	p.subscribe("2", "gate.activation", "", 0)
	require.Equal(t, []question{{session.Identity(alice), "t", &resume}, {session.Identity(alice), "gate.activation", nil}}, asked)
	st.add("t", "local", 2) // nothing is readable
	st.add("gate.activation", "", 1)
	p.getsEvents("gate.activation", 9)
}

// A subscription that is still being decided can be withdrawn, by its id or by its topic.
func TestSubscribePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore("t")
		p := connect(t, newServer(t, session.Config{Events: st, Handler: &handler{
			subscribe: func(ctx context.Context, _ session.Peer, _ string, resume *uint64) ([]string, error) {
				if resume == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return []string{"local"}, nil
			},
		}}))
		p.send(`{"kind":"subscribe","id":"1","topic":"t"}`, `{"kind":"subscribe","id":"2","topic":"t"}`)
		p.getsError("2", wire.AlreadySubscribed, "")
		p.send(`{"kind":"cancel","id":"1"}`)
		p.getsError("1", wire.Cancelled, "")
		p.send(`{"kind":"subscribe","id":"3","topic":"t"}`, `{"kind":"unsubscribe","id":"4","topic":"t"}`)
		p.getsError("3", wire.Cancelled, "")
		p.gets(`{"kind":"unsubscribe_ack","id":"4","topic":"t"}`)
		p.subscribe("5", "t", `,"resume_cursor":0`, 0)
		p.send(`{"kind":"cancel","id":"5"}`) // it has ended with its ack
		st.add("t", "local", 1)
		p.getsEvents("t", 3)
	})
}

// History can be longer than the queue: who reads it gets it all, however slowly, and what comes
// meanwhile after it.
func TestSubscribeHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore("t")
		st.add("t", "local", 5000)
		p := connect(t, newServer(t, session.Config{Events: st}))
		p.subscribe("1", "t", `,"resume_cursor":0`, 0)
		for i := range 5000 {
			if i%100 == 0 {
				time.Sleep(time.Second)
				st.add("t", "local", 1)
			}
			p.getsEvents("t", uint64(3*(i+1)))
		}
		for i := range 50 {
			p.getsEvents("t", uint64(3*(5000+i+1)))
		}
		p.lives("x")
	})
}

func TestSubscriberOverflow(t *testing.T) {
	for name, c := range map[string]struct {
		queue, events int
		overflows     bool
	}{
		"OKFull":          {0, eventsTaken + 1024, false},
		"ErrOverflow":     {0, eventsTaken + 1025, true},
		"ErrSmall":        {4, eventsTaken + 5, true},
		"OKSmall":         {4, eventsTaken + 4, false},
		"ErrFarToo":       {0, 20_000, true},
		"ErrFarToo Small": {4, 20_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStore("t", "u")
				s := newServer(t, session.Config{Events: st, Limits: session.Limits{EventQueue: c.queue}})
				p, other := connect(t, s), connect(t, s)
				p.subscribe("1", "t", "", 0)
				other.subscribe("1", "u", "", 0)
				synctest.Wait()
				last := st.add("t", "local", eventsTaken) // the writer takes it, and is stuck with it
				synctest.Wait()
				st.add("t", "local", c.events-eventsTaken)
				synctest.Wait()
				p.getsEvents("t", last)
				if c.overflows {
					p.getsError("", wire.SubscriberOverflow, "resume from the last cursor")
					p.closed()
				} else {
					for i := eventsTaken; i < c.events; i++ {
						p.getsEvents("t", uint64(3*(i+1)))
					}
				}
				st.add("u", "local", 1)
				other.next()
				other.lives("2")
			})
		})
	}
}

// What is not delivered takes no room in the queue.
func TestSubscriberOfOthersEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore("t")
		p := connect(t, newServer(t, session.Config{Events: st}))
		p.subscribe("1", "t", "", 0)
		st.add("t", "local", 1)
		synctest.Wait() // the writer is stuck
		st.add("t", "other", 5000)
		last := st.add("t", "local", 1)
		synctest.Wait()
		p.getsEvents("t", 3, last)
	})
}

// No event comes after the ack of an unsubscribe, not even one that was queued before it.
func TestUnsubscribeDropsWhatIsQueued(t *testing.T) {
	for _, topic := range []string{"t", "gate.activation"} {
		synctest.Test(t, func(t *testing.T) {
			st := newStore(topic)
			p := connect(t, newServer(t, session.Config{Events: st, Operators: func(session.Identity) bool { return true }}))
			p.subscribe("1", topic, "", 0)
			namespace := "local"
			if topic != "t" {
				namespace = ""
			}
			st.add(topic, namespace, 1)
			synctest.Wait()
			st.add(topic, namespace, 5)
			synctest.Wait()
			p.send(`{"kind":"unsubscribe","id":"2","topic":"` + topic + `"}`)
			synctest.Wait()
			p.getsEvents(topic, 3)
			p.gets(`{"kind":"unsubscribe_ack","id":"2","topic":"` + topic + `"}`)
			p.lives("3")
		})
	}
}

// eventsTaken is how many events the writer holds while the peer does not read.
const eventsTaken = 1

// A store that fails for a while delays events, and one that has pruned what was not sent yet ends the
// connection: a gap is never passed over.
func TestSubscribeStore(t *testing.T) {
	t.Run("OKFails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := newStore("t")
			p := connect(t, newServer(t, session.Config{Events: st}))
			p.subscribe("1", "t", "", 0)
			st.fail(errors.New("busy"))
			st.add("t", "local", 2)
			time.Sleep(time.Minute)
			p.lives("x")
			st.mu.Lock()
			st.failing = nil
			st.mu.Unlock()
			p.getsEvents("t", 3, 6)
		})
	})
	t.Run("ErrPruned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := newStore("t")
			p := connect(t, newServer(t, session.Config{Events: st}))
			p.subscribe("1", "t", "", 0)
			synctest.Wait()
			st.mu.Lock() // appended and pruned at one go
			st.floors["t"] = 30
			st.wake()
			st.mu.Unlock()
			p.getsError("", wire.SubscriberOverflow, "not retained any more")
			p.closed()
		})
	})
	t.Run("ErrPrunedWhileRead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := newStore("t")
			p := connect(t, newServer(t, session.Config{Events: pruningStore{st}}))
			p.subscribe("1", "t", "", 0)
			st.add("t", "local", 3)
			p.getsError("", wire.SubscriberOverflow, "not retained any more")
			p.closed()
		})
	})
	t.Run("OKPrunedBehind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := newStore("t")
			p := connect(t, newServer(t, session.Config{Events: st}))
			p.subscribe("1", "t", "", 0)
			st.add("t", "local", 2)
			p.getsEvents("t", 3, 6)
			st.prune("t", 6)
			st.add("t", "local", 1)
			p.getsEvents("t", 9)
		})
	})
	t.Run("OKNotSendable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := newStore("t")
			p := connect(t, newServer(t, session.Config{Events: st}))
			p.subscribe("1", "t", "", 0)
			st.mu.Lock()
			st.topics["t"] = append(st.topics["t"], session.Event{Topic: "t", Cursor: 5, Namespace: "local", Payload: []byte("[]")})
			st.wake()
			st.mu.Unlock()
			p.gets(`{"kind":"event","topic":"t","cursor":5,"occurred_at":"","payload":{"error":{"kind":"event_not_sendable","message":"the event does not fit a frame"}}}`)
		})
	})
}

// pruningStore prunes the first event of what is about to be read.
type pruningStore struct{ *store }

func (s pruningStore) Read(ctx context.Context, topic string, after uint64, limit int) ([]session.Event, error) {
	s.prune(topic, after+3)
	return s.store.Read(ctx, topic, after, limit)
}
