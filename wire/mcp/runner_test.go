package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/wire/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hunter2-DSN"

// runner is a small Runner: it answers by the name of each operation and notes what it saw.
type runner struct {
	mu     sync.Mutex
	ran    []string            // "kind:id source transport op", in order of arrival
	parse  []*request.Error    // RecordParseError
	caller []dispatcher.Caller // of every Run

	started chan string   // the tool of every op that waits, once it does
	ended   chan string   // and once its context has ended it
	release chan struct{} // closed by free

	over <-chan struct{} // the test is over: whatever waits ends, so that a test that failed ends as well
}

func newRunner() *runner {
	return &runner{started: make(chan string, 1000), ended: make(chan string, 1000), release: make(chan struct{})}
}

// patience is how long a test waits for something that must happen, before it fails.
const patience = time.Minute

// starts waits until one more op has begun to wait, ends until one more has been ended by its context.
func (r *runner) starts(t testing.TB) { t.Helper(); await(t, r.started) }
func (r *runner) ends(t testing.TB)   { t.Helper(); await(t, r.ended) }

// free lets every op that waits end, now and from now on.
func (r *runner) free() { close(r.release) }

func await[T any](t testing.TB, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		require.FailNow(t, "it never came")
	}
	return got
}

func (r *runner) RecordParseError(_ context.Context, _ dispatcher.Caller, err *request.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parse = append(r.parse, err)
}

func (r *runner) Run(ctx context.Context, caller dispatcher.Caller, req *request.Request) *dispatcher.Envelope {
	r.mu.Lock()
	r.caller = append(r.caller, caller)
	for _, op := range req.Ops {
		r.ran = append(r.ran, fmt.Sprintf("%s %s %s %s", caller.Actor, caller.Source, caller.Transport, op.Tool))
	}
	r.mu.Unlock()
	env := &dispatcher.Envelope{Status: "success", RequestID: "r1"}
	for i, op := range req.Ops {
		e := dispatcher.Entry{Tool: op.Tool, DecisionID: fmt.Sprintf("d%d", i)}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.Code, e.Error = "deadline_exceeded", "deadline exceeded"
			env.Results = append(env.Results, e)
			continue
		}
		switch op.Tool {
		case "hold": // as a handler that looks at no context
			r.started <- op.Tool
			select {
			case <-r.release:
			case <-r.over:
			}
			e.OK, e.Result = true, json.RawMessage(`"released"`)
		case "deny":
			e.Code, e.Error = "permission_denied", `permission denied for verb "deny": no`
		case "wait":
			r.started <- op.Tool
			select {
			case <-ctx.Done():
				r.ended <- op.Tool
				e.Code, e.Error = "cancelled", "cancelled"
			case <-r.release:
				e.OK, e.Result = true, json.RawMessage(`"released"`)
			case <-r.over:
			}
		case "crash":
			panic(secret)
		case "goexit":
			runtime.Goexit()
		case "nothing":
			return nil
		case "unencodable":
			e.Error = func() {}
		case "big":
			e.OK, e.Result = true, json.RawMessage(`"`+string(make16(6<<20))+`"`)
		case "unasked":
			e.OK, e.DecisionID = true, ""
		default:
			e.OK, e.Result = true, json.RawMessage(`{"exact":9007199254740993,"html":"<b>&\u2028"}`)
		}
		env.Results = append(env.Results, e)
		env.Summary.Total++
		if e.OK {
			env.Summary.Succeeded++
		} else {
			env.Summary.Failed++
			env.Status = "partial"
		}
	}
	return env
}

func make16(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func (r *runner) runs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.ran...)
}

func (r *runner) parseErrors() []*request.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*request.Error{}, r.parse...)
}

func (r *runner) callers() []dispatcher.Caller {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]dispatcher.Caller{}, r.caller...)
}

var verbs = []packs.Listing{
	{Verb: "get", Pack: "kg", Category: packs.Assertive, Signature: "get(id: string)", Description: "Fetch a record."},
	{Verb: "memory.recall", Pack: "memory", Category: packs.Assertive, Signature: "memory.recall(query: string, limit?: integer)", Description: "Search memories."},
}

// logLines is a log that a test can wait for.
type logLines struct{ messages chan string }

func newLog() *logLines { return &logLines{make(chan string, 1000)} }

func (l *logLines) into(c *mcp.Config) { c.Log = slog.New(l) }

// await waits until that has been logged.
func (l *logLines) await(t testing.TB, message string) {
	t.Helper()
	for await(t, l.messages) != message {
	}
}

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.messages <- r.Message
	return nil
}
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logLines) WithGroup(string) slog.Handler      { return l }

func testConfig(r mcp.Runner) mcp.Config {
	cfg := mcp.Config{Runner: r, Verbs: verbs, Version: "v0.0.1"}
	cfg.Caller.Actor.Kind, cfg.Caller.Actor.ID = "user", "ada"
	cfg.Caller.Actor.Groups = []string{"staff"}
	cfg.Caller.Visible = []string{"team"}
	return cfg
}

func newServer(t testing.TB, r mcp.Runner, change ...func(*mcp.Config)) *mcp.Server {
	t.Helper()
	if r, ok := r.(*runner); ok {
		r.over = t.Context().Done()
	}
	cfg := testConfig(r)
	for _, c := range change {
		c(&cfg)
	}
	s, err := mcp.New(cfg)
	require.NoError(t, err)
	return s
}
