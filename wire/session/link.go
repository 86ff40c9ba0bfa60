package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// link is one connection of a client. Its two goroutines, read and write, end when it is lost.
type link struct {
	client *Client
	to     *transport
	out    *outbox
	in     *frameReader
	gate   *wire.ClientGate
	places chan struct{} // one for each operation in flight
	lost   chan struct{} // closed when the link is
	room   chan struct{}

	mu      sync.Mutex
	err     error // why the link is lost
	nextID  uint64
	pending map[wire.OperationID]*call
	feeds   map[string]*Subscription
}

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

// handshake dials and does the handshake; no goroutine is left behind.
func (c *Client) handshake(ctx context.Context) (*link, error) {
	rwc, err := c.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{
		client: c, to: &transport{ReadWriteCloser: rwc}, gate: wire.NewClientGate(),
		out:    newOutbox(0, func() uint64 { return 0 }),
		places: make(chan struct{}, c.cfg.InFlight), lost: make(chan struct{}), room: make(chan struct{}, 1),
		pending: map[wire.OperationID]*call{}, feeds: map[string]*Subscription{},
	}
	l.in = newFrameReader(l.to, c.decoder, c.buffers, c.cfg.Frame, l.to.cut)
	stop := context.AfterFunc(ctx, l.to.cut)
	err = l.offer(c.cfg.Version)
	if !stop() && err != nil {
		err = ctx.Err() // what the read or write says is only that the connection was cut
	}
	if err != nil {
		l.to.cut()
		return nil, err
	}
	return l, nil
}

func (l *link) offer(version wire.Version) error {
	hello, err := l.client.encoder.Encode(wire.Handshake{Version: version})
	if err != nil {
		return err
	}
	if _, err := l.to.Write(hello); err != nil {
		return fmt.Errorf("send the handshake: %w", err)
	}
	if err := l.gate.Offered(version); err != nil {
		return err
	}
	f, err := l.next()
	if err != nil {
		return fmt.Errorf("read the handshake's answer: %w", err)
	}
	if _, ok := f.(wire.HandshakeAck); !ok {
		return fmt.Errorf("the server answered the handshake with %s", wire.KindOf(f))
	}
	return nil
}

// next is the next frame the gate lets through; whatever else comes is an error.
func (l *link) next() (wire.Frame, error) {
	f, err := l.in.next()
	var bad *wire.CodecError
	switch {
	case errors.As(err, &bad):
		l.gate.Fail(bad)
		return nil, fmt.Errorf("the server sent what is no frame: %w", bad)
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the server closed the connection: %w", err)
	case err != nil:
		return nil, err
	}
	outcome := l.gate.Admit(f)
	if outcome.Verdict == wire.ServerTerminated {
		return nil, remoteError(f.(wire.ErrorFrame))
	}
	if outcome.Close {
		broken, _ := outcome.Error.Get()
		return nil, fmt.Errorf("the server broke the protocol: %s", broken.Message)
	}
	if e, ok := f.(wire.ErrorFrame); ok && !e.ID.Present() {
		return nil, remoteError(e) // of a code this version does not know
	}
	return f, nil
}

// read routes what the server sends until the link is lost.
func (l *link) read() {
	for {
		f, err := l.next()
		if err == nil {
			err = l.route(f)
		}
		if err != nil {
			l.fail(err)
			return
		}
	}
}

func (l *link) write() {
	w := newFrameWriter(l.out, l.to, l.client.encoder, l.client.buffers, l.client.cfg.Write)
	w.spoil = l.spoiled
	w.taken = func() { signal(l.room) }
	if err := w.run(); err != nil {
		l.fail(fmt.Errorf("send: %w", err))
	}
}

// spoiled ends the call whose frame could not be encoded. The server never heard of it.
func (l *link) spoiled(f wire.Frame, err error) wire.Frame {
	l.settle(idOf(f), nil, err)
	return nil
}

// fail ends the link and everything that waits on it. Only the first reason counts.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = err
	pending := l.pending
	l.pending, l.feeds = nil, nil
	l.mu.Unlock()
	l.out.breakOff()
	l.to.cut()
	for _, waiting := range pending {
		waiting.reply <- reply{err: l.lostError(true)}
	}
	close(l.lost)
}

// lostError is what a caller gets when the link is lost.
func (l *link) lostError(sent bool) error {
	if errors.Is(l.err, ErrClosed) {
		return l.err
	}
	return &ConnectionError{Sent: sent, Err: l.err}
}

func (l *link) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
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

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
