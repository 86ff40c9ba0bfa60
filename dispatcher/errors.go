package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// Code is the stable code of a failed entry. The set is closed (dispatch.md 8).
type Code string

// The codes of dispatch.md 8.
const (
	CodeInvalidNamespace  Code = "invalid_namespace"
	CodeInvalidParams     Code = "invalid_params"
	CodeUnknownVerb       Code = "unknown_verb"
	CodeNotCallable       Code = "not_callable"
	CodeWriteConflict     Code = "write_conflict"
	CodePermissionDenied  Code = "permission_denied"
	CodePolicyError       Code = "policy_error"
	CodeGateUnavailable   Code = "gate_unavailable"
	CodeRateLimited       Code = "rate_limited"
	CodeObligationFailed  Code = "obligation_failed"
	CodeSubstitutionError Code = "substitution_error"
	CodeNotFound          Code = "not_found"
	CodeAmbiguousID       Code = "ambiguous_id"
	CodeNamespaceMismatch Code = "namespace_mismatch"
	CodeConflict          Code = "conflict"
	CodeSearchIncomplete  Code = "search_incomplete"
	CodeFrameBudget       Code = "response_frame_budget_exceeded"
	CodeAuditUnavailable  Code = "audit_unavailable"
	CodeDeadlineExceeded  Code = "deadline_exceeded"
	CodeCancelled         Code = "cancelled"
	CodeBackend           Code = "backend_unavailable"
	CodeInternal          Code = "internal"
)

// codes tells the closed set apart from what an InvokeError may carry.
var codes = map[Code]bool{
	CodeInvalidNamespace: true, CodeInvalidParams: true, CodeUnknownVerb: true, CodeNotCallable: true, CodeWriteConflict: true,
	CodePermissionDenied: true, CodePolicyError: true, CodeGateUnavailable: true, CodeRateLimited: true, CodeObligationFailed: true,
	CodeSubstitutionError: true, CodeNotFound: true, CodeAmbiguousID: true, CodeNamespaceMismatch: true, CodeConflict: true,
	CodeSearchIncomplete: true, CodeFrameBudget: true, CodeAuditUnavailable: true, CodeDeadlineExceeded: true, CodeCancelled: true,
	CodeBackend: true, CodeInternal: true,
}

// InvalidInput says that the caller's operation is wrong in itself: a malformed namespace, params that
// fail the manifest or a check, a verb no pack owns. Code tells which.
type InvalidInput struct {
	Code    Code   // CodeInvalidNamespace, CodeInvalidParams or CodeUnknownVerb
	Message string // holds nothing that must be sealed, so a record that holds params may keep it
	About   string // what it is about, without any value: a check or a param; "" when Message has none
}

func (e *InvalidInput) Error() string { return "invalid input: " + e.Message }

// PermissionDenied says that the gate refused the operation, or could give no sound answer
// (PolicyError). PolicyCode is the policy's own code, or "".
type PermissionDenied struct {
	Verb        string
	Reason      string
	PolicyCode  string
	PolicyError bool
}

func (e *PermissionDenied) Error() string {
	return fmt.Sprintf("permission denied for verb %q: %s", e.Verb, e.Reason)
}

// NotCallable says that this caller cannot call the verb here, whatever the policy.
type NotCallable struct {
	Verb string
	Why  string
}

func (e *NotCallable) Error() string {
	return fmt.Sprintf("verb %q is not callable: %s", e.Verb, e.Why)
}

// WriteConflict says that operations of one request would write the same thing.
type WriteConflict struct {
	Key        string // the shared key as the manifest's template spells it
	Operations []int  // 0-based indexes of the operations that share it
}

func (e *WriteConflict) Error() string {
	if len(e.Operations) == 1 {
		return fmt.Sprintf("write conflict: this operation writes %s more than once; name it once", e.Key)
	}
	return fmt.Sprintf("write conflict: operations %s of this request all write %s; none of them ran. "+
		"Send one of them, or make them the steps of a chain: a(…) | b(…)", joinInts(e.Operations), e.Key)
}

// SubstitutionError says that a $prev reference of a chain step could not be resolved (request.md 3).
// It is the typed error object of the entry.
type SubstitutionError struct {
	Reason  SubstitutionReason
	Arg     string
	Message string
}

func (e *SubstitutionError) Error() string { return e.Message }

// MarshalJSON gives the object of request.md 8.
func (e *SubstitutionError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind    string             `json:"kind"`
		Reason  SubstitutionReason `json:"reason"`
		Arg     string             `json:"arg"`
		Message string             `json:"message"`
	}{string(CodeSubstitutionError), e.Reason, e.Arg, e.Message})
}

// Sentinels of refusals that carry no facts of their own.
var (
	errAuditUnavailable = errors.New("the audit store cannot record this operation, so it was not run; " +
		"try again shortly, and if it stays so tell the operator")
	errGateUnavailable = errors.New("the policy gate could not decide and is configured to refuse then; " +
		"try again shortly, and if it stays so tell the operator")
	errInternal = errors.New("internal error; the server's log has the details under this request id")
	errClosed   = errors.New("the server is shutting down")
)

// stopped makes the refusal of an operation whose context has ended; what is where it stood.
func stopped(ctx context.Context, what string) error {
	if errors.Is(context.Cause(ctx), errClosed) {
		what += ": " + errClosed.Error()
	}
	return &interrupted{deadline: errors.Is(ctx.Err(), context.DeadlineExceeded), what: what}
}

// interrupted is a deadline or a cancellation that ended an operation.
type interrupted struct {
	deadline bool
	what     string
}

func (e *interrupted) Error() string {
	if e.deadline {
		return "deadline exceeded " + e.what
	}
	return "cancelled " + e.what
}

// fail turns an error into the entry a caller sees. It is the one place where errors become codes.
// known is false for errors whose text nobody outside may read; the caller logs those.
func fail(tool string, err error) (entry Entry, known bool) {
	entry = Entry{Tool: tool, Error: err.Error()}
	var (
		invalid      *InvalidInput
		denied       *PermissionDenied
		notCallable  *NotCallable
		conflict     *WriteConflict
		substitution *SubstitutionError
		cut          *interrupted
		invoke       *packs.InvokeError
		badParam     *packs.InvalidError
		notFound     *packs.NotFoundError
		ambiguous    *packs.AmbiguousIDError
		mismatch     *packs.NamespaceMismatchError
		packConflict *packs.ConflictError
		unavailable  *packs.UnavailableError
	)
	switch {
	case errors.As(err, &invalid):
		entry.Code, entry.Error = invalid.Code, invalid.Error()
	case errors.As(err, &denied):
		entry.Code, entry.Error, entry.PolicyCode = CodePermissionDenied, denied.Error(), denied.PolicyCode
		if denied.PolicyError {
			entry.Code = CodePolicyError
		}
	case errors.As(err, &notCallable):
		entry.Code, entry.Error = CodeNotCallable, notCallable.Error()
	case errors.As(err, &conflict):
		entry.Code, entry.Error = CodeWriteConflict, conflict.Error()
	case errors.As(err, &substitution):
		entry.Code, entry.Error = CodeSubstitutionError, substitution
	case errors.Is(err, errAuditUnavailable):
		entry.Code = CodeAuditUnavailable
	case errors.Is(err, errGateUnavailable):
		entry.Code = CodeGateUnavailable
	case errors.As(err, &cut):
		entry.Code, entry.Error = CodeCancelled, cut.Error()
		if cut.deadline {
			entry.Code = CodeDeadlineExceeded
		}
	case errors.As(err, &invoke) && codes[Code(invoke.Code)]:
		entry.Code, entry.Error, entry.PolicyCode, entry.RefusedBy = Code(invoke.Code), invoke.Error(), invoke.PolicyCode, invoke.RefusedBy
	case errors.As(err, &badParam):
		entry.Code, entry.Error = CodeInvalidParams, "invalid input: "+badParam.Error()
	case errors.As(err, &notFound):
		entry.Code, entry.Error = CodeNotFound, notFound.Error()
	case errors.As(err, &ambiguous):
		entry.Code, entry.Error = CodeAmbiguousID, ambiguous.Error()
	case errors.As(err, &mismatch):
		entry.Code, entry.Error = CodeNamespaceMismatch, mismatch.Error()
	case errors.As(err, &packConflict):
		entry.Code, entry.Error = CodeConflict, packConflict.Error()
	case errors.As(err, &unavailable):
		entry.Code = CodeBackend
		entry.Error = fmt.Sprintf("backend %s is unavailable; try again shortly, and if it stays so tell the operator", unavailable.Backend)
		return entry, false // the driver's text goes to the log
	default:
		entry.Code, entry.Error = CodeInternal, errInternal.Error()
		return entry, errors.Is(err, errInternal)
	}
	return entry, true
}
