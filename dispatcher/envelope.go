package dispatcher

import "encoding/json"

// Envelope is the answer to a request (request.md 8). It encodes as the JSON the contract shows.
type Envelope struct {
	Results   []Entry `json:"results"`
	Summary   Summary `json:"summary"`
	Status    string  `json:"status"` // success, or partial when anything failed or was aborted
	RequestID string  `json:"request_id"`
}

// Summary counts the entries. Failed is Total - Succeeded - Aborted.
type Summary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"`
}

// Entry is the outcome of one operation: a success with Result, a failure with Code and Error, or an
// aborted step of a chain.
type Entry struct {
	OK           bool            `json:"ok"`
	Tool         string          `json:"tool"`
	Result       json.RawMessage `json:"result,omitempty"`
	Error        any             `json:"error,omitempty"` // a string, or a typed error object with kind and message
	Code         Code            `json:"code,omitempty"`
	PolicyCode   string          `json:"policy_code,omitempty"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Aborted      bool            `json:"aborted,omitempty"`
	Advisories   []Advisory      `json:"advisories,omitempty"`
	// DecisionID is shown in the entry of a refusal only; over MCP all of them are in _meta.
	DecisionID string `json:"-"`
}

// Advisory is a remark beside a result.
type Advisory struct {
	Code      string `json:"code"`
	Severity  string `json:"severity"` // info, warning, error
	Component string `json:"component"`
	Message   string `json:"message"`
}

// Code is the stable code of a failed entry. The set is closed (dispatch.md 8).
type Code string
