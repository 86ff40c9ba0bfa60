package request

import (
	"slices"
	"strings"
)

// prev is how every reference begins.
const prev = "$prev"

// Ref is a path into the result of the preceding operation.
type Ref struct{ Steps []Step }

// Step is one step of a path: a member name, or an element index when IsIndex.
type Step struct {
	Field   string
	Index   string // decimal digits without leading zeros; may be too large for an int
	IsIndex bool
}

// String is the canonical spelling of request.md 3: rows[3].k, [0].k, "" for the whole result.
func (r Ref) String() string {
	var b strings.Builder
	for i, s := range r.Steps {
		switch {
		case s.IsIndex:
			b.WriteString("[" + s.Index + "]")
		case i > 0:
			b.WriteString("." + s.Field)
		default:
			b.WriteString(s.Field)
		}
	}
	return b.String()
}

// DSL is the reference as a caller may write it: $prev.rows[3].k, quoted where a field needs it.
func (r Ref) DSL() string { return string(r.appendDSL(nil, true)) }

func (r Ref) appendDSL(dst []byte, readable bool) []byte {
	path := r.String()
	if path != "" && path[0] != '[' {
		path = "." + path
	}
	for _, s := range r.Steps {
		if !s.IsIndex && !isName(s.Field) {
			return appendQuoted(dst, prev+path, readable)
		}
	}
	return append(append(dst, prev...), path...)
}

// parsePath splits what follows $prev in a reference that the parser accepted.
func parsePath(path string) []Step {
	if path == "" {
		return nil
	}
	steps := make([]Step, 0, strings.Count(path, ".")+strings.Count(path, "["))
	for path != "" {
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			index := strings.TrimLeft(path[1:end], "0")
			if index == "" {
				index = "0"
			}
			steps = append(steps, Step{Index: index, IsIndex: true})
			path = path[end+1:]
			continue
		}
		end := strings.IndexAny(path[1:], ".[") + 1
		if end == 0 {
			end = len(path)
		}
		steps = append(steps, Step{Field: path[1:end]})
		path = path[end:]
	}
	return steps
}

// reference reads an unquoted reference. White space ends it.
func (p *parser) reference() *Error {
	start := p.pos
	if !strings.HasPrefix(p.text[start:], prev) {
		return p.failReference(start, "references begin with $prev and this does not")
	}
	i := start + len(prev)
	if i < len(p.text) && class[p.text[i]]&className != 0 {
		return p.failReference(start, "$prev is followed by a letter or digit")
	}
	for i < len(p.text) {
		switch p.text[i] {
		case '.':
			end := scanName(p.text, i+1)
			if end == i+1 {
				return p.failNoField(i + 1)
			}
			i = end
			continue
		case '[':
			end := scanDigits(p.text, i+1)
			if end == i+1 {
				return p.failReference(start, "an index is decimal digits, as in $prev[0]")
			}
			p.pos = end
			if end == len(p.text) {
				return p.failEnd("`]`", "the index ends without its `]`; write it as $prev[0]")
			}
			if p.text[end] != ']' {
				return p.failAfterValue("`]`", "an index is digits and nothing else, as in $prev[0]")
			}
			i = end + 1
			continue
		}
		break
	}
	p.pos = i
	p.refs++
	p.push(Reference, flagHasRef, start, i)
	return nil
}

// refClass is what a string value of the function form is to $prev.
type refClass uint8

const (
	plain      refClass = iota
	wellFormed          // the string is a reference
	protected           // backslashes, then what looks like one: the plain string with one fewer
)

// refersAs classifies an unescaped string value of the function form (request.md 3, Quoted and Escape).
func refersAs[T string | []byte](s T) refClass {
	slashes := 0
	for slashes < len(s) && s[slashes] == '\\' {
		slashes++
	}
	rest := s[slashes:]
	switch {
	case !looksLikeRef(rest):
		return plain
	case slashes > 0:
		return protected
	case quotedPath(rest[len(prev):]):
		return wellFormed
	}
	return plain
}

// looksLikeRef reports whether s is $prev or starts with $prev. or $prev[.
func looksLikeRef[T string | []byte](s T) bool {
	if len(s) < len(prev) || string(s[:len(prev)]) != prev {
		return false
	}
	return len(s) == len(prev) || s[len(prev)] == '.' || s[len(prev)] == '['
}

// quotedPath reports whether a path in a quoted reference is well formed. Fields may be any text.
func quotedPath[T string | []byte](path T) bool {
	for i := 0; i < len(path); {
		open, start := path[i], i+1
		i = start
		switch open {
		case '[':
			for i < len(path) && class[path[i]]&classDigit != 0 {
				i++
			}
			if i == start || i == len(path) || path[i] != ']' {
				return false
			}
			i++
		case '.':
			for i < len(path) && path[i] != '.' && path[i] != '[' {
				if path[i] == ']' {
					return false
				}
				i++
			}
			if i == start {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// mayRefer reports whether the unescaped text of raw can start with a $ or a backslash; it spares most
// strings with escapes from being unescaped while parsing.
func mayRefer(raw string) bool {
	if raw == "" || raw[0] == '$' {
		return raw != ""
	}
	if raw[0] != '\\' {
		return false
	}
	var buf [4]byte
	out, _ := appendEscape(buf[:0], raw, 0)
	return out[0] == '$' || out[0] == '\\'
}

// growTo returns b emptied, with room for n bytes.
func growTo(b []byte, n int) []byte { return slices.Grow(b[:0], n) }
