package request

// parser reads one body, left to right, onto a tape. Both forms share it.
type parser struct {
	sent string // the text as the caller sent it
	text string // the body, without the white space around it
	lead int    // where the body starts in sent
	pos  int    // the next byte of the body

	nodes []node
	calls int // operations begun
	args  int // arguments read
	refs  int // references read; in JSON form, strings that would be references
	json  bool

	arg               string // the argument being read, for messages
	argTable          keyTable
	keyTable          keyTable
	scratch, scratch2 []byte
}

// parsed keeps a request and the tape its values point into in one piece of memory.
type parsed struct {
	req  Request
	tape tape
}

// finish freezes the tape and starts the request whose operations and arguments the caller adds.
func (p *parser) finish(mode Mode, ops, args int) (*parsed, []Arg) {
	out := &parsed{
		req:  Request{Mode: mode, Ops: make([]Operation, 0, ops)},
		tape: tape{text: p.text, nodes: p.nodes},
	}
	return out, make([]Arg, 0, args)
}

// envelopeArg reports whether an argument name belongs to the request as a whole (request.md 2).
func envelopeArg(name string) bool {
	return name == "presentation" || name == "presentation_per_op"
}

// failReserved is the error of an envelopeArg. at is the place of its name.
func (p *parser) failReserved(at int, verb, name string) *Error {
	e := p.fail(ReservedEnvelopeArg, at, "%s is an outer parameter of the request, not an argument of %s; put it beside ops", name, show(verb))
	e.Arg, e.Verb = name, verb
	return e
}
