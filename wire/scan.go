package wire

// maxDepth is how many containers a payload may nest, its own object being the first (wire.md 2).
const maxDepth = 127

// scanner reads JSON text by the grammar of RFC 8259 and the rules of wire.md 2. It allocates
// nothing: whoever calls it notes where a value began and ended. A method that returns false has set
// fault, and pos is where it stands.
type scanner struct {
	buf   []byte
	pos   int
	fault string
}

func (s *scanner) fail(at int, fault string) bool {
	s.pos, s.fault = at, fault
	return false
}

// space skips white space and returns the byte after it, 0 at the end. A NUL in the text is 0 too,
// and no rule has a use for either.
func (s *scanner) space() byte {
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// end is true when nothing but white space follows.
func (s *scanner) end() bool {
	if s.space(); s.pos < len(s.buf) {
		return s.fail(s.pos, "something follows the value")
	}
	return true
}

// value reads one value, whose first byte is at pos; depth is how many containers it is in.
func (s *scanner) value(depth int) bool {
	if s.pos >= len(s.buf) {
		return s.fail(s.pos, "a value is missing where the text ends")
	}
	switch c := s.buf[s.pos]; c {
	case '"':
		_, ok := s.str()
		return ok
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number()
		}
		return s.fail(s.pos, "no value begins like this")
	}
}

func (s *scanner) word(w string) bool {
	if len(s.buf)-s.pos < len(w) || string(s.buf[s.pos:s.pos+len(w)]) != w {
		return s.fail(s.pos, "no value begins like this")
	}
	s.pos += len(w)
	return true
}

// open steps into a container and reports whether it is empty, in which case it has been left again.
func (s *scanner) open(depth int, closer byte) (empty, ok bool) {
	if depth >= maxDepth {
		return false, s.fail(s.pos, "nested more than 127 deep")
	}
	s.pos++
	if s.space() != closer {
		return false, true
	}
	s.pos++
	return true, true
}

// next stands after a value in a container: it steps over the comma, or leaves the container.
func (s *scanner) next(closer byte) (more, ok bool) {
	switch s.space() {
	case ',':
		s.pos++
		s.space()
		return true, true
	case closer:
		s.pos++
		return false, true
	}
	if closer == '}' {
		return false, s.fail(s.pos, "a comma or } is missing")
	}
	return false, s.fail(s.pos, "a comma or ] is missing")
}

func (s *scanner) array(depth int) bool {
	empty, ok := s.open(depth, ']')
	if empty || !ok {
		return ok
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if more, ok := s.next(']'); !more || !ok {
			return ok
		}
	}
}

func (s *scanner) object(depth int) bool {
	empty, ok := s.open(depth, '}')
	if empty || !ok {
		return ok
	}
	for {
		if _, ok := s.name(); !ok || !s.value(depth+1) {
			return false
		}
		if more, ok := s.next('}'); !more || !ok {
			return ok
		}
	}
}

// name reads a member's name and colon, up to its value.
func (s *scanner) name() (text, bool) {
	if s.pos >= len(s.buf) || s.buf[s.pos] != '"' {
		return text{}, s.fail(s.pos, "a member's name is missing")
	}
	name, ok := s.str()
	if !ok {
		return text{}, false
	}
	if s.space() != ':' {
		return text{}, s.fail(s.pos, "a colon is missing")
	}
	s.pos++
	s.space()
	return name, true
}
