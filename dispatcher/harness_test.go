package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a dispatcher with a scripted gate, checker, store and pack: the parts whose faults a test
// must cause at will. The real ones meet in real_test.go.
type house struct {
	*dispatcher.Dispatcher
	t *testing.T

	mu      sync.Mutex
	steps   []string // what was asked and called, in order
	inputs  []policy.Input
	records []policy.Record
	events  []dispatcher.Event

	decide   func(ctx context.Context, in *policy.Input) policy.Decision
	check    func(ctx context.Context, in *policy.Input) error
	locate   func(ctx context.Context, ref packs.ResourceRef) (packs.Location, error)
	do       func(ctx context.Context, call *packs.Call) (any, error) // what probe.do does
	append   func(ctx context.Context, batch []policy.Record) error   // in the place of the store
	hook     func(ctx context.Context, e dispatcher.Event) error
	seal     func(path string, value any) any
	log      lockedBuffer // at level debug
	storeErr error
	fits     int // records the store takes at once; 0 for any number
	hookErr  error
	release  chan struct{}
	busy, hi int // probe.sleep calls under way, and the most there ever were
	entered  chan string
	left     func(context.Context, string, packs.Params) (json.RawMessage, error) // what probe.leave kept
	leftEmit func(string, any) error
}

func (h *house) step(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (h *house) Decide(ctx context.Context, in *policy.Input) policy.Decision {
	h.step("gate %s", in.Verb)
	h.mu.Lock()
	h.inputs = append(h.inputs, *in)
	h.mu.Unlock()
	if h.decide != nil {
		return h.decide(ctx, in)
	}
	return policy.Decision{Verdict: policy.Allow, Gate: "scripted", Revision: "r1"}
}

func (h *house) Check(ctx context.Context, in *policy.Input) error {
	h.step("check %s", in.Verb)
	if h.check != nil {
		return h.check(ctx, in)
	}
	return nil
}

func (h *house) Compile([]packs.Manifest) (dispatcher.Checker, error) { return h, nil }

func (h *house) Append(ctx context.Context, batch []policy.Record) error {
	if h.append != nil {
		return h.append(ctx, batch)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, fmt.Sprintf("append %d", len(batch)))
	if h.storeErr != nil {
		return h.storeErr
	}
	if h.fits > 0 && len(batch) > h.fits {
		return errors.New("no room for so many")
	}
	h.records = append(h.records, batch...)
	return nil
}

func (h *house) OnDispatch(ctx context.Context, e dispatcher.Event) error {
	h.step("hook %s", e.Record.Verb)
	if h.hook != nil {
		return h.hook(ctx, e)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	return h.hookErr
}

func (h *house) Seal(path string, value any) any {
	if h.seal != nil {
		return h.seal(path, value)
	}
	return map[string]any{"$sealed": fmt.Sprintf("test:%s:%T", path, value)}
}

// lockedBuffer takes what several goroutines log.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines are those logged so far that hold all of the texts.
func (b *lockedBuffer) lines(texts ...string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			found = append(found, line)
		}
	}
	return found
}

func (h *house) setStoreErr(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.storeErr = err
}

var caller = dispatcher.Caller{
	Source: dispatcher.MCP, Transport: "stdio", SessionID: "s1",
	Actor: policy.Actor{Kind: "user", ID: "ann", Groups: []string{"g"}, Claims: map[string]any{"team": "a"}},
}

var operator = dispatcher.Caller{Source: dispatcher.CLI, Transport: "cli", Actor: policy.Actor{Kind: "user", ID: "root"}}

func newHouse(t *testing.T, change ...func(*dispatcher.Config)) *house {
	t.Helper()
	h := &house{t: t, release: make(chan struct{}), entered: make(chan string, 200)}
	cfg := dispatcher.Config{
		Packs: []packs.Pack{&probe{h: h}}, Gate: h, Checks: h, Audit: h, Sealer: h, RecordParams: true, Hooks: []dispatcher.Hook{h},
		Log: slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dispatcher.New(cfg)
	require.NoError(t, err)
	require.NoError(t, d.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	h.Dispatcher = d
	return h
}

func (h *house) run(ops string) *dispatcher.Envelope { h.t.Helper(); return h.runAs(caller, ops) }

func (h *house) runAs(who dispatcher.Caller, ops string) *dispatcher.Envelope {
	h.t.Helper()
	return h.Run(h.t.Context(), who, parse(h.t, ops))
}

func parse(t *testing.T, ops string) *request.Request {
	t.Helper()
	req, err := request.Parse(ops)
	require.NoError(t, err, ops)
	return req
}

// one runs one operation and returns its entry.
func (h *house) one(ops string) dispatcher.Entry {
	h.t.Helper()
	env := h.run(ops)
	require.Len(h.t, env.Results, 1)
	return env.Results[0]
}

func (h *house) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.steps
	h.steps = nil
	return out
}

// probe is a pack whose verbs do what a test tells them.
type probe struct {
	h     *house
	extra []packs.Verb
}

func (p *probe) Manifest() packs.Manifest {
	str := func(name string) packs.Param { return packs.Param{Name: name, Type: packs.String, Description: "d"} }
	verb := func(name string, params ...packs.Param) packs.Verb {
		return packs.Verb{Name: name, Description: "d", Category: packs.Directive, Visibility: packs.Public, Params: params}
	}
	echo := verb("probe.echo", str("id"), packs.Param{Name: "value", Type: packs.Any, Description: "d", MaxLength: 2 << 20},
		packs.Param{Name: "n", Type: packs.Integer, Description: "d", Default: json.Number("7")},
		packs.Param{Name: "secret", Type: packs.String, Description: "d", Sensitive: true})
	put := verb("probe.put", str("id"), packs.Param{Name: "ids", Type: packs.ArrayOf(packs.String), Description: "d"})
	put.WriteKeys, put.Writes = []string{"record:{id}", "record:{ids}"}, true
	get := verb("probe.get", str("id"))
	get.Resource = "id"
	hidden := verb("probe.hidden", str("id"))
	hidden.Visibility, hidden.WriteKeys = packs.Subhandler, []string{"record:{id}"}
	return packs.Manifest{
		Name: "probe", Description: "d", Topics: []string{"probe.done"},
		Verbs: append([]packs.Verb{
			echo, put, get, hidden,
			verb("probe.named", str("namespace")),
			verb("probe.result", str("json")),
			verb("probe.fail", str("how")),
			verb("probe.sleep", str("name")),
			verb("probe.call", str("verb"), packs.Param{Name: "params", Type: packs.Object, Description: "d"}),
			verb("probe.do", packs.Param{Name: "value", Type: packs.Any, Description: "d"}),
			verb("probe.who"), verb("probe.leave"), verb("probe.emit", str("topic"), str("how")),
			verb("probe.big", packs.Param{Name: "size", Type: packs.Integer, Description: "d"}),
			verb("probe.fan", packs.Param{Name: "times", Type: packs.Integer, Description: "d"}),
		}, p.extra...),
	}
}

func (p *probe) Open(context.Context, packs.Env) (packs.Instance, error) { return p, nil }
func (p *probe) Close() error                                            { return nil }

func (p *probe) Locate(ctx context.Context, ref packs.ResourceRef) (packs.Location, error) {
	p.h.step("locate %s=%s", ref.Param, ref.ID)
	if p.h.locate != nil {
		return p.h.locate(ctx, ref)
	}
	switch ref.ID {
	case "there":
		return packs.Location{Exists: true, ID: "there-in-full", Namespace: "elsewhere", Kind: "entity"}, nil
	case "boom":
		panic("boom")
	case "slow":
		<-ctx.Done()
		return packs.Location{}, ctx.Err()
	case "stuck": // a pack that does not look at its context
		<-p.h.release
	}
	return packs.Location{}, nil
}

func (p *probe) Handlers() map[string]packs.Handler {
	out := make(map[string]packs.Handler)
	for _, v := range p.Manifest().Verbs {
		out[v.Name] = p.handle
	}
	return out
}

var failures = map[string]error{
	"not_found": &packs.NotFoundError{Kind: "entity", ID: "x"}, "ambiguous_id": &packs.AmbiguousIDError{Prefix: "abcdef01", Matches: []string{"a", "b"}},
	"namespace_mismatch": &packs.NamespaceMismatchError{Message: "a and b"}, "conflict": &packs.ConflictError{Message: "exists"},
	"invalid_params": &packs.InvalidError{Param: "p", Message: "is odd"}, "backend_unavailable": &packs.UnavailableError{Backend: "main", Err: errors.New("secret-dsn")},
	"internal": errors.New("secret-dsn"),
}

func (p *probe) handle(ctx context.Context, call *packs.Call) (any, error) {
	p.h.step("call %s", call.Verb)
	switch call.Verb {
	case "probe.result":
		return json.RawMessage(call.Params.String("json")), nil
	case "probe.who":
		return map[string]any{
			"namespace": call.Token.Namespace(), "read": call.Token.Readable(), "explicit": call.Token.Explicit(),
			"actor": call.Token.ActorKind() + ":" + call.Token.ActorID(), "can": call.Token.CanRead("elsewhere"),
		}, nil
	case "probe.call":
		if call.Params.Object("params")["name"] == "background" {
			ctx = context.Background() // a handler that forgets the context it was given
		}
		return call.Invoke(ctx, call.Params.String("verb"), call.Params.Object("params"))
	case "probe.leave":
		p.h.left, p.h.leftEmit = call.Invoke, call.Emit
		return nil, nil
	case "probe.emit":
		return p.emit(call)
	case "probe.big":
		return strings.Repeat("a", int(call.Params.Int("size"))), nil
	case "probe.fan":
		for range call.Params.Int("times") {
			if _, err := call.Invoke(ctx, "probe.who", nil); err != nil {
				return nil, err
			}
		}
		return call.Params, nil
	case "probe.sleep":
		return p.sleep(ctx, call.Params.String("name"))
	case "probe.fail":
		return fail(call)
	case "probe.do":
		if p.h.do != nil {
			return p.h.do(ctx, call)
		}
	}
	return call.Params, nil
}

func fail(call *packs.Call) (any, error) {
	switch how := call.Params.String("how"); how {
	case "panic":
		panic("secret-value")
	case "nil map":
		var m map[string]int
		//lint:ignore SA5000 the panic is what is wanted
		m["x"] = 1
	case "goexit":
		runtime.Goexit()
	case "nan":
		return math.NaN(), nil
	case "chan":
		return make(chan int), nil
	case "mutate":
		call.Params["how"] = "changed"
		return "done", nil
	default:
		return nil, fmt.Errorf("while failing: %w", failures[how])
	}
	return nil, nil
}

func (p *probe) emit(call *packs.Call) (any, error) {
	topic := call.Params.String("topic")
	switch call.Params.String("how") {
	case "large":
		return nil, call.Emit(topic, map[string]any{"a": strings.Repeat("a", 64<<10)})
	case "list":
		return nil, call.Emit(topic, []any{})
	case "nan":
		return nil, call.Emit(topic, map[string]any{"a": math.NaN()})
	case "many":
		for range 1000 {
			if err := call.Emit(topic, map[string]any{}); err != nil {
				return nil, err
			}
		}
		return nil, call.Emit(topic, map[string]any{})
	case "fail":
		if err := call.Emit(topic, map[string]any{}); err != nil {
			return nil, err
		}
		return nil, &packs.ConflictError{Message: "after all"}
	}
	return nil, call.Emit(topic, map[string]any{"id": "<x>"})
}

func (p *probe) sleep(ctx context.Context, name string) (any, error) {
	h := p.h
	h.mu.Lock()
	h.busy++
	h.hi = max(h.hi, h.busy)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.busy--
		h.mu.Unlock()
	}()
	h.entered <- name
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.release:
		return name, nil
	case <-time.After(time.Hour):
		return nil, errors.New("nobody came")
	}
}
