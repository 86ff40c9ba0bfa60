package request

import (
	"strconv"
	"unicode/utf16"
)

// MarshalJSON is {"mode","ops":[{"tool","args","refs"}]}. A whole-argument reference is absent from args
// and stands in refs under its name, a nested one is null in args and stands in refs under arg[2] or
// arg.key[0]; paths have the canonical spelling of Ref. Numbers are written as they came. Every nested reference
// spells out its place, so this is for tools and tests: the text of a stranger can make it long.
func (r *Request) MarshalJSON() ([]byte, error) {
	out := append([]byte(nil), `{"mode":"`+r.Mode.String()+`","ops":[`...)
	for i, op := range r.Ops {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendOperation(out, op)
	}
	return append(out, "]}"...), nil
}

func appendOperation(out []byte, op Operation) []byte {
	e := encoder{out: append(appendQuoted(append(out, `{"tool":`...), op.Tool, false), `,"args":{`...)}
	first := true
	for _, a := range op.Args {
		e.at = append(e.at[:0], a.Name...)
		if a.Value.Kind() == Reference {
			e.ref(a.Value)
			continue
		}
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = append(appendQuoted(e.out, a.Name, false), ':')
		e.value(a.Value)
	}
	out = append(e.out, `},"refs":{`...)
	return append(append(out, e.refs...), "}}"...)
}

// encoder writes one operation; at is the place of the value being written, refs the members of refs.
type encoder struct {
	out, refs, at []byte
}

func (e *encoder) ref(v Value) {
	if len(e.refs) > 0 {
		e.refs = append(e.refs, ',')
	}
	e.refs = append(appendQuoted(e.refs, string(e.at), false), ':')
	e.refs = appendQuoted(e.refs, v.Ref().String(), false)
}

func (e *encoder) value(v Value) {
	switch v.Kind() {
	case Null:
		e.out = append(e.out, "null"...)
	case Reference:
		e.out = append(e.out, "null"...)
		e.ref(v)
	case Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case Number:
		e.out = append(e.out, v.Number()...)
	case String:
		e.out = appendQuoted(e.out, v.Text(), false)
	case Array:
		e.array(v)
	case Object:
		e.object(v)
	}
}

func (e *encoder) array(v Value) {
	e.out = append(e.out, '[')
	here, i := len(e.at), 0
	for element := range v.Elements() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.at = append(strconv.AppendInt(append(e.at[:here], '['), int64(i), 10), ']')
		e.value(element)
		i++
	}
	e.at = e.at[:here]
	e.out = append(e.out, ']')
}

func (e *encoder) object(v Value) {
	e.out = append(e.out, '{')
	here, first := len(e.at), true
	for key, member := range v.Members() {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = append(appendQuoted(e.out, key, false), ':')
		e.at = append(append(e.at[:here], '.'), key...)
		e.value(member)
	}
	e.at = e.at[:here]
	e.out = append(e.out, '}')
}

// utf16Units is a code point as the \u escapes of JSON spell it.
func utf16Units(r rune) []uint16 { return utf16.AppendRune(nil, r) }
