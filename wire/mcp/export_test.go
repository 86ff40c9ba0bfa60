package mcp

import "time"

// Verdict is what the filter made of a message, for tests: Intent is ignore, cancel, plain, call or
// refuse.
type Verdict struct {
	Intent  string
	Forward []byte // what the library would get
	Ops     string
	Target  string
	Refusal []byte // the JSON-RPC error
}

// Inspect runs the ingress filter.
func Inspect(text []byte) Verdict {
	f, refused := inspect(text)
	if refused != nil {
		return Verdict{Intent: "refuse", Refusal: refused.encode()}
	}
	names := map[intent]string{ignore: "ignore", cancel: "cancel", plain: "plain", toolCall: "call"}
	return Verdict{Intent: names[f.intent], Forward: f.message, Ops: f.ops, Target: f.target}
}

// SetHTTPLimits shortens the time that a client has for sending its body and for reading its answer. It
// must be called before Handler and Serve.
func SetHTTPLimits(s *Server, readBody, write time.Duration) {
	s.httpLimits.readBody, s.httpLimits.write = readBody, write
}
