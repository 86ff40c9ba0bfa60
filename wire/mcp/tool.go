package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
)

// decisionIDs is the member of a result's _meta that holds the gate's decision id of every entry, in
// the order of the entries; null for an entry the gate was not asked about.
const decisionIDs = "verbgate/decision_ids"

const instructions = `Every verb is called through the one tool, request. Its answer has one entry per operation; read each entry's ok, and on failure its code and error, which say what to do instead.`

const inputSchema = `{"type":"object","properties":{"ops":{"type":"string","minLength":1,` +
	`"description":"The operations: verb(name=value, …), a batch [a(), b()], or a chain a() | b(x=$prev.field)."}},` +
	`"required":["ops"],"additionalProperties":false}`

// outputSchema describes the envelope (request.md 8). It names what a client may rely on and leaves
// the rest open, so that a later member of the envelope breaks no client that validates.
const outputSchema = `{"type":"object","properties":{` +
	`"results":{"type":"array","items":{"type":"object","properties":{` +
	`"ok":{"type":"boolean"},"tool":{"type":"string"},"result":{},` +
	`"error":{"anyOf":[{"type":"string"},{"type":"object","properties":{"kind":{"type":"string"},"message":{"type":"string"}},"required":["kind","message"]}]},` +
	`"code":{"type":"string"},"policy_code":{"type":"string"},"decision_id":{"type":"string"},"retry_after_ms":{"type":"integer"},"aborted":{"type":"boolean"},` +
	`"advisories":{"type":"array","items":{"type":"object","properties":{"code":{"type":"string"},"severity":{"type":"string"},"component":{"type":"string"},"message":{"type":"string"}},` +
	`"required":["code","severity","component","message"]}}},` +
	`"required":["ok","tool"]}},` +
	`"summary":{"type":"object","properties":{"total":{"type":"integer"},"succeeded":{"type":"integer"},"failed":{"type":"integer"},"aborted":{"type":"integer"}},` +
	`"required":["total","succeeded","failed","aborted"]},` +
	`"status":{"type":"string","enum":["success","partial"]},"request_id":{"type":"string"}},` +
	`"required":["results","summary","status","request_id"]}`

// tool describes the tool. What the verbs do is up to the packs, so the annotations claim the worst.
func tool(verbs []packs.Listing) mcp.Tool {
	yes, no := true, false
	return mcp.Tool{
		Name:            toolName,
		Title:           "Run verbs",
		Description:     description(verbs),
		RawInputSchema:  json.RawMessage(inputSchema),
		RawOutputSchema: json.RawMessage(outputSchema),
		Annotations: mcp.ToolAnnotation{
			Title:           "Run verbs",
			ReadOnlyHint:    &no,
			DestructiveHint: &yes,
			IdempotentHint:  &no,
			OpenWorldHint:   &yes,
		},
	}
}

// description teaches the DSL in a few lines and lists the verbs, grouped as given.
func description(verbs []packs.Listing) string {
	var b strings.Builder
	b.WriteString(`Run one or more verbs. ops is text:
  verb(name=value, …)                 one operation; values are JSON, strings in double quotes
  [a(x=1), b(y="t")]                  up to 100 operations, run in parallel
  a(x=1) | b(id=$prev.items[0].id)    a chain; $prev is the result before
Add help=true to a call to have the verb described instead of run. Every operation is checked and judged by a policy; a refusal says why.

Verbs:
`)
	for _, v := range verbs {
		fmt.Fprintf(&b, "  %s — %s\n", v.Signature, v.Description)
	}
	if len(verbs) == 0 {
		b.WriteString("  none\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ticket is a parsed call on its way through the library to call. It brings the deadline along, which
// the library's context does not have: the library leaves a call whose context ended without an answer.
type ticket struct {
	caller   dispatcher.Caller
	req      *request.Request
	size     int // of its text in bytes
	deadline time.Time
}

type ticketKey struct{}

// termsOf are the deadline of the call in ctx and the size of its text.
func termsOf(ctx context.Context) (deadline time.Time, size int) {
	t, ok := ctx.Value(ticketKey{}).(*ticket)
	if !ok {
		return time.Time{}, 0
	}
	return t.deadline, t.size
}

// The errors a client can get from call. The library sends their text.
var (
	errInternal = errors.New("internal")
	errGone     = errors.New("cancelled before it ran")
)

// call is the tool's handler. What it runs is the ticket in the context; the library's own idea of
// the arguments is not looked at.
func (s *Server) call(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	t, ok := ctx.Value(ticketKey{}).(*ticket)
	if !ok {
		s.log.Error("a tool call came past the filter")
		return nil, errInternal
	}
	ctx, cancel := context.WithDeadline(ctx, t.deadline)
	defer cancel()
	var env *dispatcher.Envelope
	switch err := s.slots.acquire(ctx, t.size); {
	case err == nil:
		env = s.run(ctx, t)
		s.slots.release(t.size)
	case errors.Is(err, context.DeadlineExceeded):
		env = s.run(ctx, t) // runs nothing, so it needs no turn
	default:
		return nil, errGone
	}
	if env == nil {
		return nil, errInternal
	}
	result, err := toolResult(env)
	if err != nil {
		s.log.Error("an envelope does not encode", "request_id", env.RequestID, "error", err)
		return nil, errInternal
	}
	return result, nil
}

// run calls the runner on a goroutine of its own, which ends with the call, so that neither a panic
// nor a runtime.Goexit under it takes the connection along. nil means that it did not come back.
func (s *Server) run(ctx context.Context, t *ticket) *dispatcher.Envelope {
	done := make(chan *dispatcher.Envelope, 1)
	go func() {
		var env *dispatcher.Envelope
		returned := false
		defer func() {
			if r := recover(); r != nil || !returned {
				// The type only: the value may hold anything.
				s.log.Error("the runner did not return", "panic", fmt.Sprintf("%T", r))
				env = nil
			}
			done <- env
		}()
		env = s.runner.Run(ctx, t.caller, t.req)
		returned = true
	}()
	return <-done
}

// toolResult is the envelope as structured content and, for clients that know only text, as the same
// JSON in a text block.
func toolResult(env *dispatcher.Envelope) (*mcp.CallToolResult, error) {
	raw, err := env.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode envelope: %w", err)
	}
	ids := make([]any, len(env.Results))
	for i := range env.Results {
		if id := env.Results[i].DecisionID; id != "" {
			ids[i] = id
		}
	}
	return &mcp.CallToolResult{
		Result:               mcp.Result{Meta: &mcp.Meta{AdditionalFields: map[string]any{decisionIDs: ids}}},
		Content:              []mcp.Content{mcp.TextContent{Type: mcp.ContentTypeText, Text: string(raw)}},
		RawStructuredContent: raw,
		IsError:              env.Summary.Succeeded == 0,
	}, nil
}
