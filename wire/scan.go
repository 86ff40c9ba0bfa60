package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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

// str reads a string from its opening to behind its closing quote.
func (s *scanner) str() (text, bool) {
	b, i := s.buf, s.pos+1
	start, saved := i, 0
	for {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return text{}, s.fail(len(b), "the text ends inside a string")
		}
		switch c := b[i]; {
		case c == '"':
			s.pos = i + 1
			return text{b[start:i], saved}, true
		case c == '\\':
			n, fewer, fault := escape(b[i:])
			if fault != "" {
				return text{}, s.fail(i, fault)
			}
			i += n
			saved += fewer
		case c < 0x20:
			return text{}, s.fail(i, "a control character stands raw in a string")
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return text{}, s.fail(i, "not UTF-8")
			}
			i += n
		}
	}
}

// special marks, in the highest bit of each byte, the bytes of w that need a look inside a string:
// controls, the quote, the backslash and everything that is not ASCII. The lowest mark is exact; one
// above it may be a borrow's.
func special(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash | w) & high
}

// escape looks at the escape b begins with: how long it is, and by how much its UTF-8 is shorter.
func escape(b []byte) (n, fewer int, fault string) {
	if len(b) < 2 {
		return 0, 0, "the text ends inside a string"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, 1, ""
	case 'u':
		r, n := unicodeEscape(b)
		if n == 0 {
			return 0, 0, "\\u needs four hexadecimal digits, and a surrogate its other half"
		}
		return n, n - utf8.RuneLen(r), ""
	}
	return 0, 0, "no such escape"
}

// unicodeEscape is the rune of the \u escape, or pair of them, b begins with, and its length; 0 when
// it is no escape or half a surrogate pair.
func unicodeEscape(b []byte) (rune, int) {
	r := hex4(b)
	switch {
	case r < 0 || 0xdc00 <= r && r <= 0xdfff:
		return 0, 0
	case r < 0xd800 || r > 0xdfff:
		return r, 6
	}
	low := hex4(b[6:])
	if low < 0xdc00 || low > 0xdfff {
		return 0, 0
	}
	return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), 12
}

// hex4 reads \uXXXX, -1 when b does not begin with one.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// text is a scanned string's bytes between the quotes, and by how much its value is shorter.
type text struct {
	raw   []byte
	saved int
}

// appendTo appends the string's value.
func (t text) appendTo(dst []byte) []byte {
	if t.saved == 0 {
		return append(dst, t.raw...)
	}
	for b := t.raw; len(b) > 0; {
		if b[0] != '\\' {
			dst = append(dst, b[0])
			b = b[1:]
			continue
		}
		n := 2
		switch c := b[1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			var r rune
			r, n = unicodeEscape(b)
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		b = b[n:]
	}
	return dst
}

// size is the length of the string's value in bytes.
func (t text) size() int { return len(t.raw) - t.saved }

// String is the string's value in memory of its own.
func (t text) String() string {
	if t.saved == 0 {
		return string(t.raw)
	}
	return string(t.appendTo(make([]byte, 0, t.size())))
}
