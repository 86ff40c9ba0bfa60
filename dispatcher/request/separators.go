package request

import "strings"

// failAfterCall says what is wrong with p.pos, behind a call.
func (p *parser) failAfterCall(mode Mode) *Error {
	expected := "`|` or the end of the request"
	advice := "one request is one call, a chain a() | b(), or a batch [a(), b()]"
	if mode == Parallel {
		expected = "`,` or `]`"
		advice = "the calls of a batch are separated by commas"
	}
	switch c := p.text[p.pos]; {
	case p.starts(p.pos, "//", "/*", "#", "--"):
		advice = "a request has no comments; remove it"
	case c == ';':
		advice = "separate calls with commas in a batch [a(), b()], or with | in a chain"
	case p.starts(p.pos, "->", "=>", ">", "&"):
		advice = "a chain is written a() | b()"
	case c == ')':
		advice = "remove this parenthesis; the call is closed already"
	case c == ']' && mode != Parallel:
		advice = "there is no `[` that it closes; remove it, or write `[` at the start"
	case class[c]&classNameStart != 0 && mode == Chain:
		advice = "put a | before it"
	case class[c]&classNameStart != 0 && mode == Single:
		advice = "write [a(), b()] to run both, or a() | b() to run one after the other"
	}
	return p.failUnexpected(expected, advice)
}

// failAfterBatch says what is wrong with p.pos, behind a batch.
func (p *parser) failAfterBatch() *Error {
	advice := "a batch is the whole request; put every call between its brackets"
	if p.text[p.pos] == '|' {
		advice = "a batch cannot be part of a chain; send two requests"
	}
	return p.failUnexpected("the end of the request", advice)
}

// failComma is a comma at p.pos, outside brackets, behind a call.
func (p *parser) failComma(mode Mode) *Error {
	left := clip(strings.TrimRight(p.text[:p.pos], " \t\r\n\f"))
	right := clip(p.text[skipSpace(p.text, p.pos+1):])
	switch {
	case right == "" && mode == Single:
		return p.fail(MixedSeparators, p.pos, "the call is followed by a comma and nothing else; remove the comma, or wrap several calls in [ ], as in [%s, other()]", left)
	case right == "":
		return p.fail(MixedSeparators, p.pos, "the chain is followed by a comma and nothing else; remove the comma, or send `%s` and what should follow as two requests", left)
	case mode == Single:
		return p.fail(MixedSeparators, p.pos, "calls separated by commas are a batch: wrap them in [ ], as in [%s, %s]; or send two requests: `%s`, then `%s`", left, right, left, right)
	default:
		return p.fail(MixedSeparators, p.pos, "a chain separates its calls with | and a batch with commas, and a request is one of the two; send two requests: `%s`, then `%s`", left, right)
	}
}

// failPipe is a | at p.pos, inside a batch, behind a call.
func (p *parser) failPipe() *Error {
	first, last := uint32(0), uint32(0)
	for i := first; i < uint32(len(p.nodes)); i = p.nodes[i].next {
		last = i
	}
	piped := p.text[p.nodes[last].off:p.pos]
	piped = clip(strings.TrimRight(piped, " \t\r\n\f")) + " | …"
	rest := "[…]"
	if last > first {
		before := strings.TrimRight(p.text[p.nodes[first].off:p.nodes[last].off], " \t\r\n\f,")
		rest = "[" + clip(before) + "]"
	}
	return p.fail(MixedSeparators, p.pos, "a batch separates its calls with commas and a chain with |, and a request is one of the two; send two requests: the batch `%s` and the chain `%s`", rest, piped)
}
