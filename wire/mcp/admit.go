package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
)

// admit turns a tool call into a ticket in the context, under which the library may handle the
// frame's message. Parsing happens here and nowhere else, and the time of the request begins. done
// must be called when the call has been answered; it is never nil.
func (s *Server) admit(ctx context.Context, caller dispatcher.Caller, f *frame) (_ context.Context, done func(), _ *refusal) {
	nothing := func() {}
	if f.intent != toolCall {
		return ctx, nothing, nil
	}
	size := len(f.ops)
	if !s.slots.admit(size) {
		return nil, nothing, &refusal{id: f.id, code: codeBusy, message: "too many requests are waiting; nothing has run, try again later"}
	}
	req, err := request.Parse(f.ops)
	if err != nil {
		s.slots.leave(size)
		var parse *request.Error
		if !errors.As(err, &parse) {
			s.log.Error("the parser failed", "error", fmt.Sprintf("%T", err)) // its text may quote params
			return nil, nothing, &refusal{id: f.id, code: codeInternal, message: errInternal.Error()}
		}
		s.runner.RecordParseError(ctx, caller, parse)
		return nil, nothing, opsRefusal(f.id, parse)
	}
	ctx = context.WithValue(ctx, ticketKey{}, &ticket{caller: caller, req: req, size: size, deadline: time.Now().Add(s.timeout)})
	return ctx, func() { s.slots.leave(size) }, nil
}

// tooLong refuses a message that was not read to its end.
func (s *Server) tooLong() *refusal {
	return &refusal{code: codeInvalidRequest, message: fmt.Sprintf("the message is longer than %d bytes, the limit; nothing of it was read, split the request", s.maxBytes)}
}
