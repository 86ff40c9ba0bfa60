package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// operatorTopics is how topics begin that only operators may follow.
const operatorTopics = "gate."

const noSuchTopic = "there is no such topic"

// subscription is a topic that a connection follows. What is not said otherwise belongs to the pump.
type subscription struct {
	topic  string
	resume *uint64
	op     *operation // while the gate is asked; the connection's mutex guards it
	view   atomic.Pointer[view]
	cursor uint64 // of the last event that was queued or skipped
	live   bool   // it has caught up with the topic once
	page   int    // how many events the last page had
	heavy  int    // bytes that an event is expected to have: the heaviest of late
}

// view is what a subscription may see, and by which policy. It is never changed, only replaced.
type view struct {
	generation uint64
	readable   []string
	gone       bool // unsubscribed
}

func (v *view) sees(e Event) bool {
	if e.Namespace == "" {
		return strings.HasPrefix(e.Topic, operatorTopics)
	}
	return slices.Contains(v.readable, e.Namespace)
}

// subscribe answers a subscribe frame. The gate may take its time, so it is asked in a goroutine.
func (c *conn) subscribe(ctx context.Context, f wire.Subscribe) {
	op := c.begin(f.ID)
	if op == nil {
		return
	}
	sub := &subscription{topic: f.Topic, op: op}
	if at, ok := f.ResumeCursor.Get(); ok {
		resume := uint64(at)
		sub.resume = &resume
	}
	c.mu.Lock()
	taken := c.subs[f.Topic] != nil
	if !taken {
		op.topic = f.Topic
		c.subs[f.Topic] = sub
	}
	c.mu.Unlock()
	if taken {
		c.end(op, refusal(op.id, wire.AlreadySubscribed, "this connection follows the topic already"))
		return
	}
	c.start(ctx, op, time.Time{}, func(work context.Context) { c.open(ctx, work, op, sub) })
}

// open asks the gate, finds the cursor to start at, and starts the subscription. The pump gets the
// connection's context, the rest the operation's.
func (c *conn) open(ctx, work context.Context, op *operation, sub *subscription) {
	defer c.recovered(op)
	// Before the gate is asked: a policy that is replaced meanwhile must be asked again.
	v := &view{generation: c.srv.counters.generation.Load()}
	var err error
	if v.readable, err = c.mayFollow(work, sub); err != nil {
		c.log.Info("a subscription was denied", "topic", quoted(sub.topic), "error", err)
		c.end(op, refusal(op.id, wire.SubscriptionDenied, told(err, "the subscription was denied")))
		return
	}
	floor, head, err := c.srv.events.Bounds(work, sub.topic)
	switch {
	case errors.Is(err, ErrUnknownTopic):
		c.end(op, refusal(op.id, wire.SubscriptionDenied, noSuchTopic))
		return
	case err != nil:
		c.log.Error("the event store could not be read", "topic", quoted(sub.topic), "error", err)
		c.end(op, refusal(op.id, wire.Internal, "the topic could not be read"))
		return
	case sub.resume == nil:
		sub.cursor = head
	case *sub.resume < floor:
		c.end(op, refusal(op.id, wire.CursorExpired,
			fmt.Sprintf("events after cursor %d are no longer retained; the earliest cursor to resume from is %d", *sub.resume, floor)))
		return
	default:
		sub.cursor = *sub.resume
	}
	sub.view.Store(v)
	if c.end(op, wire.SubscribeAck{ID: op.id, Topic: sub.topic, StartCursor: wire.Cursor(sub.cursor)}) {
		c.startPump(ctx)
	}
}

// mayFollow asks whether the peer may follow the topic.
func (c *conn) mayFollow(ctx context.Context, sub *subscription) (readable []string, err error) {
	if c.srv.events == nil {
		return nil, &Rejection{"this server has no events"}
	}
	if len(sub.topic) > maxTopicBytes {
		return nil, &Rejection{noSuchTopic}
	}
	if strings.HasPrefix(sub.topic, operatorTopics) && (c.srv.operators == nil || !c.srv.operators(c.peer.Identity)) {
		return nil, &Rejection{"only operators follow the gate's own topics"}
	}
	return c.srv.handler.Subscribe(ctx, c.peer, sub.topic, sub.resume)
}

// recovered ends an operation whose handler panicked.
func (c *conn) recovered(op *operation) {
	if v := recover(); v != nil {
		c.panicked(v)
		c.end(op, refusal(op.id, wire.SubscriptionDenied, "the subscription was denied"))
	}
}

// unsubscribe answers an unsubscribe frame. That there was no subscription is no mistake: the ack says
// that no further event of the topic comes. A subscribe still being decided is cancelled.
func (c *conn) unsubscribe(f wire.Unsubscribe) {
	op := c.begin(f.ID)
	if op == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := c.subs[f.Topic]; sub != nil {
		if sub.op != nil {
			c.endLocked(sub.op, refusal(sub.op.id, wire.Cancelled, "unsubscribed before the subscription began"))
		} else {
			sub.view.Store(&view{gone: true})
			delete(c.subs, f.Topic)
		}
	}
	c.endLocked(op, wire.UnsubscribeAck{ID: op.id, Topic: f.Topic})
}

// quoted is a peer's text for a log line.
func quoted(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
