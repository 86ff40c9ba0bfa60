package request

import (
	"strings"
	"unicode/utf8"
)

// Classes of bytes. They are ASCII only: a letter of another script is never part of a name.
const (
	classSpace     = 1 << iota // white space between tokens of the function form
	classNameStart             // letter or underscore
	className                  // letter, digit or underscore
	classDigit
	classSlotEnd // , ) ] }: what may follow a scalar
	classJSONSpace
)

// class maps a byte to its classes. It is a constant table, never written.
var class = [256]uint8{
	' ': classSpace | classJSONSpace, '\t': classSpace | classJSONSpace, '\n': classSpace | classJSONSpace,
	'\r': classSpace | classJSONSpace, '\f': classSpace,
	',': classSlotEnd, ')': classSlotEnd, ']': classSlotEnd, '}': classSlotEnd,
	'0': className | classDigit, '1': className | classDigit, '2': className | classDigit, '3': className | classDigit,
	'4': className | classDigit, '5': className | classDigit, '6': className | classDigit, '7': className | classDigit,
	'8': className | classDigit, '9': className | classDigit,
	'_': letter,
	'a': letter, 'b': letter, 'c': letter, 'd': letter, 'e': letter, 'f': letter, 'g': letter, 'h': letter, 'i': letter,
	'j': letter, 'k': letter, 'l': letter, 'm': letter, 'n': letter, 'o': letter, 'p': letter, 'q': letter, 'r': letter,
	's': letter, 't': letter, 'u': letter, 'v': letter, 'w': letter, 'x': letter, 'y': letter, 'z': letter,
	'A': letter, 'B': letter, 'C': letter, 'D': letter, 'E': letter, 'F': letter, 'G': letter, 'H': letter, 'I': letter,
	'J': letter, 'K': letter, 'L': letter, 'M': letter, 'N': letter, 'O': letter, 'P': letter, 'Q': letter, 'R': letter,
	'S': letter, 'T': letter, 'U': letter, 'V': letter, 'W': letter, 'X': letter, 'Y': letter, 'Z': letter,
}

const letter = classNameStart | className

// skipSpace returns the first index from i on that is not white space of the function form.
func skipSpace(s string, i int) int {
	for i < len(s) && class[s[i]]&classSpace != 0 {
		i++
	}
	return i
}

// skipJSONSpace is skipSpace for JSON, where a form feed is not white space.
func skipJSONSpace(s string, i int) int {
	for i < len(s) && class[s[i]]&classJSONSpace != 0 {
		i++
	}
	return i
}

// scanName returns the end of the name that starts at i, or i when none does.
func scanName(s string, i int) int {
	if i >= len(s) || class[s[i]]&classNameStart == 0 {
		return i
	}
	for i++; i < len(s) && class[s[i]]&className != 0; i++ {
	}
	return i
}

// scanDigits returns the end of the run of digits that starts at i.
func scanDigits(s string, i int) int {
	for i < len(s) && class[s[i]]&classDigit != 0 {
		i++
	}
	return i
}

// isName reports whether the whole of s is one name of request.md 2.
func isName(s string) bool { return s != "" && scanName(s, 0) == len(s) }

// scanLiteral recognises true, false and null at i; the word may go on behind its end.
func scanLiteral(s string, i int) (kind Kind, yes bool, end int) {
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, "true"):
		return Bool, true, i + 4
	case strings.HasPrefix(rest, "false"):
		return Bool, false, i + 5
	case strings.HasPrefix(rest, "null"):
		return Null, false, i + 4
	}
	return Null, false, i
}

// firstInvalid is the offset of the first byte that starts no valid UTF-8 sequence.
func firstInvalid(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(s)
}
