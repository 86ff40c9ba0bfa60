package opa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/verbgate/verbgate/policy"
)

var (
	errBusy       = errors.New("all evaluations are busy")
	errAbandoned  = errors.New("too many abandoned evaluations")
	errTimeout    = errors.New("evaluation ran past its time limit")
	errUndefined  = errors.New("the entry point is undefined")
	errNoPolicy   = errors.New("the gate has no policy: it was not opened")
	errNoInput    = errors.New("no input")
	errManyValues = shapef("the entry point has more than one value")
)

// Decide judges one operation. It answers within the time limit and its grace, or, when every
// evaluation is busy, at most one more time limit later.
func (g *Gate) Decide(ctx context.Context, in *policy.Input) (d policy.Decision) {
	defer func() {
		if p := recover(); p != nil {
			d = g.policyError("the operation could not be judged", panicError(p))
		}
	}()
	g.decisions.Add(1)
	if cause := g.stopped(ctx); cause != nil {
		return g.stop(cause)
	}
	if g.current.Load() == nil {
		return g.policyError("the gate has no policy yet", errNoPolicy)
	}
	if in == nil {
		return g.policyError("there is nothing to judge", errNoInput)
	}
	if g.pool.abandoned.Load() >= maxAbandoned {
		return g.policyError("too many evaluations run past their time limit; try again later", errAbandoned)
	}
	j := g.pool.get()
	j.gate, j.ctx = g, ctx
	doc, bad := j.builder.document(in)
	if bad != nil {
		g.pool.put(j)
		return g.policyError(bad.forCaller(), bad)
	}
	j.input = doc
	if err := g.pool.start(ctx, j, g.cfg.Timeout); err != nil {
		g.pool.put(j)
		if errors.Is(err, errBusy) {
			return g.policyError(fmt.Sprintf("the gate is overloaded; no evaluation could start within %v", g.cfg.Timeout), err)
		}
		return g.stop(err)
	}
	return g.await(ctx, in, j)
}

// await waits for the answer, cancels an evaluation that is no longer wanted or takes too long, and
// gives up one that does not obey.
func (g *Gate) await(ctx context.Context, in *policy.Input, j *job) policy.Decision {
	j.timer.Reset(g.cfg.Timeout)
	var cut error
	select {
	case <-j.done:
	case <-j.timer.C:
		cut = errTimeout
	case <-ctx.Done():
		cut = ctx.Err()
	case <-g.pool.stop:
		cut = policy.ErrGateClosed
	}
	if cut != nil {
		select {
		case <-j.done: // it ended all the same, before anybody noticed
			cut = nil
		default:
		}
	}
	if cut == nil {
		d := g.decision(in, j)
		g.pool.put(j)
		return d
	}
	j.cancel.Cancel()
	j.timer.Reset(g.cfg.Grace)
	ended := false
	select {
	case <-j.done:
		ended = true
	case <-j.timer.C:
		if !g.pool.abandon(j) {
			<-j.done
			ended = true
		}
	}
	revision := g.current.Load().revision
	if ended {
		revision = j.snap.revision
		g.pool.put(j)
	} else {
		g.cfg.Log.Warn("gave up on an evaluation that could not be stopped", "verb", shortName(in.Verb), "decision_id", shortName(in.Context.DecisionID), "revision", revision)
	}
	var d policy.Decision
	if errors.Is(cut, errTimeout) {
		d = g.timeout()
	} else {
		d = g.stop(cut)
	}
	d.Revision = revision
	return d
}

// outcome is how an evaluation ended: with a decision, or with what prevented one.
type outcome struct {
	decision policy.Decision
	err      error
}

// evaluate runs the query on one of the pool's goroutines.
func (j *job) evaluate() {
	defer func() {
		if p := recover(); p != nil {
			j.out = outcome{err: panicError(p)}
		}
	}()
	// The policy is taken at the last moment, so that a right revoked meanwhile is gone.
	j.snap = j.gate.current.Load()
	if j.gate.network {
		j.out = j.evaluateWithin(j.gate.cfg.Timeout)
		return
	}
	results, err := j.snap.query.Eval(j.ctx, j.optionsFor(j.snap)...)
	j.out = judge(results, err, j.errs)
}

// evaluateWithin is for policies that may wait for the network: built-in functions that do obey a
// context, not a cancel flag. Cut short they fail, or return a value that says so and that the policy
// may take for anything; what it decides then is no decision.
func (j *job) evaluateWithin(timeout time.Duration) outcome {
	ctx, cancel := context.WithTimeout(j.ctx, timeout)
	defer cancel()
	results, err := j.snap.query.Eval(ctx, j.optionsFor(j.snap)...)
	switch {
	case j.ctx.Err() != nil:
		return outcome{err: j.ctx.Err()}
	case ctx.Err() != nil:
		return outcome{err: errTimeout}
	}
	return judge(results, err, j.errs)
}

// judge tells a decision from everything else an evaluation can end in. A built-in function that
// failed comes first: without it a deny rule may have been passed over, and it is the policy's doing
// even when the store fails as well.
func judge(results rego.ResultSet, err error, builtins []topdown.Error) outcome {
	switch {
	case len(builtins) > 0:
		return outcome{err: &builtinError{newEvalError(&builtins[0])}}
	case err != nil:
		var store *storeError
		if errors.As(err, &store) {
			return outcome{err: store}
		}
		return outcome{err: newEvalError(err)}
	case len(results) == 0:
		return outcome{err: errUndefined}
	case len(results) > 1 || len(results[0].Expressions) != 1:
		return outcome{err: errManyValues}
	}
	term, ok := results[0].Expressions[0].Value.(*ast.Term)
	if !ok {
		return outcome{err: errManyValues}
	}
	d, err := decode(term.Value)
	return outcome{decision: d, err: err}
}

type builtinError struct{ *evalError }

// decision is the one switch from outcomes to verdicts (dispatch.md 4).
func (g *Gate) decision(in *policy.Input, j *job) policy.Decision {
	d := j.out.decision
	if err := j.out.err; err != nil {
		var (
			store   *storeError
			shape   *shapeError
			builtin *builtinError
			eval    *evalError
		)
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			d = g.stop(err)
		case errors.Is(err, errTimeout):
			d = g.timeout()
		case errors.As(err, &store):
			d = policy.Decision{Verdict: policy.Unavailable, Reason: "the policy store failed", Cause: err}
		case errors.Is(err, errUndefined):
			d = g.policyError("the entry point is undefined for this call", err)
		case errors.As(err, &shape) && shape.obligation:
			d = g.policyError("the policy returned a malformed obligation"+seeLog(in), err)
		case errors.As(err, &shape):
			d = g.policyError("the policy returned an unrecognised decision"+seeLog(in), err)
		case errors.As(err, &builtin):
			d = g.policyError("a built-in function failed"+seeLog(in), err)
		case errors.As(err, &eval) && eval.code == topdown.ConflictErr:
			d = g.policyError("rules of the policy contradict each other for this call"+seeLog(in), err)
		default:
			d = g.policyError("the policy could not be evaluated"+seeLog(in), err)
		}
	}
	d.Gate, d.Revision = Name, j.snap.revision
	return d
}

func seeLog(in *policy.Input) string {
	if in.Context.DecisionID == "" {
		return " (see the server log)"
	}
	return " (see the server log, decision " + shortName(in.Context.DecisionID) + ")"
}

func (g *Gate) policyError(reason string, cause error) policy.Decision {
	return policy.Decision{PolicyError: true, Reason: "policy error: " + reason, Gate: Name, Revision: g.revision(), Cause: cause}
}

func (g *Gate) timeout() policy.Decision {
	return g.policyError(fmt.Sprintf("evaluation took longer than %v", g.cfg.Timeout), errTimeout)
}

func (g *Gate) stop(cause error) policy.Decision {
	reason := "the caller went away"
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		reason = "the caller's deadline passed"
	case errors.Is(cause, policy.ErrGateClosed):
		reason = cause.Error()
	}
	return policy.Decision{Verdict: policy.Stopped, Reason: reason, Gate: Name, Revision: g.revision(), Cause: cause}
}

func (g *Gate) stopped(ctx context.Context) error {
	select {
	case <-g.pool.stop:
		return policy.ErrGateClosed
	default:
		return ctx.Err()
	}
}

func (g *Gate) revision() string {
	if snap := g.current.Load(); snap != nil {
		return snap.revision
	}
	return ""
}
