package opa

import (
	"strconv"
	"strings"
)

// maxNumberBytes is the longest number. One that is longer or larger than the ops text admits can only
// come from a result that $prev refers to; it would cost the engine seconds.
const maxNumberBytes = 128

// isSoundNumber reports whether s is a JSON number the engine can work with. Exponents are what it
// cannot bear: 1e3000000 keeps it busy for seconds, past every deadline, or makes it panic.
func isSoundNumber(s string) bool {
	if len(s) > maxNumberBytes {
		return false
	}
	rest := strings.TrimPrefix(s, "-")
	whole := leadingDigits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return false
	}
	zero := strings.Trim(rest[:whole], "0") == ""
	rest = rest[whole:]
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		n := leadingDigits(fraction)
		if n == 0 {
			return false
		}
		zero = zero && strings.Trim(fraction[:n], "0") == ""
		rest = fraction[n:]
	}
	if rest == "" {
		return true // with so few digits it is in range
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	if n := leadingDigits(rest); n == 0 || n != len(rest) {
		return false
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && (zero || f != 0)
}

func leadingDigits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
