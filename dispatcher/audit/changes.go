package audit

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// pollEvery is how soon a follower hears of what another process stored.
const pollEvery = 250 * time.Millisecond

// changes wakes those who wait for the next event.
type changes struct {
	mu    sync.Mutex
	next  chan struct{} // closed at the next change; nil when nobody has asked for it
	ended bool
	asked chan struct{} // room for one: somebody waits
}

// Changed returns a channel that is closed when there may be new events: at the next commit of this
// process, within 250 ms of another's, and at Close. Take the channel, then read, then wait; what is stored
// after the reading closes it. A store that is not open returns a closed one.
func (s *Store) Changed() <-chan struct{} {
	if l := s.live.Load(); l != nil {
		return l.changes.wait()
	}
	return closed()
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return closed()
	case c.next == nil:
		c.next = make(chan struct{})
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}
	return c.next
}

// announce wakes everybody who waits.
func (c *changes) announce() { c.wake(false) }

// end wakes them too, and lets nobody wait again.
func (c *changes) end() { c.wake(true) }

func (c *changes) wake(last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
	c.ended = last
}

func (c *changes) waited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next != nil
}

// poll looks for what other processes stored, as long as somebody waits for it. It ends with ctx.
func (l *live) poll(ctx context.Context) {
	var seen int64
	for {
		select {
		case <-l.changes.asked:
		case <-ctx.Done():
			return
		}
		for l.changes.waited() {
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				return
			}
			// A failure is the reader's to meet; there is nobody here to tell.
			if now, err := l.heads(ctx); err == nil && now != seen {
				seen = now
				l.changes.announce()
			}
		}
	}
}

// heads is the number of events there ever were.
func (l *live) heads(ctx context.Context) (n int64, err error) {
	err = l.db.Read(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT coalesce(sum(head), 0) FROM topics").Scan(&n)
	})
	return n, err
}
