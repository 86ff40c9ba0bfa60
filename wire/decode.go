package wire

import "math/bits"

// payload is a payload as it was scanned: where the last value of each member is. Values become Go
// values only once the whole text and the set of members are known to be good, so that a member
// given twice costs nothing and counts once.
type payload struct {
	rules
	scanner
	kind           Kind
	seen, repeated memberSet
	values         [members]value
	unknown        text // the first name that is no member's
	hasUnknown     bool
	err            *CodecError // the first complaint about a member
}

// value is the text of a member's value; for a string, between the quotes.
type value struct {
	text
	first byte // the first byte, quote included, which tells what sort of value it is
}

func decodePayload(b []byte, r rules) (Frame, error) {
	p := payload{rules: r, scanner: scanner{buf: b}}
	if !p.scan() {
		return nil, &CodecError{Fault: InvalidJSON, Offset: p.pos, Detail: p.fault}
	}
	if err := p.findKind(); err != nil {
		return nil, err
	}
	if err := p.checkMembers(); err != nil {
		return nil, err
	}
	f := p.frame()
	if p.err != nil {
		return nil, p.err
	}
	if e, ok := f.(ErrorFrame); ok && !p.described {
		if err := checkScope(e, p.strict); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// scan reads the whole text. What it notes of the members is nothing for a text that is no object.
func (p *payload) scan() bool {
	if p.space() != '{' {
		return p.value(0) && p.end()
	}
	empty, ok := p.open(0, '}')
	if empty || !ok {
		return ok && p.end()
	}
	for {
		name, ok := p.name()
		if !ok || !p.member(name) {
			return false
		}
		more, ok := p.next('}')
		if !ok {
			return false
		}
		if !more {
			return p.end()
		}
	}
}

// member reads the value of a member of the payload.
func (p *payload) member(name text) bool {
	start := p.pos
	if start < len(p.buf) && p.buf[start] == '"' {
		v, ok := p.str()
		p.note(name, value{v, '"'})
		return ok
	}
	if !p.value(1) {
		return false
	}
	p.note(name, value{text{raw: p.buf[start:p.pos]}, p.buf[start]})
	return true
}

func (p *payload) note(name text, v value) {
	m, ok := name.member()
	if !ok {
		if !p.hasUnknown {
			p.unknown, p.hasUnknown = name, true
		}
		return
	}
	if p.seen.has(m) {
		p.repeated |= set(m)
	}
	p.seen |= set(m)
	p.values[m] = v
}

func (t text) member() (member, bool) {
	if t.saved == 0 {
		return parseMember(t.raw)
	}
	if t.size() > longestName {
		return 0, false
	}
	var buf [longestName]byte
	return parseMember(t.appendTo(buf[:0]))
}

func (p *payload) findKind() error {
	v := &p.values[mKind]
	switch {
	case !p.seen.has(mKind):
		return &CodecError{Fault: MissingKind, Detail: `the payload must be an object with a member "kind"`}
	case v.first != '"':
		return &CodecError{Fault: MissingKind, Detail: `member "kind" must be a string`}
	}
	var ok bool
	if v.saved == 0 {
		p.kind, ok = parseKind(v.raw)
	} else {
		p.kind, ok = parseKind(v.String())
	}
	if !ok {
		return &CodecError{Fault: UnknownFrameKind, Name: v.String()}
	}
	return nil
}

// checkMembers compares the members that are there with the kind's.
func (p *payload) checkMembers() error {
	s := shapes[p.kind]
	if p.described && p.kind == KindError {
		s.optional |= set(mUnrecognizedCode)
	}
	known := s.required | s.optional | set(mKind)
	switch {
	case p.hasUnknown:
		return p.invalid(p.unknown.String(), "does not belong to this kind; it has "+known.String())
	case p.seen&^known != 0:
		return p.invalid((p.seen &^ known).first().String(), "does not belong to this kind; it has "+known.String())
	case s.required&^p.seen != 0:
		return p.invalid((s.required &^ p.seen).first().String(), "is missing")
	case p.strict && p.repeated != 0:
		return p.invalid(p.repeated.first().String(), "is given more than once")
	}
	for rest := s.optional & p.seen; rest != 0; rest &= rest - 1 {
		m := member(bits.TrailingZeros32(uint32(rest)))
		if p.values[m].first != 'n' {
			continue
		}
		if p.strict {
			return p.invalid(m.String(), "must be left out rather than null")
		}
		p.seen &^= set(m)
	}
	return nil
}

func (p *payload) invalid(field, detail string) *CodecError {
	return &CodecError{Fault: InvalidFields, Kind: p.kind, Field: field, Detail: detail}
}

func (p *payload) complain(m member, detail string) {
	if p.err == nil {
		p.err = p.invalid(m.String(), detail)
	}
}

// checkScope holds an error frame to its code's scope (wire.md 5). The scope of an unknown code is
// unknown; the strict profile still wants an id with it, for nothing else says what it ends.
func checkScope(f ErrorFrame, strict bool) error {
	fail := func(detail string) error {
		return &CodecError{Fault: InconsistentErrorScope, Kind: KindError, Detail: detail}
	}
	switch _, fallback := f.UnrecognizedCode.Get(); {
	case fallback && strict && !f.ID.Present():
		return fail("an error with an unknown code must name an operation")
	case fallback:
		return nil
	case f.Code.Scope() == ConnectionTerminal && f.ID.Present():
		return fail("code " + f.Code.String() + " ends the connection and must come without an id")
	case f.Code.Scope() == RequestTerminal && !f.ID.Present():
		return fail("code " + f.Code.String() + " ends an operation and must name it with an id")
	}
	return nil
}
