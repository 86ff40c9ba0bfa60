package request

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fault is what stops a string or a number from being one.
type fault uint8

const (
	faultNone fault = iota
	faultUnclosed
	faultControl   // a raw byte below 0x20
	faultEscape    // a backslash before something JSON does not know
	faultHex       // \u without four hexadecimal digits
	faultSurrogate // half of a surrogate pair
)

// scanString reads the string whose first byte after the quote is at i. end is the index of the
// closing quote. With a fault, at is the byte that is wrong and end means nothing. loose also lets
// raw LF, CR and TAB pass, as the values of the function form do.
func scanString(s string, i int, loose bool) (end int, escaped bool, f fault, at int) {
	for {
		i = skipPlain(s, i)
		if i >= len(s) {
			return i, escaped, faultUnclosed, i
		}
		switch c := s[i]; {
		case c == '"':
			return i, escaped, faultNone, i
		case c == '\\':
			escaped = true
			n, f := scanEscape(s, i)
			if f != faultNone {
				return i, escaped, f, i
			}
			i += n
		case loose && (c == '\n' || c == '\r' || c == '\t'):
			i++
		default:
			return i, escaped, faultControl, i
		}
	}
}

// skipPlain returns the first index from i on that holds a quote, a backslash or a byte below 0x20.
// It looks at eight bytes at once: a byte of x is zero where it equals the one sought.
func skipPlain(s string, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(s) {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		hit := (x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash
		if hit&tops != 0 {
			break
		}
		i += 8
	}
	for i < len(s) && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// scanEscape returns the length of the escape whose backslash is at i; a surrogate pair is one escape.
func scanEscape(s string, i int) (int, fault) {
	if i+1 >= len(s) {
		return 0, faultUnclosed
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, faultNone
	case 'u':
	default:
		return 0, faultEscape
	}
	r, ok := hex4(s, i+2)
	switch {
	case !ok:
		return 0, faultHex
	case !utf16.IsSurrogate(r):
		return 6, faultNone
	}
	if i+7 < len(s) && s[i+6] == '\\' && s[i+7] == 'u' {
		if low, ok := hex4(s, i+8); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, faultNone
		}
	}
	return 0, faultSurrogate
}

// hex4 reads four hexadecimal digits at i.
func hex4(s string, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnescaped appends what raw, the inside of a scanned string, stands for.
func appendUnescaped(dst []byte, raw string) []byte {
	for i := 0; i < len(raw); {
		j := i
		for j < len(raw) && raw[j] != '\\' {
			j++
		}
		dst = append(dst, raw[i:j]...)
		if j >= len(raw) {
			break
		}
		var n int
		dst, n = appendEscape(dst, raw, j)
		i = j + n
	}
	return dst
}

// unescape is appendUnescaped as a string, in one allocation.
func unescape(raw string) string {
	var b strings.Builder
	b.Grow(len(raw))
	var buf [utf8.UTFMax]byte
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			b.WriteString(raw)
			return b.String()
		}
		b.WriteString(raw[:i])
		out, n := appendEscape(buf[:0], raw, i)
		b.Write(out)
		raw = raw[i+n:]
	}
}

// appendEscape appends what the valid escape at i stands for, and returns the escape's length.
func appendEscape(dst []byte, raw string, i int) ([]byte, int) {
	switch c := raw[i+1]; c {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
	default:
		return append(dst, c), 2
	}
	r, _ := hex4(raw, i+2)
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6
	}
	low, _ := hex4(raw, i+8)
	return utf8.AppendRune(dst, utf16.DecodeRune(r, low)), 12
}

// rawOffset is the offset in raw of the token that byte n of the unescaped text comes from.
func rawOffset(raw string, n int) int {
	var buf [utf8.UTFMax]byte
	i := 0
	for i < len(raw) {
		size, width := 1, 1
		if raw[i] == '\\' {
			out, w := appendEscape(buf[:0], raw, i)
			size, width = len(out), w
		}
		if n < size {
			return i
		}
		n -= size
		i += width
	}
	return i
}
