package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// ClientConfig is a client's. A zero field has the value its comment names.
type ClientConfig struct {
	Dial       Dialer        // required
	Version    wire.Version  // the version to ask for: wire.CurrentVersion
	MaxPayload int           // bytes, both ways: wire.DefaultMaxPayload
	Handshake  time.Duration // from dialling to the server's ack: 10 s
	Frame      time.Duration // for a frame of the server once it has begun: 30 s
	Write      time.Duration // for one write: 30 s
	InFlight   int           // operations at a time; more wait for their turn: 64
	EventQueue int           // events of a subscription waiting to be taken: 256
	// RetryMin and RetryMax are the pauses between attempts to take up subscriptions again after the
	// connection was lost: 100 ms, doubled up to 5 s, and up to half less at random.
	RetryMin, RetryMax time.Duration
	Logger             *slog.Logger // where lost connections are told of: nowhere
}

func (cfg ClientConfig) withDefaults() ClientConfig {
	or := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	or(&cfg.Handshake, 10*time.Second)
	or(&cfg.Frame, 30*time.Second)
	or(&cfg.Write, 30*time.Second)
	or(&cfg.RetryMin, 100*time.Millisecond)
	or(&cfg.RetryMax, 5*time.Second)
	if cfg.Version == 0 {
		cfg.Version = wire.CurrentVersion
	}
	if cfg.InFlight <= 0 {
		cfg.InFlight = 64
	}
	if cfg.EventQueue <= 0 {
		cfg.EventQueue = 256
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Client is the client's end. It is for many goroutines. It has one connection at a time, and makes
// another when one is needed and there is none. A request is never sent twice.
type Client struct {
	cfg              ClientConfig
	decoder, encoder wire.Codec
	buffers          *bufferPool
	turn             chan struct{} // held by who looks at link or makes one
	link             *link         // the last one, which may be lost
	closing          chan struct{}
	once             sync.Once
	work             sync.WaitGroup // of links and subscriptions

	mu       sync.Mutex
	followed map[string]struct{} // topics with a subscription
	closed   bool
}

// Dial makes a client and its first connection, handshake included. The context is for that only. The
// error is a *ConnectionError, or one about the configuration.
func Dial(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if cfg.Dial == nil {
		return nil, errors.New("a session client needs a Dialer")
	}
	cfg = cfg.withDefaults()
	decoder, encoder, err := codecs(cfg.MaxPayload)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, decoder: decoder, encoder: encoder, buffers: newBufferPool(),
		turn: make(chan struct{}, 1), closing: make(chan struct{}), followed: map[string]struct{}{},
	}
	if _, err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// connect is the connection there is, or a new one.
func (c *Client) connect(ctx context.Context) (*link, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.isClosing() {
		return nil, ErrClosed
	}
	if l := c.link; l != nil && !l.isLost() {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Handshake)
	defer cancel()
	stop := c.whenClosing(cancel)
	defer stop()
	l, err := c.handshake(ctx)
	if err == nil && !c.run(l) {
		l.to.cut()
		err = ErrClosed
	}
	if err != nil {
		if c.isClosing() {
			return nil, ErrClosed
		}
		return nil, &ConnectionError{Err: err}
	}
	c.link = l
	return l, nil
}

// whenClosing calls f when the client is closed, unless stopped before.
func (c *Client) whenClosing(f func()) (stop func()) {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-c.closing:
			f()
		case <-done:
		}
	})
	return func() { close(done); waiting.Wait() }
}

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// run starts the goroutines of a new link; false when the client is closed.
func (c *Client) run(l *link) bool {
	return c.spawn(l.read) && c.spawn(l.write)
}

// spawn starts a goroutine that Close waits for; false when the client is closed.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

// Close ends the connection and everything on it, and returns when nothing of the client is running.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		close(c.closing)
		c.turn <- struct{}{} // whoever is connecting stops now
		if c.link != nil {
			c.link.fail(ErrClosed)
		}
		<-c.turn
	})
	c.work.Wait()
	return nil
}

// ClientRequest is what a client asks.
type ClientRequest struct {
	Ops string
	// The context members are left out of the frame where they are not present.
	Namespace         wire.Optional[string]
	ActorID           wire.Optional[string]
	VisibleNamespaces wire.Optional[[]string]
}

// Request sends a request and waits for its result. The context's deadline goes with it, and when the
// context ends before the answer, a cancel does too. The error is the context's, a *RemoteError when
// the server refused, a *ConnectionError when there was no connection or it was lost, or a
// *wire.CodecError for a request that no frame can hold. It is never retried.
func (c *Client) Request(ctx context.Context, req ClientRequest) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	f, err := l.call(ctx, func(id wire.OperationID) wire.Frame {
		frame := wire.Request{ID: id, Ops: req.Ops, Namespace: req.Namespace, ActorID: req.ActorID}
		if visible, ok := req.VisibleNamespaces.Get(); ok {
			frame.VisibleNamespaces = wire.Some(wire.NewStringList(visible...))
		}
		if at, ok := ctx.Deadline(); ok {
			// Rounded up: 0 would be refused, and what the server takes too long for this side stops.
			frame.DeadlineMS = wire.Some(uint64(max(0, time.Until(at))/time.Millisecond) + 1)
		}
		return frame
	}, nil)
	if err != nil {
		return nil, err
	}
	return f.(wire.Response).Result, nil
}
