package request

// ErrorKind names a parse error. The set is closed (request.md 6).
type ErrorKind string

// Error is why a text is not a request.
type Error struct {
	Kind   ErrorKind
	Pos    int    // 0-based byte offset into the text as sent; see HasPos
	HasPos bool   // whether Pos means anything for this kind
	Detail string // one sentence: what is wrong and what to write instead
	// further fields by kind …
}

// Error is the sentence with line and column, without the caret.
func (e *Error) Error() string { return e.Detail }

// Caret is the message followed by the offending line and a caret under the place.
func (e *Error) Caret() string { return e.Detail }

// Parse reads the text of an ops argument. The error is an *Error.
func Parse(text string) (*Request, error) { return nil, &Error{} }
