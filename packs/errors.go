package packs

import (
	"fmt"
	"strings"
)

// NotFoundError says that the record a call is about does not exist, or not where the caller may search.
type NotFoundError struct {
	Kind string // "record", "entity", "note", "memory", …
	ID   string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("not found: no %s with id %q", e.Kind, e.ID)
}

// AmbiguousIDError says that an id prefix fits more than one readable record. Matches holds at most
// five full ids, More says that there are others.
type AmbiguousIDError struct {
	Prefix  string
	Matches []string
	More    bool
}

func (e *AmbiguousIDError) Error() string {
	more := ""
	if e.More {
		more = " and others"
	}
	return fmt.Sprintf("ambiguous id prefix %q: it fits %s%s; give more digits", e.Prefix, strings.Join(e.Matches, ", "), more)
}

// NamespaceMismatchError says that two records that must share a namespace do not.
type NamespaceMismatchError struct{ Message string }

func (e *NamespaceMismatchError) Error() string { return "namespace mismatch: " + e.Message }

// ConflictError says that the call contradicts what is stored.
type ConflictError struct{ Message string }

func (e *ConflictError) Error() string { return "conflict: " + e.Message }

// InvalidError says that the params are wrong in a way only the handler can see. It is the caller's
// invalid_params. Param may be "".
type InvalidError struct {
	Param   string
	Message string
}

func (e *InvalidError) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return fmt.Sprintf("%s: %s", e.Param, e.Message)
}

// UnavailableError says that a backend cannot serve the call. The caller sees the backend's name and
// never Err, which is for the log.
type UnavailableError struct {
	Backend string
	Err     error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("backend %s is unavailable: %v", e.Backend, e.Err)
}

// Unwrap returns the driver's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// InvokeError is the refusal or failure of a verb that a handler invoked. A handler may return it as
// it is: the caller then sees Code and Message.
type InvokeError struct {
	Verb       string
	Code       string // dispatch.md 8
	Message    string
	PolicyCode string // the policy's own code, or ""
	RefusedBy  string // the id of the decision that refused, or ""
}

func (e *InvokeError) Error() string { return fmt.Sprintf("%s: %s", e.Verb, e.Message) }

// CheckError says that a check of a pack refuses the params of a call (dispatch.md 5). It is the
// caller's invalid_params, with the check's name and Message.
type CheckError struct {
	Check   string // the check's name
	Message string // for the caller, without the engine's text
	// Err is nil when the check ran and said no. Otherwise the check could not be evaluated or was
	// cut short, and Err says why, for the log only; a withdrawn call is found in it by errors.Is.
	Err error
}

func (e *CheckError) Error() string { return fmt.Sprintf("check %s: %s", e.Check, e.Message) }

// Unwrap returns why the check could not be evaluated, or nil.
func (e *CheckError) Unwrap() error { return e.Err }
