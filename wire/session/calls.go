package session

import (
	"context"
	"fmt"
	"strconv"

	"github.com/verbgate/verbgate/wire"
)

// call is an operation that awaits its terminal frame. It keeps its place until then, even when its
// caller has gone.
type call struct {
	kind  wire.Kind
	feed  *Subscription // of a subscribe: where the topic's events go from the ack on
	reply chan reply    // of capacity one
}

type reply struct {
	frame wire.Frame
	err   error
}

// call sends what make makes of a new id and waits for the operation's end.
func (l *link) call(ctx context.Context, make func(wire.OperationID) wire.Frame, feed *Subscription) (wire.Frame, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.lost:
		return nil, l.lostError(false)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id, waiting, err := l.send(make, feed)
	if err != nil {
		<-l.places
		return nil, err
	}
	select {
	case r := <-waiting.reply:
		return r.frame, r.err
	case <-ctx.Done():
		l.out.put(wire.Cancel{ID: id})
		return nil, ctx.Err()
	}
}

func (l *link) send(make func(wire.OperationID) wire.Frame, feed *Subscription) (wire.OperationID, *call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return "", nil, l.lostError(false)
	}
	l.nextID++
	id := wire.OperationID(strconv.FormatUint(l.nextID, 10))
	f := make(id)
	waiting := newCall(wire.KindOf(f), feed)
	l.pending[id] = waiting
	l.out.put(f)
	return id, waiting, nil
}

func newCall(kind wire.Kind, feed *Subscription) *call {
	return &call{kind: kind, feed: feed, reply: make(chan reply, 1)}
}

// route gives a frame to whom it is for. One that nobody waits for is let go.
func (l *link) route(f wire.Frame) error {
	switch f := f.(type) {
	case wire.Event:
		l.mu.Lock()
		feed := l.feeds[f.Topic]
		if feed != nil && !feed.deliver(f) {
			delete(l.feeds, f.Topic)
		}
		l.mu.Unlock()
		return nil
	case wire.ErrorFrame:
		id, _ := f.ID.Get()
		l.settle(id, nil, remoteError(f))
		return nil
	}
	id := idOf(f)
	l.mu.Lock()
	waiting := l.pending[id]
	if waiting != nil && waiting.kind == answeredBy(f) && waiting.feed != nil {
		// Before the next frame is read, which may be the first event.
		waiting.feed.started(f.(wire.SubscribeAck))
		l.feeds[waiting.feed.topic] = waiting.feed
	}
	l.mu.Unlock()
	if waiting != nil && waiting.kind != answeredBy(f) {
		return fmt.Errorf("the server answered %s with %s", waiting.kind, wire.KindOf(f))
	}
	l.settle(id, f, nil)
	return nil
}

// settle ends a call.
func (l *link) settle(id wire.OperationID, f wire.Frame, err error) {
	l.mu.Lock()
	waiting := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if waiting != nil {
		<-l.places
		waiting.reply <- reply{f, err}
	}
}

// answeredBy is the kind that a frame is the good answer to.
func answeredBy(f wire.Frame) wire.Kind {
	switch f.(type) {
	case wire.Response:
		return wire.KindRequest
	case wire.SubscribeAck:
		return wire.KindSubscribe
	case wire.UnsubscribeAck:
		return wire.KindUnsubscribe
	default:
		return 0
	}
}

// idOf is the id that a frame begins or ends an operation with; errors not counted.
func idOf(f wire.Frame) wire.OperationID {
	switch f := f.(type) {
	case wire.Request:
		return f.ID
	case wire.Subscribe:
		return f.ID
	case wire.Unsubscribe:
		return f.ID
	case wire.Response:
		return f.ID
	case wire.SubscribeAck:
		return f.ID
	case wire.UnsubscribeAck:
		return f.ID
	default:
		return ""
	}
}

// unfollow tells the server to send no more of a topic. What still comes before its ack is let go.
func (l *link) unfollow(ctx context.Context, topic string) error {
	drop := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.feeds, topic)
	}
	drop()
	defer drop() // an ack may have crossed
	_, err := l.call(ctx, func(id wire.OperationID) wire.Frame { return wire.Unsubscribe{ID: id, Topic: topic} }, nil)
	return err
}
