package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// nesting is what a running verb can reach besides its params: other verbs and the subscribers of its
// topics. It lasts as long as the handler does.
//
// It lets the verb call other verbs: through the same pipeline, for the same actor, with
// the same token, within the outer request's deadline (dispatch.md 1). Whatever refuses the nested call
// refuses it as it would refuse the caller's own.
type nesting struct {
	r     *run
	above operation
	token *Token
	ctx   context.Context // of the verb's own call; every nested call ends with it
	stop  context.CancelFunc

	topics []string // the pack's

	mu     sync.Mutex // guards ended and events, and calls.Add against end
	ended  bool
	events []policy.Event
	calls  sync.WaitGroup
}

func (r *run) nest(ctx context.Context, above operation, v *verb, token *Token) *nesting {
	n := &nesting{r: r, above: above, token: token, topics: v.pack.manifest.Topics}
	n.ctx, n.stop = context.WithCancel(ctx)
	return n
}

// end closes the way in when the handler has returned: a goroutine it left behind can call nothing that
// the request's records and its deadline would not cover. It waits for nested calls under way.
func (n *nesting) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.stop()
	n.calls.Wait()
}

func (n *nesting) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.calls.Add(1)
	}
	return !n.ended
}

// invoke is packs.Call.Invoke.
func (n *nesting) invoke(ctx context.Context, tool string, params packs.Params) (json.RawMessage, error) {
	if !n.begin() {
		return nil, refusal(tool, "the verb that calls it has ended")
	}
	defer n.calls.Done()
	via := append(slices.Clone(n.above.via), n.above.tool)
	if len(via) > maxVia {
		return nil, refusal(tool, fmt.Sprintf("verbs call verbs more than %d deep", maxVia))
	}
	if n.r.nested.Add(1) > maxNested {
		return nil, refusal(tool, fmt.Sprintf("one request may make verbs call verbs at most %d times", maxNested))
	}
	copied, ok := detached(map[string]any(params), 0)
	inner, cancel := context.WithCancel(n.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)() // the handler may give up earlier, never later
	help, asked := params["help"]
	entry := n.r.operate(inner, operation{
		tool: tool, index: n.above.index, help: help, asked: asked, token: n.token, via: via,
		resolve: func() (map[string]any, error) {
			if !ok {
				return nil, &InvalidInput{Code: CodeInvalidParams, Message: fmt.Sprintf("the params are nested more than %d levels deep", maxArgsDepth)}
			}
			return copied.(map[string]any), nil
		},
	})
	if entry.OK {
		return bytes.Clone(entry.Result), nil // hooks read the result; what the handler does to its copy is its own affair
	}
	return nil, &packs.InvokeError{
		Verb: tool, Code: string(entry.Code), Message: fmt.Sprint(entry.Error), PolicyCode: entry.PolicyCode, RefusedBy: entry.RefusedBy,
	}
}

// detached copies a plain value, so that nobody who holds the original can change what is judged and
// recorded. ok is false for a value nested deeper than arguments may be, such as one that holds itself.
func detached(value any, depth int) (copied any, ok bool) {
	switch v := value.(type) {
	case map[string]any:
		if depth++; depth > maxArgsDepth {
			return nil, false
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], ok = detached(e, depth); !ok {
				return nil, false
			}
		}
		return out, true
	case []any:
		if depth++; depth > maxArgsDepth {
			return nil, false
		}
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], ok = detached(e, depth); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return value, true
}

// emit is packs.Call.Emit.
func (n *nesting) emit(topic string, payload any) error {
	if !slices.Contains(n.topics, topic) {
		return fmt.Errorf("emit: the pack declares no topic %q", topic)
	}
	text, err := encode(payload)
	if err != nil {
		return fmt.Errorf("emit %s: %w", topic, err)
	}
	if text[0] != '{' { // frames of the strict profile hold nothing else
		return fmt.Errorf("emit %s: the payload must be an object", topic)
	}
	if len(text) > maxEventBytes {
		return fmt.Errorf("emit %s: the payload has %d bytes, at most %d are allowed", topic, len(text), maxEventBytes)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ended:
		return fmt.Errorf("emit %s: the verb has ended", topic)
	case len(n.events) >= maxEvents:
		return fmt.Errorf("emit %s: one operation emits at most %d events", topic, maxEvents)
	}
	n.events = append(n.events, policy.Event{Topic: topic, Payload: text})
	return nil
}

func refusal(tool, why string) error {
	return &packs.InvokeError{Verb: tool, Code: string(CodeNotCallable), Message: (&NotCallable{Verb: tool, Why: why}).Error()}
}
