package packs

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// maxNumberBytes is the longest number literal, as in request.md 2. With the range below it also
// bounds what exact comparison can cost.
const maxNumberBytes = 128

// numberProblem says what is wrong with a number literal, or "". A sound literal follows JSON's
// grammar, fits maxNumberBytes, and is within a float64's range without vanishing in it.
func numberProblem(n json.Number) string {
	s := string(n)
	switch {
	case len(s) > maxNumberBytes:
		return "is a number of more than " + strconv.Itoa(maxNumberBytes) + " characters"
	case !isJSONNumber(s):
		return "is not a JSON number"
	case len(s) < 19 && isDigits(s): // in range, whatever it is
		return ""
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "is a number too large to be handled"
	}
	if f == 0 && !isZero(s) {
		return "is a number too close to zero to be handled"
	}
	return ""
}

func isJSONNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if strings.HasPrefix(s, "0") {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// isInteger reports whether a JSON number has neither point nor exponent.
func isInteger(s string) bool { return isDigits(strings.TrimPrefix(s, "-")) }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isZero reports whether a JSON number has no digit but 0 before its exponent.
func isZero(s string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

// compare orders two sound literals exactly.
func compare(a, b json.Number) int {
	x, errA := strconv.ParseInt(string(a), 10, 64)
	y, errB := strconv.ParseInt(string(b), 10, 64)
	if errA == nil && errB == nil {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return rat(a).Cmp(rat(b))
}

// rat is the exact value of a sound literal; its size is bounded because the literal's is and
// because its value is within a float64's range.
func rat(n json.Number) *big.Rat {
	if isZero(string(n)) {
		return new(big.Rat) // the exponent of a zero may be anything
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// wholeSpelling writes a sound literal with point or exponent as the integer it equals, or "".
func wholeSpelling(n json.Number) string {
	r := rat(n)
	if !r.IsInt() || !r.Num().IsInt64() {
		return ""
	}
	return r.Num().String()
}
