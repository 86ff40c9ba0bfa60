package request

import "fmt"

// The JSON form is read in three passes: the syntax of the whole text onto the tape, the shape of each
// operation, then references and reserved arguments, so that the first error is the one request.md 6
// puts first.

// jsonForm reads an object, or an array of objects.
func (p *parser) jsonForm(mode Mode) (*Request, *Error) {
	p.json = true
	if err := p.jsonValue(0); err != nil {
		return nil, err
	}
	if p.pos = skipJSONSpace(p.text, p.pos); p.pos < len(p.text) {
		return nil, p.failTrailing()
	}
	return p.operations(mode)
}

// jsonValue reads one value at p.pos and leaves p.pos behind it. depth is how many arrays and objects of
// the text are open.
func (p *parser) jsonValue(depth int) *Error {
	start := p.pos
	if start == len(p.text) {
		return p.failJSONEnd()
	}
	switch c := p.text[start]; c {
	case '{':
		return p.jsonObject(depth + 1)
	case '[':
		return p.jsonArray(depth + 1)
	case '"':
		return p.jsonString(String)
	case 't', 'f', 'n':
		kind, yes, end := scanLiteral(p.text, start)
		if end == start || end < len(p.text) && class[p.text[end]]&className != 0 {
			return p.failJSONValue(start)
		}
		flags := uint8(0)
		if yes {
			flags = flagTrue
		}
		p.pos = end
		p.push(kind, flags, start, end)
		return nil
	default:
		if c != '-' && class[c]&classDigit == 0 {
			return p.failJSONValue(start)
		}
		end, exponent, ok := scanNumber(p.text, start)
		if !ok || end < len(p.text) && (class[p.text[end]]&className != 0 || p.text[end] == '.') || !numberFits(p.text[start:end], exponent) {
			return p.failJSONNumber(start)
		}
		p.pos = end
		p.push(Number, 0, start, end)
		return nil
	}
}

// jsonString reads a string value or a key whose quote is at p.pos.
func (p *parser) jsonString(kind Kind) *Error {
	start := p.pos
	end, escaped, f, at := scanString(p.text, start+1, false)
	if f != faultNone {
		return p.failJSONString(start, f, at)
	}
	flags := uint8(0)
	if escaped {
		flags = flagEscaped
	}
	if raw := p.text[start+1 : end]; kind == String && raw != "" && (raw[0] == '$' || raw[0] == '\\') && p.refersInJSON(raw, escaped) {
		flags |= flagHasRef
		p.refs++
	}
	p.pos = end + 1
	p.push(kind, flags, start+1, end)
	return nil
}

// refersInJSON reports whether a string value is one that the function form would take for a reference,
// well formed or not.
func (p *parser) refersInJSON(raw string, escaped bool) bool {
	if !escaped {
		return looksLikeRef(raw)
	}
	if !mayRefer(raw) {
		return false
	}
	p.scratch = appendUnescaped(growTo(p.scratch, len(raw)), raw)
	return looksLikeRef(p.scratch)
}

// jsonArray reads an array whose bracket is at p.pos.
func (p *parser) jsonArray(depth int) *Error {
	if depth > MaxDepth {
		return p.failDepth(depth)
	}
	box := p.push(Array, 0, p.pos, p.pos)
	p.pos = skipJSONSpace(p.text, p.pos+1)
	if p.pos < len(p.text) && p.text[p.pos] == ']' {
		p.pos++
		p.closeBox(box, 0)
		return nil
	}
	var has uint8
	for count := 1; ; count++ {
		element := len(p.nodes)
		if err := p.jsonValue(depth); err != nil {
			return err
		}
		has |= p.nodes[element].flags & flagHasRef
		p.pos = skipJSONSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failJSONEnd()
		}
		switch p.text[p.pos] {
		case ',':
			p.pos = skipJSONSpace(p.text, p.pos+1)
		case ']':
			p.pos++
			p.closeBox(box, count)
			p.nodes[box].flags |= has
			return nil
		default:
			return p.failJSONDelimiter("`,` or `]`", "behind a value of an array")
		}
	}
}

// jsonObject reads an object whose brace is at p.pos.
func (p *parser) jsonObject(depth int) *Error {
	if depth > MaxDepth {
		return p.failDepth(depth)
	}
	box := p.push(Object, 0, p.pos, p.pos)
	p.pos = skipJSONSpace(p.text, p.pos+1)
	if p.pos < len(p.text) && p.text[p.pos] == '}' {
		p.pos++
		p.closeBox(box, 0)
		return nil
	}
	for count := 1; ; count++ {
		if err := p.jsonMember(depth, count); err != nil {
			return err
		}
		p.pos = skipJSONSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failJSONEnd()
		}
		switch p.text[p.pos] {
		case ',':
			p.pos = skipJSONSpace(p.text, p.pos+1)
		case '}':
			p.pos++
			p.closeObject(box, count)
			return nil
		default:
			return p.failJSONDelimiter("`,` or `}`", "behind a member of an object")
		}
	}
}

// jsonMember reads a key, a colon and a value.
func (p *parser) jsonMember(depth, count int) *Error {
	if p.pos == len(p.text) {
		return p.failJSONEnd()
	}
	if p.text[p.pos] != '"' {
		return p.failJSONKey(count)
	}
	if err := p.jsonString(kindKey); err != nil {
		return err
	}
	p.pos = skipJSONSpace(p.text, p.pos)
	if p.pos == len(p.text) {
		return p.failJSONEnd()
	}
	if p.text[p.pos] != ':' {
		return p.failJSONDelimiter("`:`", "behind a key")
	}
	p.pos = skipJSONSpace(p.text, p.pos+1)
	return p.jsonValue(depth)
}

// failJSON makes an InvalidJson.
func (p *parser) failJSON(at int, reason, advice string) *Error {
	e := p.fail(InvalidJson, at, "%s; %s", reason, advice)
	e.Reason = reason
	return e
}

func (p *parser) failJSONEnd() *Error {
	return p.failJSON(len(p.text), "the JSON ends before it is complete", "close every string, array and object")
}

func (p *parser) failJSONDelimiter(expected, where string) *Error {
	e := p.failJSON(p.pos, fmt.Sprintf("found `%s` %s, where %s was due", p.found(p.pos), where, expected), "the text must be one JSON value")
	e.Found, e.Expected = p.found(p.pos), expected
	return e
}

func (p *parser) failTrailing() *Error {
	advice := "several operations are written [{…}, {…}]"
	switch {
	case p.text[p.pos] == '|':
		advice = "JSON form has no chains; write them as calls: a() | b(name=$prev)"
	case p.text[0] == '[':
		advice = "put every operation between the brackets"
	}
	return p.failJSON(p.pos, fmt.Sprintf("found `%s` behind the JSON value", p.found(p.pos)), advice)
}

func (p *parser) failJSONKey(count int) *Error {
	advice := "write \"key\": value"
	switch c := p.text[p.pos]; {
	case c == '}' && count > 1:
		advice = "remove the comma before it"
	case class[c]&classNameStart != 0:
		advice = fmt.Sprintf("keys have double quotes: write \"%s\"", clip(p.text[p.pos:scanName(p.text, p.pos)]))
	case c == '\'':
		advice = "keys have double quotes, not single ones"
	}
	return p.failJSON(p.pos, fmt.Sprintf("found `%s` where a key was due", p.found(p.pos)), advice)
}

func (p *parser) failJSONString(start int, f fault, at int) *Error {
	if f == faultUnclosed {
		return p.failJSON(start, "the string that opens here has no closing quote", "add it, and write a quote inside it as \\\"")
	}
	return p.failJSON(at, stringReason(p.text, f, at), "write the string with JSON's escapes")
}

func (p *parser) failJSONNumber(start int) *Error {
	end := start
	for end < len(p.text) && (class[p.text[end]]&className != 0 || p.text[end] == '.' || p.text[end] == '+' || p.text[end] == '-') {
		end++
	}
	return p.failJSON(start, explainReason(p.text[start:end]), "JSON numbers look like -12.5e3; pass anything else as a string")
}

func explainReason(text string) string {
	reason, _ := explainNumber(text)
	return reason
}

func (p *parser) failJSONValue(start int) *Error {
	reason := fmt.Sprintf("found `%s` where a value was due", p.found(start))
	advice := "write a JSON value such as \"text\", 7, true or null"
	switch c := p.text[start]; {
	case c == ']' || c == '}' || c == ',':
		advice = "remove the comma before it, or write the value"
	case c == '$':
		advice = "JSON form has no references; write a chain of calls: a() | b(name=$prev.id)"
	case c == '\'' || c == '`':
		advice = "strings have double quotes"
	case class[c]&classNameStart != 0:
		word := p.text[start:scanName(p.text, start)]
		reason, advice = explainWord(word, `"`+clip(word)+`"`)
		if after := start + len(word); after < len(p.text) && p.text[after] == '(' {
			reason, advice = show(word)+" begins a call, and this text is in JSON form", "write {\"tool\": \""+clip(word)+"\", \"args\": {…}}"
		}
	}
	return p.failJSON(start, reason, advice)
}
