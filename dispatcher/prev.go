package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// SubstitutionReason says why a $prev reference could not be resolved. The set is closed (request.md 3).
type SubstitutionReason string

// The reasons of request.md 3.
const (
	NoPrecedingOp    SubstitutionReason = "no_preceding_op"
	PathNotFound     SubstitutionReason = "path_not_found"
	WrongType        SubstitutionReason = "wrong_type"
	IndexOutOfRange  SubstitutionReason = "index_out_of_range"
	TooLarge         SubstitutionReason = "too_large"
	TooDeep          SubstitutionReason = "too_deep"
	BareRefAmbiguous SubstitutionReason = "bare_ref_ambiguous"
)

// The bounds of the resolved arguments of one operation.
const (
	maxArgsBytes = 1 << 20
	maxArgsDepth = request.MaxDepth
)

// prior is the result of the preceding operation. It is decoded when the first reference asks for it,
// and what references take from it is shared, not copied.
type prior struct {
	result  json.RawMessage
	decoded bool
	value   any
}

// noPrevious stands for the absent predecessor of a chain's first call.
var noPrevious *prior

// resolveArgs turns the arguments of an operation into plain values, each $prev replaced. All or
// nothing: the first argument in name order that fails is the error. Sizes are counted before
// anything is put together, so a chain cannot grow a text of a kilobyte into a result of megabytes.
func resolveArgs(op *request.Operation, previous *prior) (map[string]any, error) {
	args := make(map[string]any, len(op.Args))
	if !slices.ContainsFunc(op.Args, func(a request.Arg) bool { return a.Value.HasRef() }) {
		for _, a := range op.Args {
			value, err := a.Value.Any(nil)
			if err != nil {
				return nil, fmt.Errorf("argument %s: %w", a.Name, err)
			}
			args[a.Name] = value
		}
		return args, nil
	}
	sorted := slices.Clone(op.Args)
	slices.SortFunc(sorted, func(a, b request.Arg) int { return strings.Compare(a.Name, b.Name) })
	budget := maxArgsBytes - len("{}") - (len(sorted) - 1)
	for _, a := range sorted {
		budget -= quotedLen(a.Name) + len(":")
		value, err := substitute(a, previous, budget)
		if err != nil {
			return nil, err
		}
		m := measure{left: budget}
		if reason := m.count(value, 0); reason != "" {
			return nil, overBound(a.Name, reason)
		}
		budget = m.left
		args[a.Name] = value
	}
	return args, nil
}

// substitute resolves one argument. It counts what the references bring in as it goes and stops at the
// budget; literal parts are counted afterwards and are bounded by the text.
func substitute(a request.Arg, previous *prior, budget int) (any, error) {
	bare := a.Value.Kind() == request.Reference
	return a.Value.Any(func(ref request.Ref) (any, error) {
		value, err := previous.lookUp(a.Name, ref)
		if err != nil {
			return nil, err
		}
		if bare && len(ref.Steps) == 0 {
			switch value.(type) {
			case map[string]any, []any:
				return nil, &SubstitutionError{Reason: BareRefAmbiguous, Arg: a.Name, Message: fmt.Sprintf(
					"argument %q: $prev alone is the whole result, %s; name the part you mean, as in $prev.id. %s", a.Name, jsonType(value), available(value))}
			}
		}
		m := measure{left: budget}
		if reason := m.count(value, 0); reason != "" {
			return nil, overBound(a.Name, reason)
		}
		budget = m.left
		return value, nil
	})
}

func overBound(arg string, reason SubstitutionReason) error {
	limit := fmt.Sprintf("more than %d bytes as JSON", maxArgsBytes)
	if reason == TooDeep {
		limit = fmt.Sprintf("nested more than %d levels deep", maxArgsDepth)
	}
	return &SubstitutionError{Reason: reason, Arg: arg, Message: fmt.Sprintf(
		"argument %q: with $prev filled in, the arguments of this operation would be %s; take a smaller part of the result", arg, limit)}
}

// lookUp walks a reference's path through the result.
func (p *prior) lookUp(arg string, ref request.Ref) (any, error) {
	if p == nil {
		return nil, &SubstitutionError{Reason: NoPrecedingOp, Arg: arg, Message: fmt.Sprintf(
			"argument %q: %s refers to the preceding operation, and this is the chain's first", arg, clipPath(ref))}
	}
	if !p.decoded {
		dec := json.NewDecoder(bytes.NewReader(p.result))
		dec.UseNumber()
		if err := dec.Decode(&p.value); err != nil {
			return nil, fmt.Errorf("decode the preceding result: %w", err)
		}
		p.decoded = true
	}
	value := p.value
	for i, step := range ref.Steps {
		next, reason, why := stepInto(value, step)
		if reason != "" {
			return nil, &SubstitutionError{Reason: reason, Arg: arg, Message: fmt.Sprintf("argument %q: %s cannot be resolved: %s is %s, %s. %s",
				arg, clipPath(ref), clipPath(request.Ref{Steps: ref.Steps[:i]}), jsonType(value), why, available(value))}
		}
		value = next
	}
	return value, nil
}

func stepInto(value any, step request.Step) (next any, reason SubstitutionReason, why string) {
	if !step.IsIndex {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, WrongType, fmt.Sprintf("which has no fields such as %s", strconv.QuoteToASCII(clip(step.Field)))
		}
		if next, ok = object[step.Field]; !ok {
			return nil, PathNotFound, fmt.Sprintf("without a field %s", strconv.QuoteToASCII(clip(step.Field)))
		}
		return next, "", ""
	}
	array, ok := value.([]any)
	if !ok {
		return nil, WrongType, "which has no elements"
	}
	i, err := strconv.Atoi(step.Index)
	if err != nil || i >= len(array) {
		return nil, IndexOutOfRange, fmt.Sprintf("without an element [%s]", clip(step.Index))
	}
	return array[i], "", ""
}

// available says what could have been asked for at the place where a walk stopped.
func available(value any) string {
	const most = 32
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		more := ""
		if len(keys) > most {
			keys, more = keys[:most], fmt.Sprintf(", and %d more", len(keys)-most)
		}
		for i, k := range keys {
			keys[i] = plain(clip(k))
		}
		return "Available top-level fields: [" + strings.Join(keys, ", ") + more + "]"
	case []any:
		return fmt.Sprintf("Available: an array of length %d", len(v))
	default:
		return "Available: nothing below " + jsonType(value)
	}
}

// plain leaves a readable key as it is and quotes one that could play tricks in a terminal or a log.
func plain(s string) string {
	if quoted := strconv.QuoteToGraphic(s); quoted != `"`+s+`"` {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// clip shortens text that only serves to recognise something.
func clip(s string) string { return clipTo(s, 64) }

// clipPath is a reference as DSL. Nobody reads a path of hundreds of steps, and a text has room for one.
func clipPath(ref request.Ref) string { return clipTo(ref.DSL(), 256) }

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for i := most; ; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i] + "…"
		}
	}
}

// measure counts a plain value as JSON, down to zero and no further.
type measure struct{ left int }

// count takes the size of value off, and names the bound that it breaks, if any.
func (m *measure) count(value any, depth int) SubstitutionReason {
	switch v := value.(type) {
	case string:
		m.left -= quotedLen(v)
	case json.Number:
		m.left -= len(v)
	case []any:
		if depth++; depth > maxArgsDepth {
			return TooDeep
		}
		m.left -= 2 + max(0, len(v)-1)
		for _, e := range v {
			if m.left < 0 {
				return TooLarge
			}
			if reason := m.count(e, depth); reason != "" {
				return reason
			}
		}
	case map[string]any:
		if depth++; depth > maxArgsDepth {
			return TooDeep
		}
		m.left -= 2 + max(0, len(v)-1)
		for k, e := range v {
			m.left -= quotedLen(k) + 1
			if m.left < 0 {
				return TooLarge
			}
			if reason := m.count(e, depth); reason != "" {
				return reason
			}
		}
	default: // null, true, false
		m.left -= 4
	}
	if m.left < 0 {
		return TooLarge
	}
	return ""
}

// quotedLen is the length of a string as JSON, in its shortest spelling.
func quotedLen(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

// jsonType names the JSON type of a plain value, with its article.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a value of no JSON type"
}
