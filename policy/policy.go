// Package policy is the gate contract: what a gate is asked (Input), what it may answer (Decision
// with its Obligations), and what is written down about it (Record).
//
// It decides nothing itself; policy/opa is the gate that does. It imports nothing of ours.
//
// Invariants. A Decision has four outcomes, never two: the zero value is a deny; "allow" is only ever
// said; "unavailable" is for failures of infrastructure that no caller can cause (dispatch.md 4), and
// everything a caller's input can provoke is a deny with PolicyError set. Closed sets are types:
// a switch over Verdict or Obligation that forgets a case must end in a refusal.
package policy

import (
	"context"
	"errors"
	"time"
)

// ErrGateClosed is the Cause of a Stopped decision when the gate was closed, at shutdown. The other
// causes are context.Canceled and context.DeadlineExceeded.
var ErrGateClosed = errors.New("the gate is closed")

// Gate judges operations. Implementations are safe for concurrent use.
type Gate interface {
	// Decide judges one operation. It never panics and always answers, at the latest a little after
	// its own time limit. in and everything it holds is only read.
	Decide(ctx context.Context, in *Input) Decision
}

// Verdict is the outcome of a gate consultation. The zero value denies.
type Verdict uint8

const (
	// Deny refuses the operation.
	Deny Verdict = iota
	// Allow lets it proceed, once its obligations are met.
	Allow
	// Unavailable says that infrastructure failed in a way no caller can cause; what follows is the
	// configured fail mode.
	Unavailable
	// Stopped says that the question was withdrawn: the caller went away, its deadline passed, or
	// the gate was closed. Cause tells which.
	Stopped
)

// String names the verdict as the audit record spells it.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Unavailable:
		return "gate_unavailable"
	case Stopped:
		return "refused"
	case Deny:
	}
	return "deny"
}

// Decision is a gate's answer.
type Decision struct {
	Verdict     Verdict
	Reason      string       // for the caller; never the engine's own text
	Code        string       // the policy's own code, 1 to 64 of a-z 0-9 _ . , or ""
	PolicyError bool         // a deny because the policy did not give a sound answer
	Obligations []Obligation // in the policy's order
	Gate        string       // which gate answered, e.g. "opa"
	Revision    string       // the bundle revision that judged, or a digest of its files
	Cause       error        // what went wrong, for the log only
}

// Obligation is something that must happen for a decision to stand. The set is closed: AuditTag,
// RateLimit, Redact, Custom.
type Obligation interface{ obligation() }

// AuditTag puts a tag into the audit record.
type AuditTag struct{ Tag string }

// RateLimit allows at most Max calls in each sliding Window.
type RateLimit struct {
	Window time.Duration
	Max    int64
	Key    string // "" means actor and verb
}

// Redact removes parts of the result.
type Redact struct{ Paths []string }

// Custom is carried out by an enforcer registered under Name.
type Custom struct {
	Name  string
	Value any // plain JSON
}

func (AuditTag) obligation()  {}
func (RateLimit) obligation() {}
func (Redact) obligation()    {}
func (Custom) obligation()    {}
