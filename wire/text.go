package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

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
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		b = b[i:]
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

const hexDigits = "0123456789abcdef"

// appendString appends valid UTF-8 as a JSON string: only what must be escaped is (wire.md 4).
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		s = s[n+1:]
	}
}

// plain is how many bytes s begins with that stand in a JSON string as they are.
func plain(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if m := special(w) &^ w; m != 0 { // what is not ASCII is plain here
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// appendQuoted is appendString for text that may not be UTF-8, which is repaired.
func appendQuoted(dst []byte, s string) []byte {
	return appendString(dst, strings.ToValidUTF8(s, "\ufffd"))
}
