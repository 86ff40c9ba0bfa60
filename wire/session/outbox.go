package session

import (
	"sync"

	"github.com/verbgate/verbgate/wire"
)

// outbox is what waits to be written on a connection. Nothing that puts into it ever waits: whoever
// produces frames looks for room first.
type outbox struct {
	mu     sync.Mutex
	frames []wire.Frame
	bytes  int // of the results in frames
	events []queuedEvent
	last   wire.Frame // the error to end with, if any
	state  outboxState

	maxEvents int
	current   func() uint64 // the generation of the policy
	wake      chan struct{} // for the writer
	ended     chan struct{} // closed with the first state but open
}

type outboxState uint8

const (
	outboxOpen   outboxState = iota
	outboxEnding             // what is queued is written, then last, then nothing
	outboxBroken             // nothing is written any more
)

// queuedEvent is an event on its way to a subscription.
type queuedEvent struct {
	sub   *subscription
	event Event
}

func newOutbox(maxEvents int, current func() uint64) *outbox {
	return &outbox{maxEvents: maxEvents, current: current, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put queues a frame; false when the connection is ending.
func (o *outbox) put(f wire.Frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != outboxOpen {
		return false
	}
	o.frames = append(o.frames, f)
	o.bytes += weight(f)
	signal(o.wake)
	return true
}

// putEvent queues an event; false when the queue is full. On an ending connection it does nothing.
func (o *outbox) putEvent(sub *subscription, e Event) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != outboxOpen {
		return true
	}
	if len(o.events) >= o.maxEvents {
		return false
	}
	o.events = append(o.events, queuedEvent{sub, e})
	signal(o.wake)
	return true
}

// load is how many frames and how many bytes of results are queued.
func (o *outbox) load() (frames, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.frames), o.bytes
}

// eventRoom is how many events the queue still takes.
func (o *outbox) eventRoom() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.maxEvents - len(o.events)
}

// finish ends the connection once what is queued has been written, with a last error frame if it is
// not nil. Events that wait are dropped: who comes back resumes at its cursor. Only the first call
// counts.
func (o *outbox) finish(last wire.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != outboxOpen {
		return
	}
	o.state, o.last, o.events = outboxEnding, last, nil
	close(o.ended)
	signal(o.wake)
}

// breakOff ends writing at once.
func (o *outbox) breakOff() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == outboxOpen {
		close(o.ended)
	}
	o.state, o.frames, o.events, o.bytes = outboxBroken, nil, nil, 0
	signal(o.wake)
}

// batch is what the writer took: frames, then events.
type batch struct {
	frames []wire.Frame
	events []queuedEvent
	room   bool // something left the queues
	over   bool // nothing comes after this batch
}

// take is everything that may be written now. Frames come before events, so that a subscription's ack
// comes before its first event. It reuses the batch's memory.
func (o *outbox) take(b *batch) {
	clear(b.frames)
	clear(b.events)
	o.mu.Lock()
	defer o.mu.Unlock()
	b.frames, o.frames = o.frames, b.frames[:0]
	o.bytes = 0
	b.events = b.events[:0]
	b.room = len(b.frames) > 0
	if o.state != outboxOpen {
		if o.last != nil {
			b.frames = append(b.frames, o.last)
			o.last = nil
		}
		b.over = true
		return
	}
	o.takeEvents(b)
}

// takeEvents takes the events whose subscriptions the policy of this moment has been asked about. An
// event of another holds back what is behind it.
func (o *outbox) takeEvents(b *batch) {
	taken, generation := 0, o.current()
	for _, q := range o.events {
		view := q.sub.view.Load()
		if !view.gone && view.generation != generation || len(b.events) >= eventPage {
			break
		}
		taken++
		if !view.gone && view.sees(q.event) {
			b.events = append(b.events, q)
		}
	}
	rest := copy(o.events, o.events[taken:])
	clear(o.events[rest:])
	o.events = o.events[:rest]
	b.room = b.room || taken > 0
}

// weight is roughly the memory a queued frame holds.
func weight(f wire.Frame) int {
	switch f := f.(type) {
	case wire.Response:
		return len(f.Result)
	case wire.Request:
		return len(f.Ops)
	default:
		return 0
	}
}

// signal wakes whoever waits on a channel of capacity one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
