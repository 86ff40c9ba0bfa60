package wire

// overflow is 2^1024 - 2^970, the first number a float64 cannot hold: halfway between the largest
// one and the next there would be. It has 309 digits.
const overflow = "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017" +
	"977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273" +
	"854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704" +
	"342711559699508093042880177904174497792"

// number reads a number, whose first byte is at pos, and refuses one beyond a float64's range
// (wire.md 2). One below it is a zero to everybody and passes.
func (s *scanner) number() bool {
	b, i := s.buf, s.pos
	begin := i
	if b[i] == '-' {
		i++
	}
	whole := i
	i = digits(b, i)
	switch {
	case i == whole:
		return s.fail(i, "a digit is missing in a number")
	case b[whole] == '0' && i > whole+1:
		return s.fail(begin, "a number begins with a superfluous 0")
	}
	wholeEnd, fraction := i, i
	if i < len(b) && b[i] == '.' {
		fraction = i + 1
		if i = digits(b, fraction); i == fraction {
			return s.fail(i, "a digit is missing in a number")
		}
	}
	mantissaEnd := i
	var exponent int64
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		negative := false
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			negative = b[i] == '-'
			i++
		}
		first := i
		if i = digits(b, first); i == first {
			return s.fail(i, "a digit is missing in a number")
		}
		if exponent = saturated(b[first:i]); negative {
			exponent = -exponent
		}
	}
	s.pos = i
	if exponent <= 0 && wholeEnd-whole < len(overflow) {
		return true
	}
	if tooLarge(b[whole:wholeEnd], b[fraction:mantissaEnd], exponent) {
		return s.fail(begin, "a number is beyond the range of a double")
	}
	return true
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// saturated is the value of digits, or something larger than any payload is long.
func saturated(digits []byte) int64 {
	var n int64
	for _, d := range digits {
		if n = n*10 + int64(d-'0'); n > 1<<40 {
			return 1 << 40
		}
	}
	return n
}

// tooLarge says whether whole.fraction times ten to the exponent rounds to infinity. It compares
// digits, so no rounding of its own can be wrong, however long the number.
func tooLarge(whole, fraction []byte, exponent int64) bool {
	if whole[0] == '0' {
		whole = nil
	}
	// size is how many digits the number has before its point.
	size := int64(len(whole)) + exponent
	if len(whole) == 0 {
		zeros := 0
		for zeros < len(fraction) && fraction[zeros] == '0' {
			zeros++
		}
		if fraction = fraction[zeros:]; len(fraction) == 0 {
			return false
		}
		size = exponent - int64(zeros)
	}
	if size != int64(len(overflow)) {
		return size > int64(len(overflow))
	}
	for i := range len(overflow) {
		d := byte('0')
		switch {
		case i < len(whole):
			d = whole[i]
		case i-len(whole) < len(fraction):
			d = fraction[i-len(whole)]
		}
		if d != overflow[i] {
			return d > overflow[i]
		}
	}
	return true
}
