package packs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep a value may nest, as in request.md 5.
const maxDepth = 64

// fault is what is wrong with a value. It leads to an InvalidError and holds none of the value when
// the param is sensitive.
type fault struct{ text string }

func faultf(format string, args ...any) *fault { return &fault{fmt.Sprintf(format, args...)} }

// conform checks a value against the param and returns it as the handler is to see it: the value
// itself, but for UUIDs, which come out in lower case.
func (p *Param) conform(value any) (any, *fault) {
	if value == nil {
		if p.Nullable || p.Type == Any {
			return nil, nil
		}
		return nil, faultf("is null, which is no value of this param; leave it out, or give %s", article(string(p.Type)))
	}
	elem, isList := p.Type.Elem()
	if !isList {
		return p.conformTo(p.Type, value, 1)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, p.wrongType(p.Type, value)
	}
	if f := p.tooMany(len(list), "elements"); f != nil {
		return nil, f
	}
	out := list
	for i, e := range list {
		var f *fault
		if e == nil && elem != Any {
			f = faultf("is null; leave the element out")
		} else {
			var c any
			if c, f = p.conformTo(elem, e, 2); f == nil && elem == UUID && c != e {
				if &out[0] == &list[0] {
					out = slices.Clone(list)
				}
				out[i] = c
			}
		}
		if f != nil {
			return nil, faultf("element [%d] %s", i, f.text)
		}
	}
	return out, nil
}

// conformTo checks a value that is not null against one type that is not array<T>.
func (p *Param) conformTo(t Type, value any, depth int) (any, *fault) {
	switch t {
	case String:
		s, ok := value.(string)
		if !ok {
			return nil, p.wrongType(t, value)
		}
		if f := p.plainString(s); f != nil {
			return nil, f
		}
		if p.Enum != nil && !slices.Contains(p.Enum, s) {
			return nil, p.notInEnum(s)
		}
	case Integer, Number:
		n, ok := value.(json.Number)
		if !ok {
			return nil, p.wrongType(t, value)
		}
		if f := p.number(t, n); f != nil {
			return nil, f
		}
	case Boolean:
		if _, ok := value.(bool); !ok {
			return nil, p.wrongType(t, value)
		}
	case UUID:
		s, ok := value.(string)
		if !ok {
			return nil, p.wrongType(t, value)
		}
		if !isUUID(s) {
			return nil, faultf("is not a UUID%s; write 8-4-4-4-12 hex digits, as \"123e4567-e89b-42d3-a456-426614174000\"", p.quoted(s))
		}
		return strings.ToLower(s), nil
	case Datetime:
		s, ok := value.(string)
		if !ok {
			return nil, p.wrongType(t, value)
		}
		if !isDatetime(s) {
			return nil, faultf("is not an RFC 3339 date and time%s; write it as \"2006-01-02T15:04:05Z\"", p.quoted(s))
		}
	case Object:
		if _, ok := value.(map[string]any); !ok {
			return nil, p.wrongType(t, value)
		}
		return value, p.tree(value, depth)
	case Array:
		if _, ok := value.([]any); !ok {
			return nil, p.wrongType(t, value)
		}
		return value, p.tree(value, depth)
	case Any:
		return value, p.tree(value, depth)
	default: // a manifest that Validate refuses
		return nil, faultf("has the unknown type %s", showName(string(t)))
	}
	return value, nil
}

// tree checks sizes, depth and soundness of a value of any shape.
func (p *Param) tree(value any, depth int) *fault {
	if depth > maxDepth {
		return faultf("nests deeper than %d levels; flatten it", maxDepth)
	}
	switch v := value.(type) {
	case nil, bool:
		return nil
	case string:
		return p.plainString(v)
	case json.Number:
		if problem := numberProblem(v); problem != "" {
			return &fault{problem}
		}
		return nil
	case []any:
		if f := p.tooMany(len(v), "elements"); f != nil {
			return f
		}
		for i, e := range v {
			if f := p.tree(e, depth+1); f != nil {
				return under("["+strconv.Itoa(i)+"]", f)
			}
		}
		return nil
	case map[string]any:
		if f := p.tooMany(len(v), "members"); f != nil {
			return f
		}
		var worst *fault
		worstKey := ""
		for k, e := range v {
			f := p.plainString(k)
			if f == nil {
				f = p.tree(e, depth+1)
			}
			// The order of a map is random, the error must not be.
			if f != nil && (worst == nil || k < worstKey) {
				worst, worstKey = f, k
			}
		}
		if worst != nil {
			if p.Sensitive {
				return under("a member", worst)
			}
			return under("member "+show(worstKey), worst)
		}
		return nil
	}
	return faultf("holds a Go value of type %T, which is not plain JSON", value)
}

// under puts a step in front of a fault. The steps of a deep value are not all listed.
func under(step string, f *fault) *fault {
	if strings.Count(f.text, ": ") > 3 {
		return f
	}
	return &fault{step + ": " + f.text}
}

func (p *Param) plainString(s string) *fault {
	if limit := p.LengthLimit(); len(s) > limit {
		return faultf("has %d bytes, more than the %d allowed; shorten it", len(s), limit)
	}
	if !utf8.ValidString(s) {
		return faultf("is not valid UTF-8")
	}
	return nil
}

func (p *Param) tooMany(n int, what string) *fault {
	if limit := p.ItemsLimit(); n > limit {
		return faultf("has %d %s, more than the %d allowed; split it", n, what, limit)
	}
	return nil
}

func (p *Param) number(t Type, n json.Number) *fault {
	if problem := numberProblem(n); problem != "" {
		return &fault{problem}
	}
	if t == Integer {
		if !isInteger(string(n)) {
			if whole := wholeSpelling(n); whole != "" && !p.Sensitive {
				return faultf("must be an integer without point or exponent, got %s; write %s", n, whole)
			}
			return faultf("must be a whole number%s", p.got(string(n)))
		}
		if _, err := strconv.ParseInt(string(n), 10, 64); err != nil {
			return faultf("is beyond 64 bits%s; an integer lies between -9223372036854775808 and 9223372036854775807", p.got(string(n)))
		}
	}
	if p.Min != "" && compare(n, p.Min) < 0 {
		return faultf("must be at least %s%s", p.Min, p.got(string(n)))
	}
	if p.Max != "" && compare(n, p.Max) > 0 {
		return faultf("must be at most %s%s", p.Max, p.got(string(n)))
	}
	return nil
}

func (p *Param) notInEnum(s string) *fault {
	allowed := make([]string, len(p.Enum))
	for i, e := range p.Enum {
		allowed[i] = strconv.Quote(e)
	}
	hint := ""
	if near := closest(s, p.Enum); near != "" && !p.Sensitive {
		hint = "; did you mean " + strconv.Quote(near) + "?"
	}
	return faultf("must be one of %s%s%s", strings.Join(allowed, ", "), p.quotedGot(s), hint)
}

func (p *Param) wrongType(want Type, value any) *fault {
	hint := ""
	if s, ok := value.(string); ok && !p.Sensitive {
		switch {
		case (want == Integer && isInteger(s) || want == Number && isJSONNumber(s)) && len(s) <= 20:
			hint = "; write " + s + " without quotes"
		case want == Boolean && (s == "true" || s == "false"):
			hint = "; write " + s + " without quotes"
		}
	}
	if elem, ok := want.Elem(); ok {
		if _, isList := value.([]any); !isList && jsonFits(elem, value) {
			hint = "; put it in brackets: [ ]"
		}
	}
	return faultf("must be %s, got %s%s", article(describeType(want)), article(jsonType(value)), hint)
}

// got, quoted and quotedGot repeat the caller's value, unless it is a secret.
func (p *Param) got(s string) string {
	if p.Sensitive {
		return ""
	}
	return ", got " + s
}

func (p *Param) quoted(s string) string {
	if p.Sensitive {
		return ""
	}
	return ": " + show(s)
}

func (p *Param) quotedGot(s string) string {
	if p.Sensitive {
		return ""
	}
	return ", got " + show(s)
}
