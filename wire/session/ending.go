package session

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/verbgate/verbgate/wire"
)

// cut ends the connection at once.
func (c *conn) cut() {
	c.out.breakOff()
	c.to.cut()
}

// fail ends the connection with an error. What is in flight is cancelled, and its peer told no more.
func (c *conn) fail(code wire.ErrorCode, message string) {
	c.out.finish(wire.ErrorFrame{Code: code, Message: sendable(message)})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.ids.live {
		op.cancel()
	}
}

// refuse ends the connection with what a gate has to say.
func (c *conn) refuse(outcome wire.Outcome) {
	if f, ok := outcome.Error.Get(); ok {
		c.log.Info("a peer broke the protocol", "code", f.Code.String(), "reason", outcome.Reason.String())
		c.fail(f.Code, f.Message)
	}
}

// unreadable ends the connection after the reader's error. An end between frames is how a connection
// is meant to end, and one that is cut off can be told nothing.
func (c *conn) unreadable(err error) {
	var bad *wire.CodecError
	switch {
	case errors.As(err, &bad):
		c.refuse(c.gate.Fail(bad))
	case !errors.Is(err, io.EOF):
		c.log.Debug("a read failed", "error", err)
	}
}

// dismiss cancels what is in flight, tells the peer so, and ends the connection.
func (c *conn) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.ids.live {
		c.endLocked(op, refusal(op.id, wire.Cancelled, "the server is shutting down"))
	}
	c.out.finish(nil)
}

// panicked logs a panic: where it was, and not its value, which may hold what a log must not.
func (c *conn) panicked(v any) {
	c.log.Error("a handler panicked", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
}

// told is what a peer is told of an error: a rejection's text, and of any other the general one.
func told(err error, general string) string {
	var r *Rejection
	if errors.As(err, &r) {
		return r.Message
	}
	return general
}

// refusal is an error that ends an operation.
func refusal(id wire.OperationID, code wire.ErrorCode, message string) wire.ErrorFrame {
	return wire.ErrorFrame{ID: wire.Some(id), Code: code, Message: sendable(message)}
}

// sendable is a message as an error frame of any bound can hold it.
func sendable(message string) string {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	return strings.ToValidUTF8(message, "\ufffd")
}
