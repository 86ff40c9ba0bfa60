package mcp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// JSON-RPC codes of the refusals made here.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeBusy           = -32000
)

// refusal is the answer to a message that goes no further than the filter. It is a JSON-RPC error,
// and its text is for the person or model at the other end.
type refusal struct {
	id      json.RawMessage // nil when the message shows none that can be trusted
	code    int
	message string
	data    any
}

// parseErrorData is the data of an ops parse error (request.md 6).
type parseErrorData struct {
	Reason string            `json:"reason"`
	Kind   request.ErrorKind `json:"kind"`
	Pos    *int              `json:"pos,omitempty"`
}

// argumentsData is the data of arguments the tool does not take.
type argumentsData struct {
	Reason  string   `json:"reason"`
	Allowed []string `json:"allowed"`
}

// opsRefusal translates a parse error of ops.
func opsRefusal(id json.RawMessage, err *request.Error) *refusal {
	data := parseErrorData{Reason: "parse-error", Kind: err.Kind}
	if err.HasPos {
		data.Pos = &err.Pos
	}
	return &refusal{id: id, code: codeInvalidParams, message: err.Caret(), data: data}
}

// argumentsRefusal is the one answer to every set of arguments without a usable ops.
func argumentsRefusal(id json.RawMessage, message string) *refusal {
	return &refusal{id: id, code: codeInvalidParams, message: message,
		data: argumentsData{Reason: "invalid-arguments", Allowed: []string{"ops"}}}
}

// encode is the refusal as a JSON-RPC message.
func (r *refusal) encode() []byte {
	id := r.id
	if id == nil {
		id = json.RawMessage("null")
	}
	type details struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	out, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   details         `json:"error"`
	}{"2.0", id, details{r.code, r.message, r.data}})
	if err != nil {
		// Every part is a string, a number or an id that the scanner has read.
		panic("mcp: a refusal does not encode: " + err.Error())
	}
	return out
}

// status is the HTTP status of the refusal. Revisions before 2026-07-28 answer a request that was
// understood as a request with 200 and the error in the body, the later ones by code.
func (r *refusal) status(modern bool) int {
	switch {
	case r.code == codeBusy:
		return http.StatusServiceUnavailable
	case r.id != nil && !modern:
		return http.StatusOK
	case r.code == codeNoMethod:
		return http.StatusNotFound
	case r.code == codeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// quote shows a piece of the caller's message, cut where it would crowd out the sentence around it.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}
