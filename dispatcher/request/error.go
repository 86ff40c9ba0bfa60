package request

import (
	"encoding/json"
	"fmt"
)

// ErrorKind names a parse error. The set is closed (request.md 6).
type ErrorKind string

// The kinds, spelled as callers see them. Beside each stand the fields of Error it fills in, Detail and
// the place (Pos, Line, Column) apart.
const (
	Empty                  ErrorKind = "Empty"                  // no place
	InvalidEncoding        ErrorKind = "InvalidEncoding"        // at the first byte that is not UTF-8
	TooManyOps             ErrorKind = "TooManyOps"             // Count, Max; at operation 101
	InputTooLarge          ErrorKind = "InputTooLarge"          // Len, Max; no place
	NestingTooDeep         ErrorKind = "NestingTooDeep"         // Depth, Max; at the bracket that goes too deep
	UnexpectedChar         ErrorKind = "UnexpectedChar"         // Found, Expected
	UnexpectedEof          ErrorKind = "UnexpectedEof"          // Expected; at the end
	InvalidIdentifier      ErrorKind = "InvalidIdentifier"      // Found, empty at the end
	DuplicateArg           ErrorKind = "DuplicateArg"           // Arg; at the second name
	InvalidValue           ErrorKind = "InvalidValue"           // Reason; at the first byte of the value
	InvalidJson            ErrorKind = "InvalidJson"            // Reason
	UnclosedString         ErrorKind = "UnclosedString"         // Start, the opening quote, is the place too
	UnclosedCall           ErrorKind = "UnclosedCall"           // Start, the parenthesis, is the place too
	PrevRefOutsideChain    ErrorKind = "PrevRefOutsideChain"    // at the reference, its quote if it has one
	PrevRefInJsonForm      ErrorKind = "PrevRefInJsonForm"      // Arg, the top-level argument; at the string
	MixedSeparators        ErrorKind = "MixedSeparators"        // at the separator that does not fit
	EmptyBatch             ErrorKind = "EmptyBatch"             // at the bracket
	UnsupportedVerbNesting ErrorKind = "UnsupportedVerbNesting" // at the second dot
	ReservedEnvelopeArg    ErrorKind = "ReservedEnvelopeArg"    // Arg, Verb; at the name
	TrailingComma          ErrorKind = "TrailingComma"          // at the comma
	UnclosedBracket        ErrorKind = "UnclosedBracket"        // Bracket: "(", "[" or "{"; at the bracket
)

// Error is why a text is not a request. Apart from Arg and Verb, which are the caller's own names,
// nothing in it holds a control, bidirectional or line-separator character of the text.
type Error struct {
	Kind   ErrorKind
	Pos    int    // 0-based byte offset into the text as sent; see HasPos
	HasPos bool   // whether Pos means anything for this kind
	Line   int    // 1-based; lines end with LF; 0 without HasPos
	Column int    // 1-based, counted in code points; 0 without HasPos
	Detail string // one sentence: what is wrong and what to write instead

	Found    string // what stands there, fit to print; empty at the end of the text
	Expected string // what was due
	Reason   string // what is wrong with the value or the JSON, without the advice
	Start    int    // as Pos, where the unclosed thing begins
	Arg      string // an argument's name as sent
	Verb     string // a verb as sent
	Bracket  string // the bracket left open
	Count    int    // operations
	Len      int    // bytes
	Depth    int    // open arrays and objects
	Max      int    // the limit that Count, Len or Depth exceeds

	excerpt string // the line around the place, fit to print
	caret   int    // the place in excerpt, in code points
}

// Error is the sentence with line and column, without the caret.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Detail
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Detail)
}

// MarshalJSON is {"kind","message","pos"}, without pos where the error has no place. The message is
// that of Error.
func (e *Error) MarshalJSON() ([]byte, error) {
	out := struct {
		Kind    ErrorKind `json:"kind"`
		Message string    `json:"message"`
		Pos     *int      `json:"pos,omitempty"`
	}{Kind: e.Kind, Message: e.Error()}
	if e.HasPos {
		out.Pos = &e.Pos
	}
	return json.Marshal(out)
}

// fail makes an error at an offset of the body.
func (p *parser) fail(kind ErrorKind, at int, format string, args ...any) *Error {
	e := &Error{Kind: kind, Pos: p.lead + at, HasPos: true, Detail: fmt.Sprintf(format, args...)}
	e.locate(p.sent)
	return e
}

// failNowhere makes an error about the text as a whole.
func (p *parser) failNowhere(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}
