package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/wire/session"
)

// handler puts the dispatcher behind the connections of the framed protocol.
type handler struct {
	dispatcher *dispatcher.Dispatcher
	cfg        *config
	log        *slog.Logger
	turns      chan struct{} // one place for each request that runs
}

// caller is who the peer of a connection is to the dispatcher.
func (h *handler) caller(peer session.Peer, namespace string, visible []string) dispatcher.Caller {
	actor := policy.Actor{Kind: peer.Identity.Kind, ID: peer.Identity.ID}
	if peer.Identity.AssertedID != "" {
		actor.Claims = map[string]any{"asserted_id": peer.Identity.AssertedID}
	}
	if namespace == "" {
		namespace = h.cfg.Namespace
	}
	if visible == nil {
		visible = h.cfg.Visible
	}
	return dispatcher.Caller{
		Source: dispatcher.Wire, Transport: string(peer.Carrier), SessionID: peer.SessionID,
		Actor: actor, Namespace: namespace, Visible: visible,
	}
}

// Request is session.Handler's: the same parsing and dispatching as everywhere else.
func (h *handler) Request(ctx context.Context, peer session.Peer, req session.Request, size, depth int) ([]byte, bool) {
	caller := h.caller(peer, req.Namespace, req.Visible)
	parsed, err := request.Parse(req.Ops)
	if err != nil {
		var parse *request.Error
		if !errors.As(err, &parse) {
			h.log.Error("the parser failed", "error", fmt.Sprintf("%T", err)) // its text may quote params
			return nil, false
		}
		h.dispatcher.RecordParseError(ctx, caller, parse)
		text, err := parseErrorResult(parse)
		return text, err == nil && len(text) <= size
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.Limits.RequestTimeout) // waiting for a turn counts
		defer cancel()
	}
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done(): // the dispatcher says so, and records it
	}
	return h.dispatcher.Run(ctx, caller, parsed).Fit(size, depth)
}

// framedTurns is how many requests of all framed connections run at once. Others wait: what a request
// holds for its answer is bounded, so this bounds the memory of all of them.
const framedTurns = 16

// parseErrorAnswer is the result of a text that is no request (session.md).
type parseErrorAnswer struct {
	Code    dispatcher.Code   `json:"code"`
	Reason  string            `json:"reason"`
	Kind    request.ErrorKind `json:"kind"`
	Message string            `json:"message"`
	Pos     *int              `json:"pos,omitempty"`
}

const parseErrorReason = "parse-error"

func parseErrorResult(err *request.Error) ([]byte, error) {
	answer := parseErrorAnswer{Code: dispatcher.CodeInvalidParams, Reason: parseErrorReason, Kind: err.Kind, Message: err.Error()}
	if err.HasPos {
		answer.Pos = &err.Pos
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"error": answer}); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// ValidContext is session.Handler's.
func (h *handler) ValidContext(namespace string, visible []string) error {
	if err := checkContext(namespace, visible); err != nil {
		return &session.Rejection{Message: err.Error()}
	}
	return nil
}

// Subscribe is session.Handler's. Whether there is such a topic is not asked before the gate: newEvents'
// answer to that comes afterwards.
func (h *handler) Subscribe(ctx context.Context, peer session.Peer, topic string, resume *uint64) ([]string, error) {
	caller := h.caller(peer, peer.Identity.Namespace, peer.Identity.Visible)
	readable, err := h.dispatcher.MaySubscribe(ctx, caller, topic, resume)
	if err != nil {
		return nil, &session.Rejection{Message: err.Error()} // as in the entry of an operation that was refused
	}
	return readable, nil
}

// events is the audit store as the source of the topics there are.
type events struct {
	store  *audit.Store
	topics []string
}

func newEvents(store *audit.Store, topics []string) *events { return &events{store, topics} }

// Bounds is session.Events'.
func (e *events) Bounds(ctx context.Context, topic string) (floor, head uint64, err error) {
	if !slices.Contains(e.topics, topic) {
		return 0, 0, session.ErrUnknownTopic
	}
	return e.store.Bounds(ctx, topic)
}

// Read is session.Events'.
func (e *events) Read(ctx context.Context, topic string, after uint64, limit int) ([]session.Event, error) {
	page, err := e.store.Events(ctx, topic, after, limit)
	var expired *audit.ExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, nil // the session finds that in the bounds, which it reads again
	case err != nil:
		return nil, err
	}
	out := make([]session.Event, 0, len(page))
	for _, ev := range page {
		out = append(out, session.Event{
			Topic: ev.Topic, Cursor: ev.Cursor, OccurredAt: ev.Time.UTC().Format(time.RFC3339Nano),
			Namespace: ev.Namespace, Payload: ev.Payload,
		})
	}
	return out, nil
}

// Changed is session.Events'.
func (e *events) Changed() <-chan struct{} { return e.store.Changed() }
