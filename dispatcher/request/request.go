// Package request turns the text of an ops argument into operations, and back (request.md 1 to 6).
//
// It is pure: it knows no verbs, no packs and no policy, and does no I/O. It does not resolve
// references; it only reads where they stand and what path they name.
//
// Invariants:
//   - A text either parses whole or not at all; a *Error names the kind, the place and the way out.
//   - A parsed Request never changes, and its strings may be kept (they share memory with the text).
//   - Parse allocates at most 16 times the text plus 1 MiB, whatever the text, and never recurses
//     deeper than MaxDepth plus a handful of frames.
//   - Printing a Request and parsing what was printed gives the same Request.
package request

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mode is how the operations of a request run.
type Mode uint8

// The modes of request.md 1.
const (
	Single Mode = iota
	Parallel
	Chain
)

// String is single, parallel or chain.
func (m Mode) String() string {
	switch m {
	case Parallel:
		return "parallel"
	case Chain:
		return "chain"
	case Single:
	}
	return "single"
}

// Request is a parsed ops text: at least one operation, at most MaxOps.
type Request struct {
	Mode Mode
	Ops  []Operation
}

// Operation is one verb call.
type Operation struct {
	Tool string
	Args []Arg // in the order of the text; names are unique
}

// Arg is one argument. In function form the name is an ASCII identifier; in JSON form it is any text.
type Arg struct {
	Name  string
	Value Value
}

// Limits of request.md 5.
const (
	MaxOps   = 100
	MaxBytes = 1 << 20
	MaxDepth = 64
)

// Parse reads the text of an ops argument. The error is an *Error.
func Parse(text string) (*Request, error) {
	body := strings.TrimSpace(text)
	p := parser{sent: text, text: body, lead: leading(text, body)}
	if err := p.checkText(); err != nil {
		return nil, err
	}
	p.reserve()
	req, err := p.run()
	if err != nil {
		return nil, err
	}
	return req, nil
}

// leading is how many bytes of white space stand in text before body.
func leading(text, body string) int {
	switch len(body) {
	case len(text):
		return 0
	case 0:
		return len(text)
	}
	return len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
}

// checkText makes the checks that need no grammar (request.md 1, steps 1 and 2).
func (p *parser) checkText() *Error {
	switch {
	case p.text == "":
		return p.failNowhere(Empty, "the request is empty; write a call such as verb(name=\"value\")")
	case len(p.text) > MaxBytes:
		e := p.failNowhere(InputTooLarge, "the request has %d bytes and may have at most %d; split it into several requests", len(p.text), MaxBytes)
		e.Len, e.Max = len(p.text), MaxBytes
		return e
	case !utf8.ValidString(p.text):
		at := firstInvalid(p.text)
		return p.fail(InvalidEncoding, at, "the byte 0x%02x is not valid UTF-8 here; send the text as UTF-8", p.text[at])
	}
	return nil
}

// run reads the body in the form its first bytes choose (request.md 1, step 3).
func (p *parser) run() (*Request, *Error) {
	if p.text[0] == '{' {
		return p.jsonForm(Single)
	}
	if p.text[0] == '[' {
		if i := skipSpace(p.text, 1); i < len(p.text) && p.text[i] == '{' {
			return p.jsonForm(Parallel)
		}
		return p.functionForm(Parallel)
	}
	return p.functionForm(Single)
}
