package session

import (
	"context"
	"fmt"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// operation is what an id stands for until its terminal frame.
type operation struct {
	id     wire.OperationID
	cancel context.CancelFunc // of its handler; never nil
	late   *time.Timer        // its deadline, or nil
	topic  string             // of a subscribe, for which the gate is being asked
}

// ledger knows which ids are live and which ended lately.
type ledger struct {
	live  map[wire.OperationID]*operation
	ended map[wire.OperationID]struct{}
	ring  []wire.OperationID // the ended ones, oldest at next once it is full
	next  int
	limit int
}

func newLedger(limit int) ledger {
	return ledger{live: map[wire.OperationID]*operation{}, ended: map[wire.OperationID]struct{}{}, limit: limit}
}

// used says whether the id may not be used now.
func (l *ledger) used(id wire.OperationID) bool {
	_, ended := l.ended[id]
	return ended || l.live[id] != nil
}

// end remembers an id that ended, and forgets the one that did so longest ago.
func (l *ledger) end(id wire.OperationID) {
	delete(l.live, id)
	if len(l.ring) < l.limit {
		l.ring = append(l.ring, id)
	} else {
		delete(l.ended, l.ring[l.next])
		l.ring[l.next] = id
		l.next = (l.next + 1) % l.limit
	}
	l.ended[id] = struct{}{}
}

// begin makes an operation of a new id. It is nil when there is none: the connection has failed, or
// the id was refused.
func (c *conn) begin(id wire.OperationID) *operation {
	if len(id) > maxIDBytes {
		c.fail(wire.MalformedFrame, fmt.Sprintf("an id of %d bytes, where at most %d are taken", len(id), maxIDBytes))
		return nil
	}
	c.mu.Lock()
	switch {
	case c.ids.used(id):
		c.mu.Unlock() // fail takes it
		c.fail(wire.MalformedFrame, "an id that is in flight, or that ended only lately, was used again")
		return nil
	case len(c.ids.live) >= c.srv.limits.InFlight:
		defer c.mu.Unlock()
		c.refuseLocked(id, wire.InFlightLimitExceeded,
			fmt.Sprintf("%d operations are in flight, which is as many as a connection may have", len(c.ids.live)))
		return nil
	// Ended operations whose handlers have not returned are let be up to as many again, or a client
	// that cancels would be refused for the time its handlers take to notice.
	case c.running >= 2*c.srv.limits.InFlight:
		defer c.mu.Unlock()
		c.refuseLocked(id, wire.InFlightLimitExceeded, "too many operations that were cancelled have not stopped yet")
		return nil
	}
	defer c.mu.Unlock()
	op := &operation{id: id, cancel: func() {}}
	c.ids.live[id] = op
	return op
}

// refuseLocked answers an id that does not become an operation.
func (c *conn) refuseLocked(id wire.OperationID, code wire.ErrorCode, message string) {
	c.ids.end(id)
	c.out.put(refusal(id, code, message))
}

// end ends an operation with its terminal frame, unless it has ended before.
func (c *conn) end(op *operation, f wire.Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endLocked(op, f)
}

func (c *conn) endLocked(op *operation, f wire.Frame) bool {
	if c.ids.live[op.id] != op {
		return false
	}
	c.ids.end(op.id)
	if sub := c.subs[op.topic]; sub != nil && sub.op == op {
		if _, acked := f.(wire.SubscribeAck); acked {
			sub.op = nil
		} else {
			delete(c.subs, op.topic)
		}
	}
	if op.late != nil {
		op.late.Stop()
	}
	c.out.put(f)
	// A deadline reaches the handler as the deadline it is, by its context.
	if e, ok := f.(wire.ErrorFrame); ok && e.Code != wire.DeadlineExceeded {
		op.cancel()
	}
	return true
}

// cancelled ends an operation that the peer no longer wants. One that is not live is no mistake: its
// answer may have crossed the cancel.
func (c *conn) cancelled(id wire.OperationID) {
	if len(id) > maxIDBytes {
		c.fail(wire.MalformedFrame, fmt.Sprintf("an id of %d bytes, where at most %d are taken", len(id), maxIDBytes))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if op := c.ids.live[id]; op != nil {
		c.endLocked(op, refusal(id, wire.Cancelled, "cancelled by the client"))
	}
}

// start runs an operation's handler in a goroutine that ends when the handler returns. The context
// it gets ends with the operation, the deadline and the connection.
func (c *conn) start(ctx context.Context, op *operation, deadline time.Time, handle func(context.Context)) {
	if !c.srv.startWork() {
		c.end(op, refusal(op.id, wire.ShuttingDown, "the server is shutting down"))
		return
	}
	var cancel context.CancelFunc
	if deadline.IsZero() {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	c.mu.Lock()
	op.cancel = cancel
	live := c.ids.live[op.id] == op // Shutdown may have ended it
	if live && !deadline.IsZero() {
		op.late = time.AfterFunc(time.Until(deadline), func() { c.end(op, deadlineExceeded(op.id)) })
	}
	c.running++
	c.mu.Unlock()
	c.work.Go(func() {
		defer c.finished()
		defer cancel()
		if live && ctx.Err() == nil {
			handle(ctx)
		}
	})
}

func (c *conn) finished() {
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	c.srv.endWork()
	signal(c.readerWake)
}

func deadlineExceeded(id wire.OperationID) wire.ErrorFrame {
	return refusal(id, wire.DeadlineExceeded, "the deadline has passed; what was not done by then is not done")
}
