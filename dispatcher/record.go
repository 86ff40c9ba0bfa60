package dispatcher

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/policy"
)

// trail gathers what an operation's audit record will say (dispatch.md 7).
type trail struct {
	op         operation
	v          *verb
	started    time.Time
	duration   time.Duration // of the handler
	decisionID string
	token      *Token
	params     map[string]any
	asked      bool // the gate was consulted
	allowed    bool // and nothing it said stands against the call
	decision   string
	verdict    policy.Decision
	sealed     json.RawMessage // the params as judged; set before the handler can change them
}

// judged takes down the gate's answer.
func (t *trail) judged(decision policy.Decision) {
	t.asked, t.verdict, t.decision = true, decision, decision.Verdict.String()
}

// overruled takes down that the call was refused although the policy allowed it.
func (t *trail) overruled(err error, values bool) {
	t.decision, t.verdict.Reason, t.verdict.Code = policy.Deny.String(), about(err, values), ""
}

// about says in a record why an operation was refused: which check, which param, which key. It repeats
// nothing that would have to be sealed (params declared sensitive are no keys), and no value at all
// when params are not recorded.
func about(err error, values bool) string {
	var (
		invalid      *InvalidInput
		denied       *PermissionDenied
		notCallable  *NotCallable
		conflict     *WriteConflict
		substitution *SubstitutionError
		cut          *interrupted
	)
	switch {
	case errors.As(err, &invalid):
		if !values && invalid.About != "" {
			return invalid.About
		}
		return clipTo(invalid.Message, 512)
	case errors.As(err, &denied):
		return denied.Reason
	case errors.As(err, &notCallable):
		return notCallable.Why
	case errors.As(err, &conflict):
		if space, _, _ := strings.Cut(conflict.Key, ":"); !values {
			return "write key " + space
		}
		return "write key " + conflict.Key
	case errors.As(err, &substitution):
		return string(substitution.Reason) + " in argument " + clip(substitution.Arg)
	case errors.As(err, &cut):
		return cut.Error()
	}
	return ""
}

// The outcomes of a record.
const (
	outcomeSuccess = "success"
	outcomeError   = "error"
	notRun         = "not_run"
)

// record is the audit record of an operation that has ended: a decision when the gate was consulted, a
// refusal when the operation never got there.
func (t *trail) record(r *run, code Code, outcome string) policy.Record {
	rec := policy.Record{
		ID: uuid.NewString(), Kind: policy.KindRefusal, Time: t.started, RequestID: r.id, DecisionID: t.decisionID,
		Index: t.op.index, Count: r.count, Source: string(r.caller.Source), SessionID: r.caller.SessionID,
		Actor: r.caller.Actor.String(), Verb: t.op.tool, Decision: "refused", Effect: "denied",
		Obligations: []string{}, Outcome: outcome, ErrorCode: string(code), Duration: t.duration, Params: t.sealed,
	}
	if t.token != nil {
		rec.Namespace = t.token.namespace
	}
	if t.v != nil {
		rec.Pack = t.v.pack.manifest.Name
	}
	if rec.Params == nil {
		rec.Params = r.d.record.seal(t.v.declaration(), t.params)
	}
	if t.asked {
		rec.Kind, rec.Decision = policy.KindDecision, t.decision
		rec.Reason, rec.Code, rec.Gate, rec.Revision = t.verdict.Reason, t.verdict.Code, t.verdict.Gate, t.verdict.Revision
		for _, o := range t.verdict.Obligations {
			rec.Obligations = append(rec.Obligations, spell(o))
		}
		if t.allowed {
			rec.Effect = "allowed"
		}
	}
	return rec
}

// spell is an obligation in one word for the record.
func spell(o policy.Obligation) string {
	switch o := o.(type) {
	case policy.AuditTag:
		return "audit:" + o.Tag
	case policy.RateLimit:
		return "rate_limit"
	case policy.Redact:
		return "redact"
	case policy.Custom:
		return "custom:" + o.Name
	}
	return "unknown"
}
