package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher"
)

// stopGrace is how long a stopping connection waits for its calls, which have been cancelled, and
// for the client to read their answers.
const stopGrace = 10 * time.Second

// ServeStdio serves one client that sends a JSON-RPC message a line on in and reads answers on out.
// Nothing else is written to out.
//
// It returns nil at the end of in, after the calls that were under way have been answered. When ctx
// ends it reads no further, lets the calls under way finish for Config.DrainTimeout, cancels those
// that have not, and returns nil. After the end of in, the end of ctx cancels them at once: a client
// closes its side first and has its process told to end when it has waited long enough. A failed
// read or write is an error, and cancels the calls.
//
// When it returns before the end of in, a goroutine stays behind in in.Read and ends when that
// returns.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	caller := s.caller
	caller.Transport, caller.SessionID = "stdio", uuid.NewString()
	// Calls outlive ctx by the time of draining.
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	c := &conn{server: s, caller: caller, calls: make(map[string]*underway),
		turns: newTurns(cap(s.slots.free)), answers: make(chan answer, 256), stop: stop}

	written := make(chan struct{})
	go func() { // ends when answers is closed
		defer close(written)
		c.write(out)
	}()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	defer context.AfterFunc(base, stopReading)()
	lines := make(chan line)
	go readLines(reading, in, s.maxBytes, lines)

	ended, err := c.read(reading, base, lines)
	if ended {
		s.log.Debug("the mcp client has closed its side")
	}
	finished := make(chan struct{})
	go func() { // ends with the last call and the last write
		defer close(finished)
		c.running.Wait()
		close(c.answers)
		<-written
	}()
	s.finish(ctx, base, stop, ended, finished)
	var failed *writeError
	if cause := context.Cause(base); errors.As(cause, &failed) {
		return cause
	}
	return err
}

// finish waits until the calls have ended and been answered, and cancels them when that takes too
// long. ended tells that there is no more input.
func (s *Server) finish(ctx, base context.Context, stop context.CancelCauseFunc, ended bool, finished <-chan struct{}) {
	select {
	case <-finished:
		return
	case <-base.Done(): // cancelled already
	case <-ctx.Done():
		if !ended {
			s.log.Info(sayDraining, "at_most", s.drain)
			drain := time.NewTimer(s.drain)
			defer drain.Stop()
			select {
			case <-finished:
				return
			case <-base.Done():
			case <-drain.C:
				s.log.Warn(sayLate)
			}
		}
		stop(nil)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
		s.log.Warn("mcp client does not read its answers; leaving")
	}
}

// writeError is why the connection ended when the client could not be written to.
type writeError struct{ err error }

func (e *writeError) Error() string { return fmt.Sprintf("write to the mcp client: %v", e.err) }
func (e *writeError) Unwrap() error { return e.err }

// answer is one line to the client. done, if any, is closed when it has been written or given up.
type answer struct {
	text []byte
	done chan struct{}
}

// conn is one stdio connection.
type conn struct {
	server  *Server
	caller  dispatcher.Caller
	running sync.WaitGroup
	// turns are taken by every call from its start until its answer is written: a client that does
	// not read stops its own calls, and not the reading of its cancellations.
	turns   turns
	answers chan answer
	stop    context.CancelCauseFunc

	mu    sync.Mutex
	calls map[string]*underway // by callKey
}

// underway is a call that has no answer yet. Its address tells it from a later call of the same id.
type underway struct{ end context.CancelFunc }

// write is the only writer of the client's stream.
func (c *conn) write(out io.Writer) {
	broken := false
	for a := range c.answers {
		if !broken {
			if _, err := out.Write(append(a.text, '\n')); err != nil {
				broken = true
				c.stop(&writeError{err})
			}
		}
		if a.done != nil {
			close(a.done)
		}
	}
}

// read handles the client's messages until they or reading end; calls run under base. ended tells
// that there is no more input.
func (c *conn) read(reading, base context.Context, lines <-chan line) (ended bool, err error) {
	for reading.Err() == nil {
		select {
		case <-reading.Done():
		case l, open := <-lines:
			switch {
			case !open:
				return reading.Err() == nil, nil // told to stop, readLines closes it too
			case l.long:
				c.refuse(reading, c.server.tooLong())
			case len(bytes.TrimSpace(l.text)) > 0:
				c.handle(reading, base, l.text)
			}
			if l.err != nil && !errors.Is(l.err, io.EOF) {
				c.stop(nil)
				return true, fmt.Errorf("read from the mcp client: %w", l.err)
			}
		}
	}
	return false, nil
}

// say sends an answer nobody waits for. It gives up when the connection stops reading.
func (c *conn) say(ctx context.Context, text []byte) {
	select {
	case c.answers <- answer{text: text}:
	case <-ctx.Done():
	}
}

func (c *conn) refuse(ctx context.Context, r *refusal) { c.say(ctx, r.encode()) }

// handle deals with one message. It does not wait for calls, which run under base.
func (c *conn) handle(reading, base context.Context, text []byte) {
	f, refused := inspect(text)
	if refused != nil {
		c.refuse(reading, refused)
		return
	}
	switch f.intent {
	case ignore:
	case cancel:
		c.cancel(f.target)
	case plain:
		for _, text := range c.server.handle(reading, f) {
			c.say(reading, text)
		}
	case toolCall:
		c.call(reading, base, f)
	}
}

// call starts a call on a goroutine of its own, which ends when its answer has been written or its
// client has cancelled it.
func (c *conn) call(reading, base context.Context, f *frame) {
	key := callKey(f.id)
	callCtx, end := context.WithCancel(base)
	self := &underway{end}
	if !c.enlist(key, self) {
		end()
		// With the id, the answer would be taken for the one of the call under way.
		c.refuse(reading, &refusal{code: codeInvalidRequest, message: fmt.Sprintf("a call with the id %s is under way; use an id once", f.id)})
		return
	}
	callCtx, done, refused := c.server.admit(callCtx, c.caller, f)
	if refused != nil {
		c.delist(key, self)
		end()
		c.refuse(reading, refused)
		return
	}
	c.running.Go(func() {
		defer end()
		defer done()
		defer c.turn(callCtx)()
		texts := c.server.handle(callCtx, f)
		if !c.delist(key, self) {
			return // cancelled by the client, which expects no answer
		}
		for _, text := range texts {
			a := answer{text: text, done: make(chan struct{})}
			c.answers <- a
			<-a.done
		}
	})
}

// turn waits for one of the connection's turns until the call ends or its time is over; what becomes
// of it then is for the tool to say. The function it returns gives the turn back.
func (c *conn) turn(ctx context.Context) (giveBack func()) {
	deadline, size := termsOf(ctx)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if c.turns.acquire(ctx, size) != nil {
		return func() {}
	}
	return func() { c.turns.release(size) }
}

// enlist makes a call known to cancel, unless its id is taken.
func (c *conn) enlist(key string, call *underway) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] != nil {
		return false
	}
	c.calls[key] = call
	return true
}

// delist undoes enlist, or reports that cancel has.
func (c *conn) delist(key string, call *underway) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] != call {
		return false
	}
	delete(c.calls, key)
	return true
}

// cancel ends the context of one of this client's calls. An id that is not under way is none of
// anybody's business.
func (c *conn) cancel(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[key]; call != nil {
		delete(c.calls, key)
		call.end()
	}
}
