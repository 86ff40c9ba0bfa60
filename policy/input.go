package policy

import "time"

// Input is what a policy sees of one operation: the document of dispatch.md 3. Values in Params and
// Claims are plain JSON: nil, bool, string, json.Number, []any, map[string]any.
type Input struct {
	Verb     string
	Pack     string // "" when no pack owns the verb
	Category string // "" when no pack owns the verb
	Token    Token
	Params   map[string]any // resolved, defaults filled in, "namespace" included if given
	Resource *Resource      // nil where the manifest names none
	Context  Context
}

// Token is the namespace token as policies and checks see it.
type Token struct {
	Namespace string
	Explicit  bool
	Read      []string
	Actor     Actor
}

// Actor is who calls. It comes from the connection, never from a param.
type Actor struct {
	Kind   string // user, agent, anonymous, …
	ID     string
	Groups []string
	Claims map[string]any
}

// String is the actor as audit records and logs spell it: kind:id.
func (a Actor) String() string { return a.Kind + ":" + a.ID }

// Existence says whether a record is there. The zero value is "cannot tell", null to a policy.
type Existence uint8

const (
	// Unknown: the pack could not answer in time, or not with one record.
	Unknown Existence = iota
	// Absent: there is no such record.
	Absent
	// Present: there is.
	Present
)

// Resource is the record an operation is about, as its pack located it before the gate was asked.
type Resource struct {
	Param     string
	ID        string // the full id when Present, else as the caller gave it
	Exists    Existence
	Namespace string // "" unless Present
	Kind      string // "" unless Present
}

// Context is the setting of an operation.
type Context struct {
	Source     string // mcp, wire or cli
	Transport  string // stdio, http, unix, tls, …
	SessionID  string
	RequestID  string
	DecisionID string
	Time       time.Time // in UTC; RFC 3339 with nanoseconds to a policy
	Mode       string    // single, parallel or chain
	Index      int
	Count      int
	Plan       bool
	SaveTo     string   // "" is null to a policy
	Via        []string // the verbs above a nested call, outermost first
}
