package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/policy"
)

// run is one request under way.
type run struct {
	d       *Dispatcher
	caller  Caller
	id      string
	mode    request.Mode
	count   int
	nested  atomic.Int64 // calls that verbs made of verbs
	holding atomic.Int64 // bytes of results kept for the answer

	mu       sync.Mutex
	records  []policy.Record // in the order in which the operations ended
	weight   int             // their size, as weigh counts
	unstored bool            // records of this request were refused by the store
	events   []Event
}

// flushAt is the size of a request's records at which they are stored before the request ends, so that
// a long chain of large operations does not pile them up.
const flushAt = 1 << 20

// Run runs a request and answers when everything it did is recorded. It never fails as a whole: what
// goes wrong stands in the entries. ctx is the caller's: its end cancels what has not been done yet,
// its deadline, if it has one, takes the place of Limits.RequestTimeout (request.md 7).
func (d *Dispatcher) Run(ctx context.Context, caller Caller, req *request.Request) *Envelope {
	r := &run{d: d, caller: caller, id: uuid.NewString(), mode: req.Mode, count: len(req.Ops)}
	if !d.enter() {
		return r.refuseAll(req, errClosed)
	}
	defer d.running.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.closing, func() { cancel(errClosed) })()
	if _, bounded := ctx.Deadline(); !bounded {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d.limits.RequestTimeout)
		defer stop()
	}

	entries := make([]Entry, len(req.Ops))
	switch req.Mode {
	case request.Chain:
		r.chain(ctx, req.Ops, entries)
	case request.Single, request.Parallel:
		r.parallel(ctx, req.Ops, entries)
	}
	if !r.store(ctx) {
		for i := range entries {
			switch {
			case entries[i].ran:
				entries[i].Advisories = append(entries[i].Advisories, runUnrecorded)
			case entries[i].DecisionID != "":
				entries[i].Advisories = append(entries[i].Advisories, refusalUnrecorded)
			}
		}
	}
	return envelope(r.id, entries)
}

// enter counts a request in, unless the dispatcher is not open.
func (d *Dispatcher) enter() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.life != open {
		return false
	}
	d.running.Add(1)
	return true
}

// refuseAll answers a request of which nothing may run.
func (r *run) refuseAll(req *request.Request, cause error) *Envelope {
	entries := make([]Entry, len(req.Ops))
	for i, op := range req.Ops {
		entries[i] = Entry{Tool: op.Tool, Code: CodeCancelled, Error: "cancelled: " + cause.Error()}
	}
	return envelope(r.id, entries)
}

// parallel runs the operations of a batch, or the only one, a few at once.
func (r *run) parallel(ctx context.Context, ops []request.Operation, entries []Entry) {
	conflicts := r.conflicts(ops)
	if len(ops) == 1 {
		entries[0] = r.start(ctx, &ops[0], 0, conflicts[0], noPrevious)
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(r.d.limits.Parallel, len(ops)) {
		workers.Go(func() { // ends when no operation is left
			for {
				i := int(next.Add(1)) - 1
				if i >= len(ops) {
					return
				}
				entries[i] = r.start(ctx, &ops[i], i, conflicts[i], noPrevious)
				r.held(&entries[i], nil)
			}
		})
	}
	workers.Wait()
}

// chain runs the steps in order and stops at the first that fails.
func (r *run) chain(ctx context.Context, ops []request.Operation, entries []Entry) {
	previous := noPrevious
	for i := range ops {
		entries[i] = r.start(ctx, &ops[i], i, nil, previous)
		r.held(&entries[i], entries[:i])
		if !entries[i].OK {
			for j := i + 1; j < len(ops); j++ {
				entries[j] = Entry{Tool: ops[j].Tool, Aborted: true}
			}
			return
		}
		previous = &prior{result: entries[i].Result}
	}
}

// start begins one of the caller's operations.
func (r *run) start(ctx context.Context, op *request.Operation, index int, conflict error, previous *prior) Entry {
	o := operation{tool: op.Tool, index: index, resolve: func() (map[string]any, error) { return resolveArgs(op, previous) }}
	for i := range op.Args {
		if op.Args[i].Name == "help" {
			o.asked = true
			if v := op.Args[i].Value; !v.HasRef() {
				o.help, _ = v.Any(nil)
			}
		}
	}
	if conflict != nil {
		o.resolve = func() (map[string]any, error) { return nil, conflict }
	}
	return r.operate(ctx, o)
}

// refuse makes the entry and the record of an operation that did not run.
func (r *run) refuse(ctx context.Context, trail *trail, err error) Entry {
	entry, known := fail(trail.op.tool, err)
	if !known {
		r.d.log.Error("refused for an error of ours", "verb", trail.op.tool, "request_id", r.id, "error", err)
	}
	entry.DecisionID = trail.decisionID
	switch entry.Code {
	case CodePermissionDenied, CodePolicyError, CodeGateUnavailable, CodeInvalidParams:
		entry.RefusedBy = trail.decisionID
	}
	if entry.Code != CodeAuditUnavailable { // there is no store to tell
		rec := trail.record(r, entry.Code, notRun)
		if rec.Kind == policy.KindRefusal {
			rec.Reason = about(err, r.d.record.params)
		}
		r.keep(ctx, rec)
	}
	return entry
}

// failed makes the entry and the record of an operation whose handler failed.
func (r *run) failed(ctx context.Context, trail *trail, err error, advisories []Advisory) Entry {
	var crashed *crash
	if errors.As(err, &crashed) {
		err = r.crashed(trail.op.tool, crashed)
	} else if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = stopped(ctx, "while the verb ran; what it had done by then stands")
	}
	entry, known := fail(trail.op.tool, err)
	if !known {
		r.d.log.Error("a verb failed", "verb", trail.op.tool, "request_id", r.id, "error", err)
	}
	entry.DecisionID, entry.Advisories, entry.ran = trail.decisionID, advisories, true
	r.keep(ctx, trail.record(r, entry.Code, outcomeError))
	return entry
}

// succeeded keeps the record of an operation, and what its hooks will hear.
func (r *run) succeeded(ctx context.Context, trail *trail, result json.RawMessage, events []policy.Event) {
	rec := trail.record(r, "", outcomeSuccess)
	rec.Events = events
	r.keep(ctx, rec)
	if len(r.d.hooks) > 0 {
		r.mu.Lock()
		r.events = append(r.events, Event{Record: rec, Result: result})
		r.mu.Unlock()
	}
}

func (r *run) keep(ctx context.Context, rec policy.Record) {
	r.mu.Lock()
	r.records = append(r.records, rec)
	r.weight += weigh(&rec)
	full := r.weight >= flushAt
	r.mu.Unlock()
	if full {
		r.flush(ctx)
	}
}

// flush stores the records kept so far.
func (r *run) flush(ctx context.Context) {
	r.mu.Lock()
	batch := r.records
	r.records, r.weight = nil, 0
	r.mu.Unlock()
	if !r.d.record.append(ctx, batch) {
		r.mu.Lock()
		r.unstored = true
		r.mu.Unlock()
	}
}

// store makes the request's records durable and then tells the hooks, which hear of nothing that is not
// on record. It goes on when the caller is gone: evidence does not depend on who still listens. It
// reports whether the records are safe.
func (r *run) store(ctx context.Context) bool {
	ctx = context.WithoutCancel(ctx)
	if r.flush(ctx); r.unstored {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, r.d.limits.AuditTimeout) // for all hooks together
	defer cancel()
	for _, e := range r.events {
		for _, h := range r.d.hooks {
			if err := r.hook(ctx, h, e); err != nil {
				r.d.stats.hookErrors.Add(1)
				// Its text may quote what the hook heard.
				r.d.log.Error("a dispatch hook failed", "verb", e.Record.Verb, "request_id", r.id,
					"hook", fmt.Sprintf("%T", h), "error_type", fmt.Sprintf("%T", err), "timed_out", ctx.Err() != nil)
			}
		}
	}
	return true
}

func (r *run) hook(ctx context.Context, h Hook, e Event) error {
	_, err := guard(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.OnDispatch(ctx, e) })
	var crashed *crash
	if errors.As(err, &crashed) {
		return r.crashed(e.Record.Verb, crashed)
	}
	return err
}

// The advisories of dispatch.md 4 and 7.
var (
	gateUnavailable = Advisory{
		Code: "gate_unavailable", Severity: "warning", Component: "gate",
		Message: "the policy gate could not decide; the operation ran because the gate is configured to fail open",
	}
	runUnrecorded = Advisory{
		Code: "audit_unavailable", Severity: "warning", Component: "audit",
		Message: "the operation ran, but its audit record could not be stored before the answer left",
	}
	refusalUnrecorded = Advisory{
		Code: "audit_unavailable", Severity: "warning", Component: "audit",
		Message: "the operation did not run, and its refusal could not be stored before the answer left",
	}
)
