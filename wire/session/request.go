package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// request answers a request frame, which has just been received.
func (c *conn) request(ctx context.Context, f wire.Request) {
	received := time.Now()
	op := c.begin(f.ID)
	if op == nil {
		return
	}
	var deadline time.Time
	if ms, ok := f.DeadlineMS.Get(); ok {
		if ms == 0 {
			c.end(op, deadlineExceeded(op.id))
			return
		}
		if ms <= uint64(maxDeadline/time.Millisecond) {
			deadline = received.Add(time.Duration(ms) * time.Millisecond)
		}
	}
	peer, req, err := c.applyContext(f)
	if err != nil {
		c.log.Info("a request's context was rejected", "error", err)
		c.end(op, refusal(op.id, wire.ContextRejected, told(err, "the request's namespaces are not valid")))
		return
	}
	c.start(ctx, op, deadline, func(ctx context.Context) { c.answer(ctx, op, peer, req) })
}

// applyContext lays a request's context members over the peer's identity (session.md).
func (c *conn) applyContext(f wire.Request) (Peer, Request, error) {
	peer := c.peer
	id := &peer.Identity
	namespace, named := f.Namespace.Get()
	actor, acting := f.ActorID.Get()
	visible, seeing := f.VisibleNamespaces.Get()
	switch {
	case id.Fixed && (named || acting || seeing):
		return peer, Request{}, &Rejection{"this connection's certificate says who you are: namespace, actor_id and visible_namespaces must not be sent"}
	case named && namespace == "":
		return peer, Request{}, &Rejection{"namespace must not be empty; leave it out for the default"}
	case acting && (actor == "" || len(actor) > maxActorBytes):
		return peer, Request{}, &Rejection{fmt.Sprintf("actor_id must be 1 to %d bytes long", maxActorBytes)}
	}
	if named {
		id.Namespace = namespace
	}
	if seeing {
		id.Visible = visible.Slice()
	}
	switch {
	case acting && c.srv.trustActorID && peer.Carrier == Unix:
		id.Kind, id.ID = "asserted", actor
	case acting:
		id.AssertedID = actor
	}
	if named || seeing {
		if err := c.srv.handler.ValidContext(id.Namespace, id.Visible); err != nil {
			return peer, Request{}, err
		}
	}
	return peer, Request{
		ID: string(f.ID), Ops: f.Ops, ActorID: actor, Namespace: id.Namespace, Visible: id.Visible,
	}, nil
}

// answer runs the handler and ends the operation with what it says.
func (c *conn) answer(ctx context.Context, op *operation, peer Peer, req Request) {
	result, ok := c.ask(ctx, op, peer, req)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.end(op, deadlineExceeded(op.id))
	case ctx.Err() != nil:
		c.end(op, refusal(op.id, wire.Cancelled, "cancelled"))
	case !ok:
		c.end(op, refusal(op.id, wire.Internal, "the request could not be answered"))
	default:
		c.end(op, wire.Response{ID: op.id, Result: result})
	}
}

// ask calls the handler. A panic is the handler's mistake and ends no more than the operation.
func (c *conn) ask(ctx context.Context, op *operation, peer Peer, req Request) (result []byte, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked(v)
			result, ok = nil, false
		}
	}()
	return c.srv.handler.Request(ctx, peer, req, c.resultBytes(op.id), resultDepth)
}

// resultBytes is how large the result of a response with this id can be.
func (c *conn) resultBytes(id wire.OperationID) int {
	const placeholder = "0"
	empty, err := c.srv.encoder.Encode(wire.Response{ID: id, Result: []byte(placeholder)})
	if err != nil {
		return 0
	}
	return c.srv.encoder.MaxPayload() - (len(empty) - wire.PrefixSize - len(placeholder))
}
