package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// startPump starts the goroutine that feeds the connection's subscriptions, or wakes it. It ends with
// the connection.
func (c *conn) startPump(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pumping {
		signal(c.pumpWake)
		return
	}
	c.pumping = true
	c.work.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				c.panicked(v)
				c.fail(wire.SubscriptionRevoked, "the subscriptions could not be kept up")
			}
		}()
		c.pump(ctx)
	})
}

// pump feeds the subscriptions until the connection ends.
func (c *conn) pump(ctx context.Context) {
	for {
		changed := c.srv.events.Changed() // before reading, or an append in between would be missed
		if !c.askAgain(ctx) {
			return
		}
		next, err := c.feedAll(ctx)
		var retry <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.log.Error("the event store could not be read", "error", err)
			retry = time.After(eventRetry)
		case next == feedMore:
			changed = closed
		}
		select {
		case <-changed:
		case <-retry:
		case <-c.pumpWake:
		case <-c.out.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// closed is a channel that does not make anybody wait.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// live is the subscriptions that have been acknowledged.
func (c *conn) live() []*subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*subscription, 0, len(c.subs))
	for _, sub := range c.subs {
		if sub.op == nil {
			all = append(all, sub)
		}
	}
	return all
}

// askAgain asks the gate about every subscription that another policy let in, and lets the writer go
// on. False when one was revoked, which ends the connection.
func (c *conn) askAgain(ctx context.Context) bool {
	asked := false
	for _, sub := range c.live() {
		old := sub.view.Load()
		generation := c.srv.counters.generation.Load()
		if old.gone || old.generation == generation {
			continue
		}
		readable, err := c.mayFollow(ctx, sub)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			c.log.Info("a subscription was revoked", "topic", quoted(sub.topic), "error", err)
			c.fail(wire.SubscriptionRevoked, told(err, "the policy no longer allows the subscription of "+quoted(sub.topic)))
			return false
		}
		// Not over the view of an unsubscribe that came meanwhile.
		sub.view.CompareAndSwap(old, &view{generation: generation, readable: readable})
		asked = true
	}
	if asked {
		signal(c.out.wake)
	}
	return true
}

// fed is how feeding a subscription came out.
type fed uint8

const (
	feedDone fed = iota // the topic's head is reached, or there is no room
	feedMore            // there is more to read now
	feedOver            // the connection is ending
)

// feedAll queues a page of each subscription. Each is fed, whatever became of the others.
func (c *conn) feedAll(ctx context.Context) (fed, error) {
	all := feedDone
	var failed error
	for _, sub := range c.live() {
		one, err := c.feed(ctx, sub)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case one == feedOver:
			return feedOver, nil
		case one == feedMore:
			all = feedMore
		}
	}
	return all, failed
}

// feed queues the next page of a subscription. Until it has caught up with its topic it waits for room
// in the queue, since history can be longer than that; then a queue with as many events as it may have
// means that the peer does not keep up. For room in bytes it waits in either case: large events stay in
// the store.
func (c *conn) feed(ctx context.Context, sub *subscription) (fed, error) {
	v := sub.view.Load()
	if v.gone {
		return feedDone, nil
	}
	limit := c.page(sub)
	if limit <= 0 {
		return feedDone, nil
	}
	head, ok, err := c.retained(ctx, sub)
	if err != nil || !ok {
		return feedOver, err
	}
	if head <= sub.cursor {
		sub.live = true
		return feedDone, nil
	}
	events, err := c.srv.events.Read(ctx, sub.topic, sub.cursor, limit)
	if err != nil {
		return feedDone, err
	}
	sub.page, sub.heavy = len(events), sub.heavy/2
	for _, e := range events {
		sub.heavy = max(sub.heavy, len(e.Payload))
	}
	// Asked again: what was pruned between the first answer and the reading would be a gap.
	if _, ok, err = c.retained(ctx, sub); err != nil || !ok {
		return feedOver, err
	}
	for _, e := range events {
		if e.Cursor <= sub.cursor {
			return feedDone, fmt.Errorf("cursor %d of topic %s came after %d", e.Cursor, sub.topic, sub.cursor)
		}
		if v.sees(e) {
			switch c.out.putEvent(sub, e) {
			case eventsMany:
				c.fail(wire.SubscriberOverflow, "events come faster than they are read; resume from the last cursor")
				return feedOver, nil
			case eventsHeavy:
				return feedDone, nil // it is read again when there is room
			}
		}
		sub.cursor = e.Cursor
	}
	if len(events) == 0 {
		return feedDone, nil
	}
	return feedMore, nil
}

// page is how many events to read for a subscription: as many as there is room for if they are like the
// last ones, and at most twice as many as those were. 0 is to wait until the writer makes room.
func (c *conn) page(sub *subscription) int {
	events, bytes, empty := c.out.eventRoom()
	limit := min(eventPage, max(1, 2*sub.page))
	switch {
	case events <= 0 && !sub.live:
		return 0
	case events <= 0: // one that may be seen is one too many
		return max(1, min(limit, eventBatch/max(1, sub.heavy)))
	case !sub.live:
		limit = min(limit, events)
	}
	if !empty && bytes < sub.heavy {
		return 0
	}
	return max(1, min(limit, bytes/max(1, sub.heavy)))
}

// retained is the topic's head; false when events after the subscription's cursor are gone, which ends
// the connection.
func (c *conn) retained(ctx context.Context, sub *subscription) (head uint64, ok bool, err error) {
	floor, head, err := c.srv.events.Bounds(ctx, sub.topic)
	if err != nil {
		return 0, false, fmt.Errorf("bounds of topic %s: %w", sub.topic, err)
	}
	if floor > sub.cursor {
		c.fail(wire.SubscriberOverflow, "events were pruned before they could be sent; they are not retained any more")
		return head, false, nil
	}
	return head, true, nil
}
