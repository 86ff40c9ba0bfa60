package dispatcher

import (
	"bytes"
	"encoding/json"
)

// Envelope is the answer to a request (request.md 8). It encodes as the JSON the contract shows.
type Envelope struct {
	Results   []Entry `json:"results"` // one an operation, in input order
	Summary   Summary `json:"summary"`
	Status    Status  `json:"status"`
	RequestID string  `json:"request_id"`
}

// Status tells at a glance whether everything succeeded.
type Status string

// The two statuses of request.md 8.
const (
	Partial Status = "partial" // something failed or was aborted
	Success Status = "success"
)

// Summary counts the entries. Failed is Total - Succeeded - Aborted.
type Summary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"`
}

// Entry is the outcome of one operation: a success with Result, a failure with Code and Error, or an
// aborted step of a chain. The zero Entry is a failure.
type Entry struct {
	OK         bool
	Tool       string
	Result     json.RawMessage // of a success, encoded once
	Error      any             // of a failure: a string, or a typed error that encodes as an object with kind and message
	Code       Code
	PolicyCode string // the policy's own code, beside permission_denied
	Aborted    bool
	Advisories []Advisory
	// DecisionID joins the entry to its audit record; "" where there was none. Over MCP those of all
	// entries are in the result's _meta.
	DecisionID string
	// RefusedBy is the decision of the checks or the gate that made the operation fail: its own, or that
	// of a verb it called. The encoded entry shows it as decision_id.
	RefusedBy string
	ran       bool // its handler began
	writes    bool // its verb changes something
}

// Advisory is a remark beside a result.
type Advisory struct {
	Code      string `json:"code"`
	Severity  string `json:"severity"` // info, warning or error
	Component string `json:"component"`
	Message   string `json:"message"`
}

// MarshalJSON gives the three shapes of request.md 8: nothing but the members that belong to each.
func (e Entry) MarshalJSON() ([]byte, error) {
	wire := struct {
		OK         bool            `json:"ok"`
		Tool       string          `json:"tool"`
		Result     json.RawMessage `json:"result,omitempty"`
		Error      any             `json:"error,omitempty"`
		Code       Code            `json:"code,omitempty"`
		PolicyCode string          `json:"policy_code,omitempty"`
		DecisionID string          `json:"decision_id,omitempty"`
		Aborted    bool            `json:"aborted,omitempty"`
		Advisories []Advisory      `json:"advisories,omitempty"`
	}{OK: e.OK, Tool: e.Tool, Aborted: e.Aborted, Advisories: e.Advisories}
	switch {
	case e.OK:
		wire.Result = e.Result
	case !e.Aborted:
		wire.Error, wire.Code, wire.PolicyCode = e.Error, e.Code, e.PolicyCode
		wire.DecisionID = e.RefusedBy
	}
	return encode(wire)
}

// envelope counts the entries and sums them up.
func envelope(requestID string, entries []Entry) *Envelope {
	env := &Envelope{Results: entries, RequestID: requestID, Status: Partial}
	env.Summary.Total = len(entries)
	for i := range entries {
		switch {
		case entries[i].OK:
			env.Summary.Succeeded++
		case entries[i].Aborted:
			env.Summary.Aborted++
		default:
			env.Summary.Failed++
		}
	}
	if env.Summary.Succeeded == env.Summary.Total {
		env.Status = Success
	}
	return env
}

// encode is json.Marshal without the HTML escapes, which would change nothing but make text harder to read.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// JSON is the envelope as every edge sends it.
func (e *Envelope) JSON() ([]byte, error) { return encode(e) }
