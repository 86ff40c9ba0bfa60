package dispatcher

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// subscribeVerb is the reserved verb under which the gate is asked about subscriptions.
const subscribeVerb = "subscribe"

// subscribeParams declares the params of subscribeVerb, so that a record shows them.
var subscribeParams = packs.Verb{Name: subscribeVerb, Params: []packs.Param{
	{Name: "topic", Type: packs.String}, {Name: "resume_cursor", Type: packs.Number},
}}

// MaySubscribe asks the gate whether the caller may follow a topic (session.md), and returns the
// namespaces whose events it may see. resume is the cursor to resume from, or nil. A subscription never
// fails open: a gate that cannot decide refuses, whatever FailOpen says. The answer is on record before
// it is given. The errors are those of a refused operation.
func (d *Dispatcher) MaySubscribe(ctx context.Context, caller Caller, topic string, resume *uint64) (readable []string, err error) {
	if !d.enter() {
		return nil, errClosed
	}
	defer d.running.Done()
	params := map[string]any{"topic": topic}
	if resume != nil {
		params["resume_cursor"] = json.Number(strconv.FormatUint(*resume, 10))
	}
	r := &run{d: d, caller: caller, id: uuid.NewString(), mode: request.Single, count: 1}
	trail := trail{op: operation{tool: subscribeVerb}, started: time.Now().UTC(), sealed: d.record.seal(&subscribeParams, params)}
	if trail.token, err = mint(&r.caller, nil, nil, false); err != nil {
		return nil, err
	}
	if !d.record.admit(ctx) {
		d.stats.auditUnavailable.Add(1)
		return nil, errAuditUnavailable
	}
	trail.decisionID = uuid.NewString()
	refused := d.judgeSubscription(ctx, r, &trail, params)
	code, outcome := Code(""), outcomeSuccess
	if refused != nil {
		entry, _ := fail(subscribeVerb, refused)
		code, outcome = entry.Code, notRun
	}
	trail.allowed = refused == nil
	r.keep(ctx, trail.record(r, code, outcome))
	if !r.store(ctx) && refused == nil {
		return nil, errAuditUnavailable
	}
	return slices.Clone(trail.token.readable), refused
}

// judgeSubscription asks the gate as operate does, but for failing open.
func (d *Dispatcher) judgeSubscription(ctx context.Context, r *run, trail *trail, params map[string]any) (refused error) {
	defer func() {
		if p := recover(); p != nil {
			refused = r.crashed(subscribeVerb, p)
		}
	}()
	decision := d.gate.Decide(ctx, r.input(trail, params))
	trail.judged(decision)
	switch decision.Verdict {
	case policy.Allow:
		d.outage.over()
		if err := enforceBefore(subscribeVerb, decision.Obligations); err != nil {
			r.unsound("the policy asks for what cannot be carried out", trail, err)
			trail.overruled(err, d.record.params)
			return err
		}
		return nil
	case policy.Unavailable:
		d.outage.began(decision.Cause)
		return errGateUnavailable
	case policy.Stopped:
		return withdrawn(ctx, decision.Cause)
	case policy.Deny:
		d.outage.over()
		if decision.PolicyError {
			r.unsound("the policy gave no sound answer", trail, decision.Cause)
		}
		return denial(subscribeVerb, decision)
	}
	err := denial(subscribeVerb, policy.Decision{Reason: "the gate gave an answer of no known kind", PolicyError: true})
	r.unsound("the policy gave no sound answer", trail, err)
	return err
}

// Topics lists what can be subscribed to: the store's own topics and those the packs declare (session.md).
func (d *Dispatcher) Topics() []string {
	topics := []string{"audit.decision", "audit.refusal", "gate.activation", "gate.outage", "gate.late_decision"}
	for _, p := range d.order {
		topics = append(topics, p.manifest.Topics...)
	}
	return topics
}
