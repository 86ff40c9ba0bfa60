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
// It returns nil at the end of in, after the calls that were under way have been answered, and nil
// after ctx ended, with those calls cancelled. A failed read or write is an error, and a failed write
// cancels the calls. When it returns before the end of in, a goroutine stays behind in in.Read and ends
// when that returns.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	caller := s.caller
	caller.Transport, caller.SessionID = "stdio", uuid.NewString()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := &conn{server: s, caller: caller, calls: make(map[string]*underway),
		turns: make(chan struct{}, cap(s.slots.free)), answers: make(chan answer, 256), stop: stop}

	written := make(chan struct{})
	go func() { // ends when answers is closed
		defer close(written)
		c.write(out)
	}()
	lines := make(chan line)
	go readLines(ctx, in, s.maxBytes, lines)

	err := c.read(ctx, lines)
	finished := make(chan struct{})
	go func() { // ends with the last call and the last write
		defer close(finished)
		c.running.Wait()
		close(c.answers)
		<-written
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-finished:
		case <-grace.C:
			s.log.Warn("mcp client does not read its answers; leaving")
		}
	}
	var failed *writeError
	if cause := context.Cause(ctx); errors.As(cause, &failed) {
		return cause
	}
	return err
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
	// turns holds a token for every call from its start until its answer is written: a client that
	// does not read stops its own calls, and not the reading of its cancellations.
	turns   chan struct{}
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

// read handles the client's messages until they or ctx end.
func (c *conn) read(ctx context.Context, lines <-chan line) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, open := <-lines:
			switch {
			case !open:
				return nil
			case l.long:
				c.refuse(ctx, c.server.tooLong())
			case len(bytes.TrimSpace(l.text)) > 0:
				c.handle(ctx, l.text)
			}
			if l.err != nil && !errors.Is(l.err, io.EOF) {
				c.stop(nil)
				return fmt.Errorf("read from the mcp client: %w", l.err)
			}
		}
	}
}

// say sends an answer nobody waits for. It gives up when the connection stops.
func (c *conn) say(ctx context.Context, text []byte) {
	select {
	case c.answers <- answer{text: text}:
	case <-ctx.Done():
	}
}

func (c *conn) refuse(ctx context.Context, r *refusal) { c.say(ctx, r.encode()) }

// handle deals with one message. It does not wait for calls.
func (c *conn) handle(ctx context.Context, text []byte) {
	f, refused := inspect(text)
	if refused != nil {
		c.refuse(ctx, refused)
		return
	}
	switch f.intent {
	case ignore:
	case cancel:
		c.cancel(f.target)
	case plain:
		for _, text := range c.server.handle(ctx, f) {
			c.say(ctx, text)
		}
	case toolCall:
		c.call(ctx, f)
	}
}

// call starts a call on a goroutine of its own, which ends when its answer has been written or its
// client has cancelled it.
func (c *conn) call(ctx context.Context, f *frame) {
	key := callKey(f.id)
	callCtx, end := context.WithCancel(ctx)
	self := &underway{end}
	if !c.enlist(key, self) {
		end()
		// With the id, the answer would be taken for the one of the call under way.
		c.refuse(ctx, &refusal{code: codeInvalidRequest, message: fmt.Sprintf("a call with the id %s is under way; use an id once", f.id)})
		return
	}
	callCtx, done, refused := c.server.admit(callCtx, c.caller, f)
	if refused != nil {
		c.delist(key, self)
		end()
		c.refuse(ctx, refused)
		return
	}
	c.running.Go(func() {
		defer end()
		defer done()
		select {
		case c.turns <- struct{}{}:
			defer func() { <-c.turns }()
		case <-callCtx.Done():
		}
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
