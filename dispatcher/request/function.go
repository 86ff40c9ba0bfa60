package request

// functionForm reads a call, a chain or a batch (request.md 2).
func (p *parser) functionForm(mode Mode) (*Request, *Error) {
	var err *Error
	if mode == Parallel {
		err = p.batch()
	} else {
		mode, err = p.chain()
	}
	if err != nil {
		return nil, err
	}
	if err := p.checkCalls(mode); err != nil {
		return nil, err
	}
	return p.collectCalls(mode), nil
}

// chain reads one call, or several with | between them, to the end of the text.
func (p *parser) chain() (Mode, *Error) {
	mode := Single
	for {
		if err := p.call(); err != nil {
			return mode, err
		}
		p.pos = skipSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return mode, nil
		}
		switch p.text[p.pos] {
		case '|':
			mode = Chain
			p.pos = skipSpace(p.text, p.pos+1)
		case ',':
			return mode, p.failComma(mode)
		default:
			return mode, p.failAfterCall(mode)
		}
	}
}

// batch reads calls in brackets, with commas between them, to the end of the text.
func (p *parser) batch() *Error {
	p.pos = skipSpace(p.text, 1)
	if p.pos < len(p.text) && p.text[p.pos] == ']' {
		return p.fail(EmptyBatch, 0, "the batch is empty; write at least one call between [ and ]")
	}
	for {
		if err := p.call(); err != nil {
			return err
		}
		p.pos = skipSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failEnd("`]`", "the batch ends without its `]`; add `]`, or a comma and another call")
		}
		switch p.text[p.pos] {
		case ',':
			comma := p.pos
			p.pos = skipSpace(p.text, p.pos+1)
			if p.pos < len(p.text) && p.text[p.pos] == ']' {
				return p.fail(TrailingComma, comma, "the batch ends with a comma; remove it, or add a call after it")
			}
		case ']':
			p.pos = skipSpace(p.text, p.pos+1)
			if p.pos < len(p.text) {
				return p.failAfterBatch()
			}
			return nil
		case '|':
			return p.failPipe()
		default:
			return p.failAfterCall(Parallel)
		}
	}
}

// call reads a verb and its arguments.
func (p *parser) call() *Error {
	if p.calls == MaxOps && p.pos < len(p.text) {
		e := p.fail(TooManyOps, p.pos, "this is operation %d and a request may have at most %d; send the rest in another request", MaxOps+1, MaxOps)
		e.Count, e.Max = MaxOps+1, MaxOps
		return e
	}
	verb := p.pos
	if err := p.verb(); err != nil {
		return err
	}
	call := p.push(kindCall, 0, verb, p.pos)
	p.calls++
	p.pos = skipSpace(p.text, p.pos)
	if p.pos == len(p.text) {
		return p.failEnd("`(`", "the verb %s has no arguments in parentheses; write %s()", show(p.text[verb:p.pos]), clip(p.text[verb:p.pos]))
	}
	if p.text[p.pos] != '(' {
		return p.failAfterVerb(verb)
	}
	open := p.pos
	p.pos = skipSpace(p.text, p.pos+1)
	if p.pos < len(p.text) && p.text[p.pos] == ')' {
		p.pos++
		return nil
	}
	if p.pos == len(p.text) {
		return p.failOpenCall(open)
	}
	if err := p.arguments(call, open); err != nil {
		return err
	}
	p.nodes[call].next = uint32(len(p.nodes))
	return nil
}

// verb moves over a name, or two with a dot between them.
func (p *parser) verb() *Error {
	end := scanName(p.text, p.pos)
	if end == p.pos {
		return p.failNoVerb()
	}
	p.pos = end
	if end == len(p.text) || p.text[end] != '.' {
		return nil
	}
	p.pos = scanName(p.text, end+1)
	if p.pos == end+1 {
		return p.failNoName(end+1, "after the dot of a verb")
	}
	if p.pos < len(p.text) && p.text[p.pos] == '.' {
		return p.failNesting(p.pos)
	}
	return nil
}

// arguments reads name=value pairs up to and with the closing parenthesis of the call.
func (p *parser) arguments(call uint32, open int) *Error {
	for count := 1; ; count++ {
		start := p.pos
		end := scanName(p.text, start)
		if end == start {
			return p.failNoArgument(count)
		}
		name := p.push(kindKey, 0, start, end)
		p.arg = p.text[start:end]
		p.pos = skipSpace(p.text, end)
		if p.pos == len(p.text) {
			return p.failEnd("`=`", "the argument %s has no value; write %s=\"value\"", show(p.arg), clip(p.arg))
		}
		if p.text[p.pos] != '=' {
			return p.failNoEquals(start, end)
		}
		p.pos = skipSpace(p.text, p.pos+1)
		if err := p.value(0); err != nil {
			return err
		}
		p.args++
		if p.repeatedArg(call+1, count, name) {
			e := p.fail(DuplicateArg, start, "the argument %s is given twice; keep one of them", show(p.arg))
			e.Arg = p.arg
			return e
		}
		p.pos = skipSpace(p.text, p.pos)
		if p.pos == len(p.text) {
			return p.failOpenCall(open)
		}
		switch p.text[p.pos] {
		case ',':
			p.pos = skipSpace(p.text, p.pos+1)
		case ')':
			p.pos++
			return nil
		default:
			return p.failAfterValue("`,` or `)`", "arguments are separated by commas and the call ends with `)`")
		}
	}
}

// checkCalls refuses references outside a chain and reserved arguments, call by call (request.md 6).
func (p *parser) checkCalls(mode Mode) *Error {
	t := tape{text: p.text, nodes: p.nodes}
	for call := uint32(0); call < uint32(len(p.nodes)); call = p.nodes[call].next {
		end := p.nodes[call].next
		if mode != Chain && p.refs > 0 {
			for arg := call + 1; arg < end; arg = p.nodes[arg+1].next {
				if ref, ok := t.firstRef(arg + 1); ok {
					return p.failOutsideChain(ref)
				}
			}
		}
		for arg := call + 1; arg < end; arg = p.nodes[arg+1].next {
			if name := t.raw(arg); envelopeArg(name) {
				return p.failReserved(int(p.nodes[arg].off), t.raw(call), name)
			}
		}
	}
	return nil
}

// collectCalls makes the request from the calls on the tape.
func (p *parser) collectCalls(mode Mode) *Request {
	out, args := p.finish(mode, p.calls, p.args)
	t := &out.tape
	for call := uint32(0); call < uint32(len(t.nodes)); {
		end := t.nodes[call].next
		from := len(args)
		for arg := call + 1; arg < end; arg = t.nodes[arg+1].next {
			args = append(args, Arg{Name: t.raw(arg), Value: Value{t: t, i: arg + 1}})
		}
		out.req.Ops = append(out.req.Ops, Operation{Tool: t.raw(call), Args: args[from:len(args):len(args)]})
		call = end
	}
	return &out.req
}
