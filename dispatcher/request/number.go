package request

import (
	"strconv"
	"strings"
)

// maxNumber is the longest number literal, in bytes (request.md 2).
const maxNumber = 128

// scanNumber returns the end of the longest number of JSON's grammar that starts at i, and whether it
// has an exponent. ok is false when there is none, or when it breaks off (5. or 1e).
func scanNumber(s string, i int) (end int, exponent, ok bool) {
	if i < len(s) && s[i] == '-' {
		i++
	}
	j := scanDigits(s, i)
	if j == i {
		return i, false, false
	}
	if s[i] == '0' {
		j = i + 1
	}
	i = j
	if i < len(s) && s[i] == '.' {
		if j = scanDigits(s, i+1); j == i+1 {
			return i, false, false
		}
		i = j
	}
	if i >= len(s) || s[i]|0x20 != 'e' {
		return i, false, true
	}
	i++
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if j = scanDigits(s, i); j == i {
		return i, true, false
	}
	return j, true, true
}

// numberFits reports whether a scanned literal is short enough and inside a float64's range. Only an
// exponent can carry 128 bytes out of it, and ParseFloat does not call rounding to zero an error.
func numberFits(lit string, exponent bool) bool {
	if len(lit) > maxNumber {
		return false
	}
	if !exponent {
		return true
	}
	f, err := strconv.ParseFloat(lit, 64)
	if err != nil {
		return false
	}
	return f != 0 || !strings.ContainsAny(mantissa(lit), "123456789")
}

// mantissa is the literal up to its exponent.
func mantissa(lit string) string {
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		return lit[:i]
	}
	return lit
}
