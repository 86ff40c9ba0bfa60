package mcp

import "fmt"

// maxDepth is how deep a message may nest. The deepest thing the protocol needs is the client's
// capabilities.
const maxDepth = 64

// scanner walks a JSON text (RFC 8259) once, without building values. It is stricter than Go's
// decoder where that one repairs: bad UTF-8 and lone surrogates are found, not replaced.
type scanner struct {
	text  []byte
	pos   int
	depth int
	flaw  *scanError // the first place that is JSON by its grammar and yet no text
}

// scanError says what is wrong at a byte of the message.
type scanError struct {
	pos  int
	what string
	deep bool // the text may be fine JSON, but nests too deep to find out
}

func (e *scanError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.pos) }

func (s *scanner) fail(pos int, what string) error { return &scanError{pos: pos, what: what} }

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// value walks one value, which starts at pos.
func (s *scanner) value() error {
	if s.pos >= len(s.text) {
		return s.fail(s.pos, "the message ends where a value was due")
	}
	switch c := s.text[s.pos]; {
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array()
	case c == '"':
		return s.string()
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	default:
		return s.fail(s.pos, "no JSON value starts")
	}
}

func (s *scanner) enter() error {
	s.depth++
	if s.depth > maxDepth {
		return &scanError{pos: s.pos, what: fmt.Sprintf("nested deeper than %d levels", maxDepth), deep: true}
	}
	s.pos++
	s.space()
	return nil
}

// object walks an object and shows each member to visit, in order: its name as a quoted string and
// its value, both as they are in the text. An error of visit ends the walk.
func (s *scanner) object(visit func(name, value []byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.pos < len(s.text) && s.text[s.pos] == '}' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if s.pos >= len(s.text) || s.text[s.pos] != '"' {
			return s.fail(s.pos, "a member name in double quotes was due")
		}
		start := s.pos
		if err := s.string(); err != nil {
			return err
		}
		name := s.text[start:s.pos]
		s.space()
		if s.pos >= len(s.text) || s.text[s.pos] != ':' {
			return s.fail(s.pos, "a colon was due")
		}
		s.pos++
		s.space()
		start = s.pos
		if err := s.value(); err != nil {
			return err
		}
		if visit != nil {
			if err := visit(name, s.text[start:s.pos]); err != nil {
				return err
			}
		}
		s.space()
		if more, err := s.next('}'); err != nil || !more {
			return err
		}
	}
}

func (s *scanner) array() error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.pos < len(s.text) && s.text[s.pos] == ']' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		if more, err := s.next(']'); err != nil || !more {
			return err
		}
	}
}

// next reads a comma, after which there is more, or the closing bracket.
func (s *scanner) next(end byte) (more bool, err error) {
	if s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ',':
			s.pos++
			s.space()
			return true, nil
		case end:
			s.pos++
			s.depth--
			return false, nil
		}
	}
	return false, s.fail(s.pos, fmt.Sprintf("a comma or %q was due", end))
}

func (s *scanner) word(w string) error {
	if len(s.text)-s.pos < len(w) || string(s.text[s.pos:s.pos+len(w)]) != w {
		return s.fail(s.pos, "no JSON value starts")
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) number() error {
	start := s.pos
	if s.text[s.pos] == '-' {
		s.pos++
	}
	whole := s.pos
	if s.digits() == 0 || s.text[whole] == '0' && s.pos-whole > 1 {
		return s.fail(start, "a malformed number")
	}
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.fail(start, "a malformed number")
		}
	}
	if s.pos < len(s.text) && (s.text[s.pos] == 'e' || s.text[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			return s.fail(start, "a malformed number")
		}
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.text) && isDigit(s.text[s.pos]) {
		s.pos++
	}
	return s.pos - start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) blame(pos int, what string) {
	if s.flaw == nil {
		s.flaw = &scanError{pos: pos, what: what}
	}
}
