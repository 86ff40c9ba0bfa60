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
	held   int        // bytes of the payloads in events
	last   wire.Frame // the error to end with, if any
	state  outboxState

	maxEvents, maxHeld int
	current            func() uint64 // the generation of the policy
	wake               chan struct{} // for the writer
	ended              chan struct{} // closed with the first state but open
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

func newOutbox(maxEvents, maxHeld int, current func() uint64) *outbox {
	return &outbox{
		maxEvents: maxEvents, maxHeld: maxHeld, current: current,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
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

// queued is what became of an event that was to be queued.
type queued uint8

const (
	eventQueued queued = iota // or dropped, on a connection that is ending
	eventsMany                // there are as many as there may be
	eventsHeavy               // its payload finds no room beside the others
)

// putEvent queues an event. One that is alone may be of any size.
func (o *outbox) putEvent(sub *subscription, e Event) queued {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.state != outboxOpen:
		return eventQueued
	case len(o.events) >= o.maxEvents:
		return eventsMany
	case len(o.events) > 0 && o.held+len(e.Payload) > o.maxHeld:
		return eventsHeavy
	}
	o.events = append(o.events, queuedEvent{sub, e})
	o.held += len(e.Payload)
	signal(o.wake)
	return eventQueued
}

// load is how many frames and how many bytes of results are queued.
func (o *outbox) load() (frames, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.frames), o.bytes
}

// eventRoom is how many events the queue still takes, and how many bytes of payloads beside those that
// are in it. An empty queue takes an event of any size.
func (o *outbox) eventRoom() (events, bytes int, empty bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.maxEvents - len(o.events), max(0, o.maxHeld-o.held), len(o.events) == 0
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
	o.state, o.last, o.events, o.held = outboxEnding, last, nil, 0
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
	o.state, o.frames, o.events, o.bytes, o.held = outboxBroken, nil, nil, 0, 0
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
	taken, bytes, generation := 0, 0, o.current()
	for _, q := range o.events {
		view := q.sub.view.Load()
		if !view.gone && view.generation != generation || len(b.events) >= eventPage {
			break
		}
		if taken > 0 && bytes+len(q.event.Payload) > eventBatch {
			break // what the writer holds takes memory beside the queue
		}
		taken++
		bytes += len(q.event.Payload)
		if !view.gone && view.sees(q.event) {
			b.events = append(b.events, q)
		}
	}
	rest := copy(o.events, o.events[taken:])
	clear(o.events[rest:])
	o.events = o.events[:rest]
	o.held -= bytes
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
