package request

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// found is the character at an offset of the body, fit to print; empty at the end.
func (p *parser) found(at int) string {
	if at >= len(p.text) {
		return ""
	}
	_, size := utf8.DecodeRuneInString(p.text[at:])
	return clip(p.text[at : at+size])
}

// starts reports whether the body goes on with one of the words at an offset.
func (p *parser) starts(at int, words ...string) bool {
	for _, w := range words {
		if strings.HasPrefix(p.text[at:], w) {
			return true
		}
	}
	return false
}

// failEnd makes an UnexpectedEof: the text ends where expected was due.
func (p *parser) failEnd(expected, format string, args ...any) *Error {
	e := p.fail(UnexpectedEof, len(p.text), format, args...)
	e.Expected = expected
	return e
}

// failUnexpected makes an UnexpectedChar at p.pos, with advice after the bare facts.
func (p *parser) failUnexpected(expected, advice string) *Error {
	found := p.found(p.pos)
	e := p.fail(UnexpectedChar, p.pos, "found `%s` where %s was due; %s", found, expected, advice)
	e.Found, e.Expected = found, expected
	return e
}

// failIdentifier makes an InvalidIdentifier.
func (p *parser) failIdentifier(at int, format string, args ...any) *Error {
	e := p.fail(InvalidIdentifier, at, format, args...)
	e.Found = p.found(at)
	return e
}

// failAfterValue is failUnexpected behind a value, where the advice is mostly the grammar.
func (p *parser) failAfterValue(expected, grammar string) *Error {
	last := p.nodes[len(p.nodes)-1]
	switch c := p.text[p.pos]; {
	case last.kind == Reference && last.flags&flagQuoted == 0 && int(last.off+last.n) == p.pos && class[c]&classSlotEnd == 0:
		grammar = "a field with other characters than letters, digits and underscores needs quotes around it all, as in \"$prev.some-key\""
	case c == '=':
		grammar = "inside an object write \"key\": value"
	case strings.Contains(expected, "`,`") && (c == '"' || class[c]&className != 0):
		grammar = "put a comma before it"
	}
	return p.failUnexpected(expected, grammar)
}

// failOpenCall makes an UnclosedCall.
func (p *parser) failOpenCall(open int) *Error {
	e := p.fail(UnclosedCall, open, "the text ends inside the call that opens here; add the missing `)`")
	e.Start = p.lead + open
	return e
}

// failDepth makes a NestingTooDeep at p.pos.
func (p *parser) failDepth(depth int) *Error {
	what := "an argument value"
	if p.json {
		what = "a request in JSON form"
	}
	e := p.fail(NestingTooDeep, p.pos, "%s may nest %d arrays and objects and this is number %d; flatten it", what, MaxDepth, depth)
	e.Depth, e.Max = depth, MaxDepth
	return e
}

// failNesting makes an UnsupportedVerbNesting at the second dot of a verb.
func (p *parser) failNesting(at int) *Error {
	return p.fail(UnsupportedVerbNesting, at, "a verb has at most one dot; write verb(…) or pack.verb(…)")
}

// failNoVerb says why no call starts at p.pos.
func (p *parser) failNoVerb() *Error {
	at := p.pos
	if at == len(p.text) {
		mark := strings.TrimRight(p.text, " \t\r\n\f")
		return p.failIdentifier(at, "the text ends after `%s`, where a call was due; write one such as verb(name=\"value\")", mark[len(mark)-1:])
	}
	advice := "a call begins with its verb, as in verb(name=\"value\")"
	switch c := p.text[at]; {
	case c == '"' || c == '\'' || c == '`':
		advice = "a call is written without quotes around it, as in verb(name=\"value\")"
	case c == '{':
		advice = "JSON form cannot be mixed with calls; write verb(name=\"value\")"
	case c == '[':
		advice = "a batch cannot stand inside another request; write its calls one by one"
	case c == '|' || c == ',':
		advice = "a call is due on both sides of a separator"
	case c == '(':
		advice = "put the verb before the parenthesis, as in verb()"
	case class[c]&classDigit != 0:
		advice = "a verb begins with a letter or an underscore"
	case p.starts(at, "\ufeff"):
		advice = "the text begins with a byte order mark; remove it"
	}
	return p.failIdentifier(at, "found `%s` where a verb was due; %s", p.found(at), advice)
}

// failNoName says that no name stands at an offset.
func (p *parser) failNoName(at int, where string) *Error {
	if at == len(p.text) {
		return p.failIdentifier(at, "the text ends %s, where a name was due; a name is ASCII letters, digits and underscores", where)
	}
	advice := "a name is ASCII letters, digits and underscores and does not begin with a digit"
	if class[p.text[at]]&classSpace != 0 {
		advice = "no white space may stand around a dot"
	}
	return p.failIdentifier(at, "found `%s` %s, where a name was due; %s", p.found(at), where, advice)
}

// failNoField says that no field follows the dot of a reference.
func (p *parser) failNoField(at int) *Error {
	if e := p.failNoName(at, "after the dot of a reference"); at == len(p.text) || class[p.text[at]]&classDigit == 0 {
		return e
	}
	return p.failIdentifier(at, "found `%s` after the dot of a reference, where a field was due; write an index in brackets, as in $prev[0]", p.found(at))
}

// failNoArgument says why no argument starts at p.pos, the place of argument number count.
func (p *parser) failNoArgument(count int) *Error {
	at := p.pos
	if at == len(p.text) {
		return p.failIdentifier(at, "the text ends after a comma, where an argument was due; write name=\"value\" and `)`")
	}
	advice := "every argument is written name=value"
	switch c := p.text[at]; {
	case c == ')' && count > 1:
		advice = "remove the comma before it"
	case c == ',':
		advice = "remove this comma, or write name=value before it"
	case c == '"':
		advice = "arguments are named and names have no quotes; write name=\"value\""
	case c == '=':
		advice = "put the argument's name before the `=`"
	case p.starts(at, "//", "/*", "#", "--"):
		advice = "a request has no comments; remove it"
	case c == ']' || c == '}':
		advice = "close the call with `)` first"
	}
	return p.failIdentifier(at, "found `%s` where an argument's name was due; %s", p.found(at), advice)
}

// failNoEquals says why p.pos, behind the name from start to end, is no `=`.
func (p *parser) failNoEquals(start, end int) *Error {
	name := clip(p.text[start:end])
	advice := fmt.Sprintf("write %s=\"value\"", name)
	switch c := p.text[p.pos]; c {
	case ')', ',':
		advice = fmt.Sprintf("arguments are named: write name=\"%s\" for a text, or %s=\"value\"", name, name)
	case '(':
		advice = "a call cannot be an argument; run it first and use $prev in a chain"
	default:
		if c != ':' && p.pos == end {
			advice = "a name is ASCII letters, digits and underscores; write name=\"value\""
		}
	}
	return p.failUnexpected("`=`", advice)
}

// failAfterVerb says why p.pos, behind a verb, is no parenthesis.
func (p *parser) failAfterVerb(verb int) *Error {
	name := clip(strings.TrimRight(p.text[verb:p.pos], " \t\r\n\f"))
	advice := fmt.Sprintf("write %s(name=\"value\")", name)
	switch c := p.text[p.pos]; {
	case c == '.':
		advice = "no white space may stand around the dot of a verb"
	case c == '/' || c == ':' || c == '-' || c >= utf8.RuneSelf:
		advice = "a verb is ASCII letters, digits and underscores, with at most one dot, as in pack.verb()"
	}
	return p.failUnexpected("`(`", advice)
}

// failNoKey says why p.pos, the place of key number count, is no key.
func (p *parser) failNoKey(count int) *Error {
	if p.pos == len(p.text) {
		return p.failEnd("`}`", "the text ends inside an object; write \"key\": value, or close it with `}`")
	}
	expected := "a key in double quotes"
	advice := "write \"key\": value"
	switch c := p.text[p.pos]; {
	case c == '}' && count > 1:
		advice = "remove the comma before it"
	case class[c]&classNameStart != 0:
		advice = fmt.Sprintf("write \"%s\": value", clip(p.text[p.pos:scanName(p.text, p.pos)]))
	case c == '\'':
		advice = "keys have double quotes, not single ones"
	}
	if count == 1 {
		expected += " or `}`"
	}
	return p.failUnexpected(expected, advice)
}

// failKey says what is wrong with the key whose quote is at start.
func (p *parser) failKey(start int, f fault, at int) *Error {
	if f == faultUnclosed || closingQuote(p.text, start+1) < 0 {
		return p.failOpenString(start)
	}
	return p.failValue(start, stringReason(p.text, f, at), "write the key as a JSON string")
}

// failOpenString makes an UnclosedString.
func (p *parser) failOpenString(start int) *Error {
	e := p.fail(UnclosedString, start, "the string that opens here has no closing quote; add it, and write a quote inside it as \\\"")
	e.Start = p.lead + start
	return e
}

// failReference makes an InvalidValue about what begins like a reference.
func (p *parser) failReference(start int, reason string) *Error {
	return p.failValue(start, reason, "write $prev, $prev.field or $prev[0]; a text with a $ needs double quotes")
}

// failOutsideChain makes a PrevRefOutsideChain at a reference's node.
func (p *parser) failOutsideChain(ref uint32) *Error {
	at := int(p.nodes[ref].off)
	if p.nodes[ref].flags&flagQuoted == 0 {
		return p.fail(PrevRefOutsideChain, at, "$prev is the result of the preceding call, and only a chain has one; write first() | second(name=$prev)")
	}
	return p.fail(PrevRefOutsideChain, at-1, "this string is a reference to the preceding call, and only a chain has one; write first() | second(name=$prev), or \"\\\\$prev\" for the text itself")
}
