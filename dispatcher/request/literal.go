package request

import "strings"

// value reads one value of the function form at p.pos and leaves p.pos behind it (for a scalar, behind
// the white space after it too). depth is how many arrays and objects of this argument are open.
func (p *parser) value(depth int) *Error {
	start := p.pos
	if start == len(p.text) {
		return p.failSlot(start)
	}
	var (
		kind  Kind
		flags uint8
		end   int
		ok    bool
	)
	from, to := start, 0
	switch c := p.text[start]; c {
	case '[':
		return p.array(depth + 1)
	case '{':
		return p.object(depth + 1)
	case '$':
		return p.reference()
	case '"':
		kind, flags, end, ok = p.quoted(start)
		from, to = start+1, end-1
	case 't', 'f', 'n':
		var yes bool
		kind, yes, end = scanLiteral(p.text, start)
		if ok = end > start; yes {
			flags = flagTrue
		}
		to = end
	default:
		if c != '-' && class[c]&classDigit == 0 {
			return p.failSlot(start)
		}
		var exponent bool
		end, exponent, ok = scanNumber(p.text, start)
		ok = ok && numberFits(p.text[start:end], exponent)
		kind, to = Number, end
	}
	if !ok {
		return p.failSlot(start)
	}
	// The scalar's slot ends here, or holds more than a scalar.
	if end = skipSpace(p.text, end); end < len(p.text) && class[p.text[end]]&classSlotEnd == 0 {
		return p.failSlot(start)
	}
	p.pos = end
	if kind == Reference {
		p.refs++
	}
	p.push(kind, flags, from, to)
	return nil
}

// quoted reads a string value, which may be a reference or protect one (request.md 3). end is behind the
// closing quote.
func (p *parser) quoted(start int) (kind Kind, flags uint8, end int, ok bool) {
	end, escaped, f, _ := scanString(p.text, start+1, true)
	if f != faultNone {
		return String, 0, 0, false
	}
	raw, sort := p.text[start+1:end], plain
	switch {
	case !escaped:
		if strings.HasPrefix(raw, prev) {
			sort = refersAs(raw)
		}
	case mayRefer(raw):
		p.scratch = appendUnescaped(growTo(p.scratch, len(raw)), raw)
		sort = refersAs(p.scratch)
	}
	if escaped {
		flags = flagEscaped
	}
	switch sort {
	case wellFormed:
		return Reference, flags | flagQuoted | flagHasRef, end + 1, true
	case protected:
		flags |= flagDrop
	case plain:
	}
	return String, flags, end + 1, true
}

// array reads an array whose bracket is at p.pos.
func (p *parser) array(depth int) *Error {
	if depth > MaxDepth {
		return p.failDepth(depth)
	}
	box := p.push(Array, 0, p.pos, p.pos)
	p.pos = skipSpace(p.text, p.pos+1)
	if p.pos < len(p.text) && p.text[p.pos] == ']' {
		p.pos++
		p.closeBox(box, 0)
		return nil
	}
	var has uint8
	for count := 1; ; count++ {
		element := len(p.nodes)
		if err := p.value(depth); err != nil {
			return err
		}
		has |= p.nodes[element].flags & flagHasRef
		p.pos = skipSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failEnd("`]`", "the array ends without its `]`; add `]`, or a comma and another value")
		}
		switch p.text[p.pos] {
		case ',':
			p.pos = skipSpace(p.text, p.pos+1)
		case ']':
			p.pos++
			p.closeBox(box, count)
			p.nodes[box].flags |= has
			return nil
		default:
			return p.failAfterValue("`,` or `]`", "the values of an array are separated by commas and the array ends with `]`")
		}
	}
}

// object reads an object whose brace is at p.pos.
func (p *parser) object(depth int) *Error {
	if depth > MaxDepth {
		return p.failDepth(depth)
	}
	box := p.push(Object, 0, p.pos, p.pos)
	p.pos = skipSpace(p.text, p.pos+1)
	if p.pos < len(p.text) && p.text[p.pos] == '}' {
		p.pos++
		p.closeBox(box, 0)
		return nil
	}
	for count := 1; ; count++ {
		if err := p.member(depth, count); err != nil {
			return err
		}
		p.pos = skipSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failEnd("`}`", "the object ends without its `}`; add `}`, or a comma and another key")
		}
		switch p.text[p.pos] {
		case ',':
			p.pos = skipSpace(p.text, p.pos+1)
		case '}':
			p.pos++
			p.closeObject(box, count)
			return nil
		default:
			return p.failAfterValue("`,` or `}`", "the members of an object are separated by commas and the object ends with `}`")
		}
	}
}

// member reads a key, a colon and a value.
func (p *parser) member(depth, count int) *Error {
	start := p.pos
	if start == len(p.text) || p.text[start] != '"' {
		return p.failNoKey(count)
	}
	end, escaped, f, at := scanString(p.text, start+1, false)
	if f != faultNone {
		return p.failKey(start, f, at)
	}
	flags := uint8(0)
	if escaped {
		flags = flagEscaped
	}
	p.push(kindKey, flags, start+1, end)
	p.pos = skipSpace(p.text, end+1)
	if p.pos == len(p.text) {
		return p.failEnd("`:`", "the key %s has no value; write a colon and a value after it", show(p.text[start:end+1]))
	}
	if p.text[p.pos] != ':' {
		return p.failAfterValue("`:`", "a colon stands between a key and its value")
	}
	p.pos = skipSpace(p.text, p.pos+1)
	return p.value(depth)
}
