package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// checkError makes a refusal of whatever a Checker returned.
func (r *run) checkError(ctx context.Context, tool string, err error) error {
	var failed *packs.CheckError
	switch {
	case ctx.Err() != nil && (!errors.As(err, &failed) || failed.Err != nil): // cut short, not failed
		return stopped(ctx, "during the params checks")
	case errors.As(err, &failed):
		if failed.Err != nil {
			r.d.log.Warn("a params check could not be evaluated", "verb", tool, "check", failed.Check, "request_id", r.id, "error", failed.Err)
		}
		return &InvalidInput{Code: CodeInvalidParams, Message: fmt.Sprintf("check %q: %s", failed.Check, failed.Message), About: "check " + failed.Check}
	default:
		r.d.log.Error("the params checks failed", "verb", tool, "request_id", r.id, "error", err)
		return &InvalidInput{Code: CodeInvalidParams, Message: "the checks on its params could not be evaluated"}
	}
}

// denial is the caller's view of a deny.
func denial(tool string, decision policy.Decision) error {
	reason := decision.Reason
	if reason == "" {
		reason = "denied by policy"
	}
	return &PermissionDenied{Verb: tool, Reason: reason, PolicyCode: decision.Code, PolicyError: decision.PolicyError}
}

// unsound logs, once for each decision, that the policy is at fault. The cause holds nothing of the params:
// gates see to that.
func (r *run) unsound(what string, trail *trail, cause error) {
	r.d.log.Error(what, "verb", trail.op.tool, "decision_id", trail.decisionID, "request_id", r.id, "revision", trail.verdict.Revision, "error", cause)
}

// withdrawn is the caller's view of a question that was taken back.
func withdrawn(ctx context.Context, cause error) error {
	if ctx.Err() == nil && errors.Is(cause, context.DeadlineExceeded) {
		return &interrupted{deadline: true, what: "while the gate was asked"}
	}
	return stopped(ctx, "while the gate was asked")
}

// enforceBefore carries out what must happen before the handler runs. An obligation that nothing here
// can carry out refuses the call: it was a condition of the permission.
func enforceBefore(tool string, obligations []policy.Obligation) error {
	for _, o := range obligations {
		kind := "unknown"
		switch o.(type) {
		case policy.AuditTag:
			continue // the record carries it
		case policy.RateLimit:
			kind = "rate_limit"
		case policy.Redact:
			kind = "redact"
		case policy.Custom:
			kind = "custom"
		}
		return &PermissionDenied{
			Verb: tool, PolicyError: true,
			Reason: fmt.Sprintf("the policy asks for the obligation %q, which this version cannot carry out", kind),
		}
	}
	return nil
}
