package request

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// String is the request as canonical DSL: parsing it gives the same request. It is in function form
// where that can express the request, else (an argument's name is no identifier) in JSON form. It has
// white space for the reader and escapes for whatever is not visible; a request that would outgrow
// MaxBytes that way is written as tightly as it can be.
func (r *Request) String() string {
	if s := r.print(true); len(s) <= MaxBytes {
		return s
	}
	return r.print(false)
}

func (r *Request) print(readable bool) string {
	w := printer{readable: readable, json: !r.fitsFunctionForm()}
	separator := byte(',')
	switch {
	case r.Mode == Parallel:
		w.out = append(w.out, '[')
	case r.Mode == Chain:
		separator = '|'
	}
	for i, op := range r.Ops {
		if i > 0 {
			if separator == '|' && readable {
				w.out = append(w.out, ' ')
			}
			w.separate(separator)
		}
		w.operation(op)
	}
	if r.Mode == Parallel {
		w.out = append(w.out, ']')
	}
	return string(w.out)
}

// fitsFunctionForm reports whether every argument's name is an identifier. A chain has no other form.
func (r *Request) fitsFunctionForm() bool {
	for _, op := range r.Ops {
		for _, a := range op.Args {
			if !isName(a.Name) {
				return r.Mode == Chain
			}
		}
	}
	return true
}

type printer struct {
	out      []byte
	readable bool
	json     bool
}

// separate writes a separator, and a space for the reader.
func (w *printer) separate(c byte) {
	if w.out = append(w.out, c); w.readable {
		w.out = append(w.out, ' ')
	}
}

func (w *printer) operation(op Operation) {
	if w.json {
		w.out = append(w.out, `{"tool":`...)
		w.string(op.Tool)
		w.out = append(w.out, `,"args":{`...)
	} else {
		w.out = append(append(w.out, op.Tool...), '(')
	}
	for i, a := range op.Args {
		if i > 0 {
			w.separate(',')
		}
		if w.json {
			w.string(a.Name)
			w.out = append(w.out, ':')
		} else {
			w.out = append(append(w.out, a.Name...), '=')
		}
		w.value(a.Value)
	}
	if w.json {
		w.out = append(w.out, "}}"...)
	} else {
		w.out = append(w.out, ')')
	}
}

func (w *printer) value(v Value) {
	switch v.Kind() {
	case Null:
		w.out = append(w.out, "null"...)
	case Bool:
		if v.Bool() {
			w.out = append(w.out, "true"...)
		} else {
			w.out = append(w.out, "false"...)
		}
	case Number:
		w.out = append(w.out, v.Number()...)
	case String:
		w.text(v.Text())
	case Array:
		w.out = append(w.out, '[')
		first := true
		for e := range v.Elements() {
			if !first {
				w.separate(',')
			}
			first = false
			w.value(e)
		}
		w.out = append(w.out, ']')
	case Object:
		w.object(v)
	case Reference:
		w.out = v.Ref().appendDSL(w.out, w.readable)
	}
}

func (w *printer) object(v Value) {
	w.out = append(w.out, '{')
	first := true
	for key, e := range v.Members() {
		if !first {
			w.separate(',')
		}
		first = false
		w.string(key)
		w.separate(':')
		w.value(e)
	}
	w.out = append(w.out, '}')
}

// text writes a string value. In function form what would be read as a reference gets a backslash, and
// when space is short the white space that may stand raw does.
func (w *printer) text(s string) {
	if w.json {
		w.string(s)
		return
	}
	if refersAs(s) != plain {
		s = `\` + s
	}
	if w.readable {
		w.string(s)
		return
	}
	w.out = append(w.out, '"')
	for rest := s; ; {
		i := strings.IndexAny(rest, "\n\r\t")
		if i < 0 {
			w.out = appendEscaped(w.out, rest, false)
			break
		}
		w.out = append(appendEscaped(w.out, rest[:i], false), rest[i])
		rest = rest[i+1:]
	}
	w.out = append(w.out, '"')
}

func (w *printer) string(s string) { w.out = appendQuoted(w.out, s, w.readable) }

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string, readable bool) []byte {
	return append(appendEscaped(append(dst, '"'), s, readable), '"')
}

// appendEscaped appends s with the escapes that JSON demands, and with readable also those that keep
// invisible characters out of terminals and logs.
func appendEscaped(dst []byte, s string, readable bool) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if r >= 0x20 && r != '"' && r != '\\' && (!readable || unicode.IsPrint(r)) {
			i += size
			continue
		}
		dst = append(dst, s[from:i]...)
		i += size
		from = i
		if c := strings.IndexRune("\"\\\b\f\n\r\t", r); c >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[c])
			continue
		}
		for _, u := range utf16Units(r) {
			dst = append(dst, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
		}
	}
	return append(dst, s[from:]...)
}
