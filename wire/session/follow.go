package session

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// Subscription is a topic a client follows. Each event comes once and in order, also across lost
// connections: it is taken up again after the last event that came. A subscription has a goroutine,
// which ends with Close, Client.Close, or an error that Next returns.
type Subscription struct {
	client *Client
	topic  string
	queue  chan wire.Event
	lag    chan struct{} // an event did not fit the queue
	room   chan struct{} // an event was taken from it
	cancel context.CancelFunc
	over   chan struct{} // closed when no more events are queued
	err    error         // why; set before over is closed

	mu     sync.Mutex
	begun  bool
	start  uint64
	cursor uint64 // of the last event queued, or where the subscription starts
}

// Subscribe follows a topic: with from, after that cursor, else from now on. A client follows a topic
// once. The context is for the answer only. The errors are those of Request.
func (c *Client) Subscribe(ctx context.Context, topic string, from wire.Optional[wire.Cursor]) (*Subscription, error) {
	if !c.claim(topic) {
		return nil, &RemoteError{Code: wire.AlreadySubscribed, Message: "this client follows the topic already"}
	}
	life, cancel := context.WithCancel(context.Background())
	s := &Subscription{
		client: c, topic: topic, queue: make(chan wire.Event, c.cfg.EventQueue), lag: make(chan struct{}, 1),
		room: make(chan struct{}, 1), cancel: cancel, over: make(chan struct{}),
	}
	l, err := s.ask(ctx, from)
	if err == nil && !c.spawn(func() { s.run(life, l) }) {
		err = ErrClosed
	}
	if err == nil {
		return s, nil
	}
	cancel()
	// Without the answer the server may be following after all. The caller does not wait for that to end.
	if l == nil || ctx.Err() == nil || !c.spawn(func() { s.withdraw(l); c.release(topic) }) {
		c.release(topic)
	}
	return nil, err
}

func (c *Client) claim(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.followed[topic]
	c.followed[topic] = struct{}{}
	return !taken
}

func (c *Client) release(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.followed, topic)
}

// Topic is the topic followed.
func (s *Subscription) Topic() string { return s.topic }

// Start is the cursor after which the subscription began.
func (s *Subscription) Start() wire.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Cursor(s.start)
}

// Next is the next event. It waits for one, and across a lost connection. After the last one the error
// is why there are no more: a *RemoteError such as subscription_denied or cursor_expired, or
// ErrClosed.
func (s *Subscription) Next(ctx context.Context) (wire.Event, error) {
	select {
	case e := <-s.queue:
		return s.took(e), nil
	default:
	}
	select {
	case e := <-s.queue:
		return s.took(e), nil
	case <-ctx.Done():
		return wire.Event{}, ctx.Err()
	case <-s.over:
	}
	select { // both were ready
	case e := <-s.queue:
		return e, nil
	default:
		return wire.Event{}, s.err
	}
}

func (s *Subscription) took(e wire.Event) wire.Event {
	signal(s.room)
	return e
}

// Events is Next until it fails; the error comes last.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription, tells the server, and waits for both.
func (s *Subscription) Close() error {
	s.cancel()
	<-s.over
	return nil
}

// ask subscribes on the connection there is.
func (s *Subscription) ask(ctx context.Context, from wire.Optional[wire.Cursor]) (*link, error) {
	l, err := s.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = l.call(ctx, func(id wire.OperationID) wire.Frame {
		return wire.Subscribe{ID: id, Topic: s.topic, ResumeCursor: from}
	}, s)
	return l, err
}

// withdraw makes sure that an answer which comes after all is not followed by events.
func (s *Subscription) withdraw(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), s.client.cfg.Handshake)
	defer cancel()
	_ = l.unfollow(ctx, s.topic)
}

// started takes the server's ack. The link's reader calls it.
func (s *Subscription) started(ack wire.SubscribeAck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun, s.start, s.cursor = true, uint64(ack.StartCursor), uint64(ack.StartCursor)
	}
}

// deliver queues an event; false when there is no room, after which nothing may be delivered until the
// topic is subscribed to again. The link's reader calls it, and must not be made to wait.
func (s *Subscription) deliver(e wire.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uint64(e.Cursor) <= s.cursor {
		return true
	}
	select {
	case s.queue <- e:
		s.cursor = uint64(e.Cursor)
		return true
	default:
		signal(s.lag)
		return false
	}
}

func (s *Subscription) last() wire.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Cursor(s.cursor)
}

// run takes the subscription up again whenever it was lost.
func (s *Subscription) run(ctx context.Context, l *link) {
	defer close(s.over) // last: who learns of the end may subscribe again at once
	defer s.client.release(s.topic)
	defer s.cancel()
	for {
		select {
		case <-ctx.Done():
			s.withdraw(l)
			s.err = ErrClosed
			return
		case <-l.lost:
			if s.client.isClosing() { // it is not lost but closed
				s.err = ErrClosed
				return
			}
			s.client.cfg.Logger.Info("the connection was lost", "topic", s.topic, "error", l.err)
		case <-s.lag:
			s.awaitRoom(ctx, l)
		}
		if l, s.err = s.resume(ctx, l); s.err != nil {
			return
		}
	}
}

// awaitRoom ends a subscription whose events are not taken fast enough, until they are.
func (s *Subscription) awaitRoom(ctx context.Context, l *link) {
	s.withdraw(l)
	for len(s.queue) > cap(s.queue)/2 {
		select {
		case <-s.room:
		case <-ctx.Done():
			return
		case <-s.client.closing:
			return
		}
	}
}

// resume subscribes again after the last event, as often as it takes.
func (s *Subscription) resume(ctx context.Context, old *link) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.client.whenClosing(cancel)()
	wait := s.client.cfg.RetryMin
	for first := true; ; first = false {
		if !first || old.isLost() {
			jitter := time.Duration(rand.Int64N(int64(wait)/2 + 1))
			if pause(ctx, wait-jitter) != nil {
				return nil, ErrClosed
			}
			wait = min(2*wait, s.client.cfg.RetryMax)
		}
		after := s.last()
		l, err := s.ask(ctx, wire.Some(after))
		switch {
		case err == nil:
			s.client.cfg.Logger.Info("the subscription was taken up again", "topic", s.topic, "after", uint64(after))
			return l, nil
		case ctx.Err() != nil:
			if l != nil {
				s.withdraw(l)
			}
			return nil, ErrClosed
		case hopeless(err):
			return nil, err
		}
		s.client.cfg.Logger.Info("the subscription could not be taken up again yet", "topic", s.topic, "error", err)
	}
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
