package dispatcher

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// operation is one verb call on its way through the pipeline.
type operation struct {
	tool  string
	index int
	help  any  // the help argument as far as it is a literal
	asked bool // there is a help argument
	// resolve gives the arguments with every $prev replaced.
	resolve func() (map[string]any, error)
	token   *Token   // of the call above; nil for the caller's own operations
	via     []string // the verbs above, outermost first
}

// operate leads one operation through the pipeline of dispatch.md 1. It is the security order: read it
// from top to bottom, and put nothing in between without saying why.
func (r *run) operate(ctx context.Context, op operation) (entry Entry) {
	d, v := r.d, r.d.verbs[op.tool]
	trail := trail{op: op, v: v, started: time.Now().UTC()}
	defer func() {
		if p := recover(); p != nil {
			entry = r.refuse(ctx, &trail, r.crashed(op.tool, p))
		}
	}()

	// 0. Internal verbs are for other verbs and the operator's command line.
	help := op.asked && op.help == true
	if v != nil && v.Visibility != packs.Public && r.caller.Source != CLI && op.via == nil && !help {
		return r.refuse(ctx, &trail, &NotCallable{Verb: op.tool, Why: "it is internal; verbs() lists the ones you can call"})
	}

	// 1. Help describes and does nothing else: no namespace, no gate, no audit, no hook.
	if help {
		return r.describe(op.tool, v)
	}
	if op.asked {
		return r.refuse(ctx, &trail, &InvalidInput{Code: CodeInvalidParams, Message: "help must be the literal true; leave it out to call the verb"})
	}

	// $prev: the arguments of a chain step, all or nothing.
	args, err := op.resolve()
	if err != nil {
		return r.refuse(ctx, &trail, err)
	}
	trail.params = args

	// 2. The namespace, minted into the token. Always closed, whatever the fail mode.
	arg, given := args["namespace"]
	token, err := mint(&r.caller, op.token, arg, given)
	if err != nil {
		return r.refuse(ctx, &trail, err)
	}
	trail.token = token

	// What could not be recorded must not run.
	if !d.record.admit(ctx) {
		d.stats.auditUnavailable.Add(1)
		return r.refuse(ctx, &trail, errAuditUnavailable)
	}
	if ctx.Err() != nil {
		return r.refuse(ctx, &trail, stopped(ctx, "before the operation began"))
	}

	// 3. Params against the manifest, then the pack's checks.
	trail.decisionID = uuid.NewString()
	handlerParams := packs.Params(args)
	if v != nil {
		if handlerParams, args, err = v.params(args); err != nil {
			return r.refuse(ctx, &trail, err)
		}
		trail.params = args
	}
	in := r.input(&trail, args)
	if v != nil && d.checks != nil {
		if err := d.checks.Check(ctx, in); err != nil {
			return r.refuse(ctx, &trail, r.checkError(ctx, op.tool, err))
		}
	}

	// 4. The gate. It is asked about unknown verbs too: policy, not the catalogue, has the first word.
	if v != nil && v.Resource != "" {
		in.Resource = r.locate(ctx, v, handlerParams, token)
		handlerParams = pin(handlerParams, in.Resource)
	}
	decision := d.gate.Decide(ctx, in)
	trail.judged(decision)
	var advisories []Advisory
	switch decision.Verdict {
	case policy.Allow:
		d.outage.over()
	case policy.Unavailable:
		d.outage.began(decision.Cause)
		if !d.failOpen {
			return r.refuse(ctx, &trail, errGateUnavailable)
		}
		d.stats.gateUnavailableAllowed.Add(1)
		advisories = append(advisories, gateUnavailable)
	case policy.Stopped:
		return r.refuse(ctx, &trail, withdrawn(ctx, decision.Cause))
	case policy.Deny:
		d.outage.over()
		if decision.PolicyError {
			r.unsound("the policy gave no sound answer", &trail, decision.Cause)
		}
		return r.refuse(ctx, &trail, denial(op.tool, decision))
	default:
		err := denial(op.tool, policy.Decision{Reason: "the gate gave an answer of no known kind", PolicyError: true})
		r.unsound("the policy gave no sound answer", &trail, err)
		return r.refuse(ctx, &trail, err)
	}

	// 5. Obligations that act before the call, in the decision's order.
	if err := enforceBefore(op.tool, decision.Obligations); err != nil {
		r.unsound("the policy asks for what cannot be carried out", &trail, err)
		trail.overruled(err, d.record.params)
		return r.refuse(ctx, &trail, err)
	}
	trail.allowed = true

	// 6. Only now does it matter whether anybody owns the verb.
	if v == nil {
		return r.refuse(ctx, &trail, r.unknown(op.tool))
	}

	// 7. The handler. The record shows the params as they were judged, whatever it does to them.
	trail.sealed = d.record.seal(v.declaration(), args)
	nested := r.nest(ctx, op, v, token)
	began := time.Now()
	result, err := r.handle(ctx, v, &packs.Call{
		Verb: op.tool, Params: handlerParams, Token: token, RequestID: r.id, DecisionID: trail.decisionID, Time: trail.started,
		Invoke: nested.invoke, Emit: nested.emit, Catalogue: d.Catalogue,
	})
	nested.end()
	trail.duration = time.Since(began)
	if err != nil {
		return r.failed(ctx, &trail, err, advisories)
	}

	// 8. Obligations after the call come here, before anybody else reads the result. Redact is the only
	// one so far, and enforceBefore refuses it until its enforcer exists.

	// 9. The record, then, once the record is stored, the hook.
	entry = Entry{OK: true, Tool: op.tool, Result: result, Advisories: advisories, DecisionID: trail.decisionID, ran: true, writes: v.Writes}
	r.succeeded(ctx, &trail, result, nested.events)
	return entry
}

// params checks the arguments against the manifest. It returns them as the handler gets them and as
// policies and checks do: the same, but for a namespace that the verb does not declare.
func (v *verb) params(args map[string]any) (handler packs.Params, judged map[string]any, err error) {
	ns, given := args["namespace"]
	if given && !v.declaresNamespace {
		args = maps.Clone(args)
		delete(args, "namespace")
	}
	handler, err = v.Resolve(args)
	if err != nil {
		var invalid *packs.InvalidError
		if errors.As(err, &invalid) {
			about := "params it does not have"
			if invalid.Param != "" {
				about = "param " + invalid.Param
			}
			err = &InvalidInput{Code: CodeInvalidParams, Message: invalid.Error(), About: about}
		}
		return nil, nil, err
	}
	judged = handler
	if given && !v.declaresNamespace {
		judged = maps.Clone(handler)
		judged["namespace"] = ns
	}
	return handler, judged, nil
}

// input is the document of dispatch.md 3.
func (r *run) input(trail *trail, params map[string]any) *policy.Input {
	in := &policy.Input{
		Verb: trail.op.tool, Token: trail.token.forPolicy(), Params: params,
		Context: policy.Context{
			Source: string(r.caller.Source), Transport: r.caller.Transport, SessionID: r.caller.SessionID,
			RequestID: r.id, DecisionID: trail.decisionID, Time: trail.started,
			Mode: r.mode.String(), Index: trail.op.index, Count: r.count, Via: trail.op.via,
		},
	}
	if trail.v != nil {
		in.Pack, in.Category = trail.v.pack.manifest.Name, string(trail.v.Category)
	}
	return in
}
