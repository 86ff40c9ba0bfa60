package policy

import (
	"bytes"
	"encoding/json"
	"time"
)

// RecordKind is the kind of an audit record. The set is closed (dispatch.md 7).
type RecordKind string

// The kinds of audit records.
const (
	KindDecision       RecordKind = "decision"
	KindOutcome        RecordKind = "outcome"
	KindRefusal        RecordKind = "refusal"
	KindPlan           RecordKind = "plan"
	KindLateDecision   RecordKind = "late_decision"
	KindGateActivation RecordKind = "gate_activation"
	KindGateOutage     RecordKind = "gate_outage"
)

// Record is one audit record (dispatch.md 7).
type Record struct {
	ID          string          `json:"id"`
	Kind        RecordKind      `json:"kind"`
	Time        time.Time       `json:"time"`
	RequestID   string          `json:"request_id"`
	DecisionID  string          `json:"decision_id,omitempty"`
	Index       int             `json:"index"`
	Count       int             `json:"count"`
	Source      string          `json:"source"`
	SessionID   string          `json:"session_id,omitempty"`
	Actor       string          `json:"actor"`
	Namespace   string          `json:"namespace,omitempty"`
	Verb        string          `json:"verb"`
	Pack        string          `json:"pack,omitempty"`
	Decision    string          `json:"decision"` // allow, deny, refused, gate_unavailable
	Effect      string          `json:"effect"`   // allowed, denied
	Reason      string          `json:"reason,omitempty"`
	Code        string          `json:"code,omitempty"` // the policy's own code
	Obligations []string        `json:"obligations"`    // what the decision asked for, e.g. audit:pii
	Outcome     string          `json:"outcome"`        // success, error, not_run
	ErrorCode   string          `json:"error_code,omitempty"`
	Duration    time.Duration   `json:"-"` // stored and shown as duration_us
	Gate        string          `json:"gate,omitempty"`
	Revision    string          `json:"revision,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"` // sealed already where they must be
	Events      []Event         `json:"-"`                // what the operation tells subscribers; stored with the record
}

// Event is something an operation did that subscribers of Topic hear of. Its namespace and its time are
// those of the Record that carries it.
type Event struct {
	Topic   string
	Payload json.RawMessage
}

// MarshalJSON is the record as dispatch.md 7 shows it: with duration_us, and with [] for no
// obligations.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	if r.Obligations == nil {
		r.Obligations = []string{}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // whoever encodes the record decides that
	err := encoder.Encode(struct {
		plain
		DurationUS int64 `json:"duration_us"`
	}{plain(r), r.Duration.Microseconds()})
	return text.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes. The duration is exact to the microsecond.
func (r *Record) UnmarshalJSON(text []byte) error {
	type plain Record
	var with struct {
		plain
		DurationUS int64 `json:"duration_us"`
	}
	if err := json.Unmarshal(text, &with); err != nil {
		return err
	}
	*r = Record(with.plain)
	r.Duration = time.Duration(with.DurationUS) * time.Microsecond
	return nil
}
