package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

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

// handshake dials and does the handshake; no goroutine is left behind.
func (c *Client) handshake(ctx context.Context) (*link, error) {
	rwc, err := c.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{
		client: c, to: &transport{ReadWriteCloser: rwc}, gate: wire.NewClientGate(),
		out:    newOutbox(0, 0, func() uint64 { return 0 }),
		places: make(chan struct{}, c.cfg.InFlight), lost: make(chan struct{}), room: make(chan struct{}, 1),
		pending: map[wire.OperationID]*call{}, feeds: map[string]*Subscription{},
	}
	l.in = newFrameReader(l.to, c.decoder, c.buffers, c.cfg.Frame, func() {
		l.fail(fmt.Errorf("a frame of the server was not whole within %s", c.cfg.Frame))
	})
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
	w := newFrameWriter(l.out, l.to, l.client.encoder, l.client.buffers, l.client.cfg.Write, func() {
		l.fail(fmt.Errorf("the server read nothing for %s", l.client.cfg.Write))
	})
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
