package request

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A scalar slot runs from the first byte of a value to the first , ) ] } outside strings and outside
// brackets opened within it, or to the end of the text (request.md 6). It is looked for only when what
// stands there is no value, to say why.
type slot struct {
	end      int
	unclosed int    // the quote of a string without an end, or -1
	bracket  int    // the bracket left open, or -1
	kind     string // its spelling
}

// scanSlot finds the slot at start. Brackets are counted, not stacked: it works on any text in constant
// memory.
func scanSlot(s string, start int) slot {
	const opening, closing = "([{", ")]}"
	var open, first [3]int
	i := start
scan:
	for i < len(s) {
		c := s[i]
		switch c {
		case '"':
			end := closingQuote(s, i+1)
			if end < 0 {
				return slot{end: len(s), unclosed: i, bracket: -1}
			}
			i = end
		case '(', '[', '{':
			k := strings.IndexByte(opening, c)
			if open[k] == 0 {
				first[k] = i
			}
			open[k]++
		case ',', ')', ']', '}':
			if open == [3]int{} {
				break scan
			}
			if k := strings.IndexByte(closing, c); k >= 0 && open[k] > 0 {
				open[k]--
			}
		}
		i++
	}
	out := slot{end: i, unclosed: -1, bracket: -1}
	for k := range open {
		if open[k] > 0 && (out.bracket < 0 || first[k] < out.bracket) {
			out.bracket, out.kind = first[k], opening[k:k+1]
		}
	}
	return out
}

// closingQuote is the next quote from i on without a backslash before it, or -1.
func closingQuote(s string, i int) int {
	for i < len(s) {
		j := strings.IndexAny(s[i:], `"\`)
		if j < 0 {
			return -1
		}
		if i += j; s[i] == '"' {
			return i
		}
		i += 2
	}
	return -1
}

// failValue makes an InvalidValue.
func (p *parser) failValue(at int, reason, advice string) *Error {
	e := p.fail(InvalidValue, at, "%s; %s", reason, advice)
	e.Reason = reason
	return e
}

// failSlot says why the slot at start holds no scalar.
func (p *parser) failSlot(start int) *Error {
	s := scanSlot(p.text, start)
	switch {
	case s.unclosed >= 0:
		return p.failOpenString(s.unclosed)
	case s.bracket >= 0:
		e := p.fail(UnclosedBracket, s.bracket, "the value ends before this `%s` is closed; a value here is a string, a number, true, false, null, an array or an object", s.kind)
		e.Bracket = s.kind
		return e
	}
	text := strings.TrimRight(p.text[start:s.end], " \t\r\n\f")
	reason, advice := p.explainSlot(text, start)
	return p.failValue(start, reason, advice)
}

// explainSlot says what is wrong with a slot's text and what to write instead.
func (p *parser) explainSlot(text string, start int) (reason, advice string) {
	if text == "" {
		return p.explainNothing(start)
	}
	like := func(value string) string { return p.example(start, value) }
	word := text[:scanName(text, 0)]
	switch {
	case text[0] == '"':
		return p.explainString(text, start)
	case text[0] == '\'' || text[0] == '`':
		return show(text) + " is not in double quotes", "write " + like(clip(strings.Trim(text, "'`")))
	case strings.HasPrefix(text, "“") || strings.HasPrefix(text, "”") || strings.HasPrefix(text, "„") || strings.HasPrefix(text, "«"):
		return show(text) + " has typographic quotes", "use plain double quotes: " + like("text")
	case text[0] == '(':
		return show(text) + " has parentheses around it", "write the value alone"
	case word != "" && len(word) < len(text) && (text[len(word)] == '(' || text[len(word)] == '.' && strings.HasSuffix(text, ")")):
		return show(text) + " is a call, and a call cannot be a value", "run it first, in a chain: " + clip(text) + " | verb(name=$prev)"
	case missingComma(text) != "":
		return show(text) + " is not one value", "put a comma before " + missingComma(text)
	case text[0] == '+' || text[0] == '-' || text[0] == '.' || class[text[0]]&classDigit != 0:
		return explainNumber(text)
	case word == text:
		return explainWord(text, like(clip(text)))
	}
	return show(text) + " is not a value", "a text needs double quotes: " + like(strings.ReplaceAll(clip(text), `"`, `\"`))
}

// example is how a text is written in the slot at start: name="text" for an argument, "text" elsewhere.
func (p *parser) example(start int, text string) string {
	if before := strings.TrimRight(p.text[:start], " \t\r\n\f"); before[len(before)-1] == '=' {
		return clip(p.arg) + `="` + text + `"`
	}
	return `"` + text + `"`
}

// explainNothing is about an empty slot.
func (p *parser) explainNothing(start int) (reason, advice string) {
	before := strings.TrimRight(p.text[:start], " \t\r\n\f")
	last := before[len(before)-1]
	switch {
	case start == len(p.text):
		return "the text ends where a value was due", "write a value such as \"text\", 7, true or null, and close what is open"
	case last == ',' && p.text[start] == ']':
		return "the array ends with a comma", "remove the comma"
	case last == '=':
		return "the argument " + show(p.arg) + " has no value", fmt.Sprintf("write %s=\"value\", or null for none", clip(p.arg))
	}
	return "a value is missing before `" + p.found(start) + "`", "write a value such as \"text\", 7, true or null"
}

// explainString is about a slot that begins with a string.
func (p *parser) explainString(text string, start int) (reason, advice string) {
	end, _, f, at := scanString(p.text, start+1, true)
	if f == faultNone {
		rest := strings.TrimLeft(p.text[end+1:start+len(text)], " \t\r\n\f")
		return "after the string stands " + show(rest), "put a comma before it, or write a quote inside the string as \\\""
	}
	advice = "write the string with JSON's escapes"
	if f == faultEscape && p.starts(at, `\$prev`) {
		advice = `write "\\$prev" for the text $prev`
	}
	return stringReason(p.text, f, at), advice
}

// stringReason is what a fault at an offset of the text means.
func stringReason(text string, f fault, at int) string {
	switch f {
	case faultControl:
		names := map[byte]string{'\n': "line break", '\r': "carriage return", '\t': "tab"}
		if name, ok := names[text[at]]; ok {
			return "a raw " + name + " stands in a string where it must be written \\" + map[byte]string{'\n': "n", '\r': "r", '\t': "t"}[text[at]]
		}
		return fmt.Sprintf("the raw control character 0x%02x stands in a string; it is written \\u%04x", text[at], text[at])
	case faultEscape:
		if text[at+1] < 0x20 {
			return "a backslash stands before a raw control character"
		}
		_, size := utf8.DecodeRuneInString(text[at+1:])
		return show(text[at:at+1+size]) + " is no escape; a backslash itself is written \\\\"
	case faultHex:
		return show(text[at:min(at+6, len(text))]) + " is no escape; \\u takes four hexadecimal digits"
	case faultSurrogate:
		return show(text[at:at+6]) + " is half of a surrogate pair; both halves must stand together"
	case faultUnclosed, faultNone:
	}
	return "the string has no closing quote"
}

// explainNumber is about a slot that begins like a number.
func explainNumber(text string) (reason, advice string) {
	end, exponent, ok := scanNumber(text, 0)
	digits := strings.TrimLeft(text, "+-")
	switch {
	case ok && end == len(text) && end > maxNumber:
		return fmt.Sprintf("the number has %d bytes and may have %d", end, maxNumber), "shorten it, or pass it as a string"
	case ok && end == len(text) && exponent:
		return show(text) + " is outside the range of a 64-bit float", "pass it as a string if it must stay as it is"
	case ok && end < len(text) && class[text[end]]&classSpace != 0:
		rest := text[skipSpace(text, end):]
		return show(text) + " is not one value", "put a comma before " + show(rest)
	case text[0] == '+':
		return show(text) + " has a plus sign", "write the number without it"
	case strings.HasPrefix(digits, "Inf"):
		return show(text) + " is not a JSON number", "pass it as a string, or leave the argument out"
	case text[0] == '.' || strings.HasPrefix(text, "-."):
		return show(text) + " begins with a point", "write a zero before the point"
	case len(digits) > 1 && digits[0] == '0' && (digits[1]|0x20 == 'x' || digits[1]|0x20 == 'o' || digits[1]|0x20 == 'b'):
		return show(text) + " is not decimal", "write the number in decimal"
	case len(digits) > 1 && digits[0] == '0' && class[digits[1]]&classDigit != 0:
		return show(text) + " has a leading zero", "remove it, or pass the value as a string"
	}
	return show(text) + " is not a JSON number", fmt.Sprintf("write it as in -12.5e3, or as a string: \"%s\"", strings.ReplaceAll(clip(text), `"`, `\"`))
}

// explainWord is about a slot that is a single word; quoted is how to write it as a text.
func explainWord(word, quoted string) (reason, advice string) {
	switch strings.ToLower(word) {
	case "true", "false", "null":
		return show(word) + " is not in lower case", "write " + strings.ToLower(word)
	case "none", "nil", "undefined":
		return show(word) + " is not a value", "write null, or " + quoted + " for the text"
	case "nan", "infinity", "inf":
		return show(word) + " is not a JSON number", "pass it as a string, or leave the argument out"
	}
	return show(word) + " is a bareword", "a text needs double quotes: write " + quoted
}

// missingComma finds what looks like another argument in a slot, as in x=true y=2 or x=1; y=2.
func missingComma(text string) string {
	i := strings.IndexAny(text, " \t\r\n\f;")
	if i < 0 {
		return ""
	}
	rest := strings.TrimLeft(text[i:], " \t\r\n\f;")
	end := scanName(rest, 0)
	if next := skipSpace(rest, end); end > 0 && next < len(rest) && rest[next] == '=' {
		return show(rest)
	}
	return ""
}
