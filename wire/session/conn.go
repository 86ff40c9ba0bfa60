package session

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// conn is the server's end of one connection. Its goroutines are serve, which reads; the writer, which
// ends when the outbox has ended; a handler for each operation, which ends with the operation's
// context; and the pump of its subscriptions, which ends with the connection's.
type conn struct {
	srv        *Server
	to         *transport
	identifier Identifier
	peer       Peer // its identity is known once the handshake is done
	log        *slog.Logger
	out        *outbox
	in         *frameReader
	gate       *wire.ServerGate
	over       chan struct{} // closed when nothing of the connection is left
	readOver   chan struct{} // closed when nothing more is read
	readerWake chan struct{}
	pumpWake   chan struct{}
	work       sync.WaitGroup // handlers and the pump

	mu      sync.Mutex
	ids     ledger
	running int // handlers, those of ended operations too
	subs    map[string]*subscription
	pumping bool
}

func newConn(s *Server, rwc io.ReadWriteCloser, carrier Carrier, identifier Identifier) *conn {
	c := &conn{
		srv: s, to: &transport{ReadWriteCloser: rwc}, identifier: identifier,
		peer: Peer{Carrier: carrier, SessionID: rand.Text()},
		out:  newOutbox(s.limits.EventQueue, s.limits.EventBytes, s.counters.generation.Load),
		gate: wire.NewServerGate(s.versions),
		over: make(chan struct{}), readOver: make(chan struct{}),
		readerWake: make(chan struct{}, 1), pumpWake: make(chan struct{}, 1),
		ids: newLedger(s.limits.Remembered), subs: map[string]*subscription{},
	}
	c.log = s.log.With("session", c.peer.SessionID, "carrier", string(carrier))
	c.in = newFrameReader(c.to, s.decoder, s.buffers, s.limits.Frame, func() {
		c.fail(wire.MalformedFrame, "a frame that has begun must be whole within "+s.limits.Frame.String())
	})
	return c
}

// serve runs the connection to its end.
func (c *conn) serve(ctx context.Context) {
	defer close(c.over)
	defer context.AfterFunc(ctx, c.cut)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	handshake := time.AfterFunc(c.srv.limits.Handshake, func() {
		c.fail(wire.MalformedFrame, "the handshake must be whole within "+c.srv.limits.Handshake.String())
	})
	defer handshake.Stop()
	if !c.secure(ctx) {
		c.to.cut()
		return
	}
	var writing sync.WaitGroup
	writing.Go(c.write)
	c.converse(ctx, handshake)
	c.out.finish(nil)
	cancel()
	c.in.discard()
	close(c.readOver)
	writing.Wait()
	c.work.Wait()
}

// converse is the connection between its handshake and the last frame that is read. What the
// identifier and the handler are asked here must not take the other connections with it.
func (c *conn) converse(ctx context.Context, handshake *time.Timer) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked(v)
			c.cut()
		}
	}()
	if !c.admit(handshake) {
		return
	}
	if at := c.peer.Identity.Expires; !at.IsZero() {
		defer time.AfterFunc(time.Until(at), func() {
			c.fail(wire.IdentityRejected, "the certificate has expired")
		}).Stop()
	}
	c.read(ctx)
}

// secure completes a TLS handshake, which is where a certificate is verified.
func (c *conn) secure(ctx context.Context) bool {
	secured, ok := c.to.ReadWriteCloser.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, c.srv.limits.Handshake)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		c.log.Info("a TLS handshake failed", "error", err)
		return false
	}
	return true
}

// write writes until the outbox has ended, and then closes. The peer gets a moment to read the last
// frame first: closing a socket with unread bytes can take back what was sent on it.
func (c *conn) write() {
	defer c.to.cut()
	w := newFrameWriter(c.out, c.to, c.srv.encoder, c.srv.buffers, c.srv.limits.Write, c.cut)
	w.spoil = c.spoiled
	w.taken = func() { signal(c.readerWake); signal(c.pumpWake) }
	if err := w.run(); err != nil {
		c.log.Debug("a write failed", "error", err)
		return
	}
	if !c.to.closeWriting() {
		return
	}
	linger := time.NewTimer(c.srv.limits.Linger)
	defer linger.Stop()
	select {
	case <-c.readOver:
	case <-linger.C:
	}
}

// spoiled is what is sent for a frame that cannot be.
func (c *conn) spoiled(f wire.Frame, err error) wire.Frame {
	c.log.Error("a frame could not be encoded", "kind", wire.KindOf(f).String(), "error", err)
	if e, ok := f.(wire.Event); ok && string(e.Payload) != omittedEvent {
		e.Payload = []byte(omittedEvent)
		return e
	}
	if id := idOf(f); id != "" {
		return refusal(id, wire.Internal, "the answer could not be sent")
	}
	return nil
}

// omittedEvent stands for an event's payload that no frame can carry, so that its cursor is not lost.
const omittedEvent = `{"error":{"kind":"event_not_sendable","message":"the event does not fit a frame"}}`

// admit takes the handshake and finds out who the peer is; false when the connection is over.
func (c *conn) admit(handshake *time.Timer) bool {
	f, err := c.in.next()
	handshake.Stop()
	if err != nil {
		c.unreadable(err)
		return false
	}
	outcome := c.gate.Admit(f)
	if outcome.Close {
		c.refuse(outcome)
		return false
	}
	if c.peer.Identity, err = c.identify(); err != nil {
		c.log.Info("a peer was rejected", "error", err)
		c.fail(wire.IdentityRejected, told(err, "the server does not know who you are"))
		return false
	}
	c.log.Debug("a peer connected", "actor", c.peer.Identity.Kind+":"+c.peer.Identity.ID)
	ack, _ := outcome.Ack.Get()
	return c.out.put(ack)
}

func (c *conn) identify() (Identity, error) {
	if c.identifier == nil {
		return Identity{}, errors.New("the connection has no identifier")
	}
	id, err := c.identifier.Identify(c.to.ReadWriteCloser)
	if err == nil && (id.Kind == "" || id.ID == "") {
		err = errors.New("the identifier named nobody")
	}
	return id, err
}

// read takes frames until the connection ends.
func (c *conn) read(ctx context.Context) {
	for c.awaitRoom() {
		f, err := c.in.next()
		if err != nil {
			c.unreadable(err)
			return
		}
		if c.ending() {
			return
		}
		outcome := c.gate.Admit(f)
		if outcome.Close {
			c.refuse(outcome)
			return
		}
		c.dispatch(ctx, f)
	}
}

func (c *conn) dispatch(ctx context.Context, f wire.Frame) {
	switch f := f.(type) {
	case wire.Request:
		c.request(ctx, f)
	case wire.Cancel:
		c.cancelled(f.ID)
	case wire.Subscribe:
		c.subscribe(ctx, f)
	case wire.Unsubscribe:
		c.unsubscribe(f)
	}
}

// awaitRoom waits until a frame may be read: there is a place in the queue for its answer, and one for
// that of every operation in flight. False when the connection is ending.
func (c *conn) awaitRoom() bool {
	for {
		queued, bytes := c.out.load()
		c.mu.Lock()
		live := len(c.ids.live)
		c.mu.Unlock()
		if queued+live < c.srv.limits.Queue && bytes <= c.srv.encoder.MaxPayload() {
			return !c.ending()
		}
		select {
		case <-c.readerWake:
		case <-c.out.ended:
			return false
		}
	}
}

func (c *conn) ending() bool {
	select {
	case <-c.out.ended:
		return true
	default:
		return false
	}
}
