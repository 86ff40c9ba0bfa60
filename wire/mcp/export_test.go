package mcp

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
