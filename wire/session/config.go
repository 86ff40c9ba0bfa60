package session

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// Config is a server's.
type Config struct {
	Handler Handler // required
	// Events is where subscriptions read; without it every subscription is denied.
	Events Events
	// Operators says who may follow the gate.* topics; without it nobody may.
	Operators func(Identity) bool
	// TrustActorID makes a request's actor_id the actor's id, with kind asserted, instead of a claim; on
	// Unix sockets only. (unix.trust_actor_id)
	TrustActorID bool
	// Versions is the protocol versions the server takes; the zero range is wire.DefaultRange.
	Versions wire.SupportedRange
	// MaxPayload is the largest payload in bytes, both ways; 0 is wire.DefaultMaxPayload.
	MaxPayload int
	Limits     Limits
	Logger     *slog.Logger // required
}

// Limits are what a connection may take. A zero field is session.md's value.
type Limits struct {
	Handshake   time.Duration // from accept to the whole handshake: 10 s
	Frame       time.Duration // from a frame's first byte to its last: 30 s
	Write       time.Duration // for one write: 30 s
	Drain       time.Duration // for what is in flight at shutdown: 10 s
	Linger      time.Duration // for a peer to read the last frame before the connection is cut: 1 s
	Queue       int           // frames but events waiting to be written: 128
	EventQueue  int           // events waiting to be written: 1024
	EventBytes  int           // bytes of their payloads, or a single larger one: 4 MiB, of which session.md says nothing
	InFlight    int           // operations of a connection: 64; at most half of Queue
	Remembered  int           // ended ids that cannot be used again: 1024
	Connections int           // 512
}

// What is not configurable (session.md).
const (
	maxIDBytes    = 256
	maxDeadline   = 24 * time.Hour
	maxActorBytes = 256
	maxTopicBytes = 256
	// maxMessage is how much of an error's text is sent, in bytes.
	maxMessage = 512
	// resultDepth is how deep a result may be nested: a payload's 127 levels less its object.
	resultDepth = 126
	// eventPage is how many events are read, or taken to be written, at a time; eventBatch how many bytes
	// of payloads are taken, unless a single one has more.
	eventPage  = 128
	eventBatch = 1 << 20
	// eventRetry is the pause after the event store failed.
	eventRetry = time.Second
)

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.Handshake, 10 * time.Second}, {&l.Frame, 30 * time.Second}, {&l.Write, 30 * time.Second},
		{&l.Drain, 10 * time.Second}, {&l.Linger, time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	for _, n := range []struct {
		field *int
		value int
	}{
		{&l.Queue, 128}, {&l.EventQueue, 1024}, {&l.EventBytes, 4 << 20}, {&l.InFlight, 64}, {&l.Remembered, 1024}, {&l.Connections, 512},
	} {
		if *n.field == 0 {
			*n.field = n.value
		}
	}
	return l
}

func (l Limits) check() error {
	for _, d := range []time.Duration{l.Handshake, l.Frame, l.Write, l.Drain, l.Linger} {
		if d < 0 {
			return fmt.Errorf("a limit of time must not be negative, as %s is", d)
		}
	}
	for _, n := range []int{l.Queue, l.EventQueue, l.EventBytes, l.InFlight, l.Remembered, l.Connections} {
		if n < 0 {
			return fmt.Errorf("a limit must not be negative, as %d is", n)
		}
	}
	if l.InFlight > l.Queue/2 {
		return fmt.Errorf("%d operations in flight need a queue of at least %d frames, not %d", l.InFlight, 2*l.InFlight, l.Queue)
	}
	return nil
}

// Server speaks the server's end on any number of connections.
type Server struct {
	handler      Handler
	events       Events
	operators    func(Identity) bool
	trustActorID bool
	versions     wire.SupportedRange
	decoder      wire.Codec // the default profile
	encoder      wire.Codec // the strict one: nothing leaves that it refuses
	limits       Limits
	log          *slog.Logger
	buffers      *bufferPool

	mu       sync.Mutex
	book     serverBook
	counters counters
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Handler == nil:
		return nil, errors.New("a session server needs a Handler")
	case cfg.Logger == nil:
		return nil, errors.New("a session server needs a Logger")
	}
	limits := cfg.Limits.withDefaults()
	if err := limits.check(); err != nil {
		return nil, err
	}
	if cfg.Versions == (wire.SupportedRange{}) {
		cfg.Versions = wire.DefaultRange()
	}
	decoder, encoder, err := codecs(cfg.MaxPayload)
	if err != nil {
		return nil, err
	}
	return &Server{
		handler: cfg.Handler, events: cfg.Events, operators: cfg.Operators, trustActorID: cfg.TrustActorID,
		versions: cfg.Versions, decoder: decoder, encoder: encoder, limits: limits, log: cfg.Logger,
		buffers: newBufferPool(), book: newServerBook(),
	}, nil
}

// minPayload leaves room for an error frame with the longest id and a message.
const minPayload = 8 << 10

// codecs are what either end reads and writes with.
func codecs(bound int) (decoder, encoder wire.Codec, err error) {
	if bound == 0 {
		bound = wire.DefaultMaxPayload
	}
	if bound < minPayload {
		return decoder, encoder, fmt.Errorf("the largest payload must be at least %d bytes, not %d", minPayload, bound)
	}
	if decoder, err = wire.NewCodec(wire.Config{MaxPayload: wire.Some(bound)}); err != nil {
		return decoder, encoder, err
	}
	encoder, err = wire.NewCodec(wire.Config{MaxPayload: wire.Some(bound), Strict: true})
	return decoder, encoder, err
}
