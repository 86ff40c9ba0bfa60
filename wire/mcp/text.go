package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string walks a quoted string. Text that JSON's grammar lets pass and that is no Unicode is noted
// in flaw, and the walk goes on: the id of the message may still be found, and answered to.
func (s *scanner) string() error {
	start := s.pos
	s.pos++
	for {
		s.pos += plainBytes(s.text[s.pos:])
		if s.pos == len(s.text) {
			return s.fail(start, "a string that is not closed, opened")
		}
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.fail(s.pos, fmt.Sprintf("a raw control character (%#02x) inside a string", c))
		default:
			r, size := utf8.DecodeRune(s.text[s.pos:])
			if r == utf8.RuneError && size == 1 {
				s.blame(s.pos, "a byte that is not UTF-8")
			}
			s.pos += size
		}
	}
}

// plainBytes counts the bytes up to the first that means something inside a string.
func plainBytes(text []byte) int {
	for i, c := range text {
		if c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

func (s *scanner) escape() error {
	start := s.pos
	s.pos++
	if s.pos >= len(s.text) {
		return s.fail(start, "an unfinished escape")
	}
	switch s.text[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
	default:
		return s.fail(start, "an unknown escape")
	}
	unit, ok := s.unit(start)
	if !ok {
		return s.fail(start, "an unfinished escape")
	}
	s.pos = start + 6
	switch {
	case unit >= 0xDC00 && unit <= 0xDFFF:
		s.blame(start, "a lone surrogate escape")
	case unit >= 0xD800 && unit <= 0xDBFF:
		low, ok := s.unit(s.pos)
		if !ok || low < 0xDC00 || low > 0xDFFF {
			s.blame(start, "a lone surrogate escape")
			return nil // what follows, if anything, is walked as it is
		}
		s.pos += 6
	}
	return nil
}

// unit decodes the escape \uXXXX at the given byte, if there is one.
func (s *scanner) unit(at int) (rune, bool) {
	if len(s.text)-at < 6 || s.text[at] != '\\' || s.text[at+1] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range s.text[at+2 : at+6] {
		switch {
		case isDigit(c):
			v = v<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// unquote decodes a string that was walked. Half a surrogate pair, which was blamed, is U+FFFD.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var out strings.Builder
	out.Grow(len(inner))
	s := scanner{text: inner}
	for s.pos < len(inner) {
		n := bytes.IndexByte(inner[s.pos:], '\\')
		if n < 0 {
			n = len(inner) - s.pos
		}
		out.Write(inner[s.pos : s.pos+n])
		s.pos += n
		if s.pos == len(inner) {
			break
		}
		switch c := inner[s.pos+1]; c {
		case 'u':
			r, _ := s.unit(s.pos)
			s.pos += 6
			if low, ok := s.unit(s.pos); utf16.IsSurrogate(r) && ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				s.pos += 6
			}
			out.WriteRune(r)
		default:
			out.WriteByte(plainEscapes[c])
			s.pos += 2
		}
	}
	return out.String()
}

var plainEscapes = [128]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
