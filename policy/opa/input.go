package opa

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/verbgate/verbgate/policy"
)

// Limits of an input document (dispatch.md 4).
const (
	maxInputBytes = 2 << 20
	maxInputDepth = 80
)

// timeFormat always has nine digits, so that times in UTC sort as text.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// inputError says why there is no document.
type inputError struct {
	what string
	at   []string // names of the members that lead there, innermost first
}

// Error is for the log, which holds no names that a caller chose.
func (e *inputError) Error() string {
	if len(e.at) == 0 {
		return e.what
	}
	return e.at[len(e.at)-1] + ": " + e.what
}

// forCaller also names the param, as far as it is fit to be shown.
func (e *inputError) forCaller() string {
	if len(e.at) < 2 {
		return e.Error()
	}
	return e.at[len(e.at)-1] + "." + e.at[len(e.at)-2] + ": " + e.what
}

// slabSize is how many terms are made at a time: those of a usual document.
const slabSize = 48

// builder makes the document of one operation at a time. After the first error it only unwinds.
type builder struct {
	slab  []ast.Term     // terms of this document not yet used
	left  int            // bytes
	items [][2]*ast.Term // members of the objects being built, one object above the other
	err   *inputError    // the first
}

// document turns in into what policies see as input (dispatch.md 3), value by value and without a
// detour over JSON text. Numbers keep the caller's spelling, so none is rounded.
func (b *builder) document(in *policy.Input) (ast.Value, *inputError) {
	b.left, b.err, b.slab = maxInputBytes, nil, nil
	tok, act, c := &in.Token, &in.Token.Actor, &in.Context
	actor := ast.NewObject(
		ast.Item(key.kind, b.text("actor.kind", act.Kind)),
		ast.Item(key.id, b.text("actor.id", act.ID)),
		ast.Item(key.groups, b.texts("actor.groups", act.Groups)),
		ast.Item(key.claims, b.object("actor.claims", act.Claims, 4)))
	token := ast.NewObject(
		ast.Item(key.namespace, b.text("token.namespace", tok.Namespace)),
		ast.Item(key.explicit, ast.InternedTerm(tok.Explicit)),
		ast.Item(key.read, b.texts("token.read", tok.Read)),
		ast.Item(key.actor, b.term(actor)))
	context := ast.NewObject(
		ast.Item(key.source, b.text("context.source", c.Source)),
		ast.Item(key.transport, b.text("context.transport", c.Transport)),
		ast.Item(key.sessionID, b.text("context.session_id", c.SessionID)),
		ast.Item(key.requestID, b.text("context.request_id", c.RequestID)),
		ast.Item(key.decisionID, b.text("context.decision_id", c.DecisionID)),
		ast.Item(key.time, b.term(ast.String(c.Time.UTC().Format(timeFormat)))),
		ast.Item(key.mode, b.text("context.mode", c.Mode)),
		ast.Item(key.index, ast.InternedTerm(c.Index)),
		ast.Item(key.count, ast.InternedTerm(c.Count)),
		ast.Item(key.plan, ast.InternedTerm(c.Plan)),
		ast.Item(key.saveTo, b.textOrNull("context.save_to", c.SaveTo)),
		ast.Item(key.via, b.texts("context.via", c.Via)))
	members := [7][2]*ast.Term{
		ast.Item(key.verb, b.text("verb", in.Verb)),
		ast.Item(key.pack, b.text("pack", in.Pack)),
		ast.Item(key.category, b.text("category", in.Category)),
		ast.Item(key.token, b.term(token)),
		ast.Item(key.params, b.object("params", in.Params, 2)),
		ast.Item(key.context, b.term(context)),
	}
	n := 6
	if in.Resource != nil {
		members[n] = ast.Item(key.resource, b.resource(in.Resource))
		n++
	}
	if b.err != nil {
		clear(b.items)
		b.items = b.items[:0]
		return nil, b.err
	}
	return ast.NewObject(members[:n]...), nil
}

// term wraps a value. The terms of a document live and die together.
func (b *builder) term(v ast.Value) *ast.Term {
	if len(b.slab) == 0 {
		b.slab = make([]ast.Term, slabSize)
	}
	t := &b.slab[0]
	b.slab = b.slab[1:]
	t.Value = v
	return t
}

func (b *builder) resource(r *policy.Resource) *ast.Term {
	exists := ast.InternedNullTerm
	switch r.Exists {
	case policy.Present:
		exists = ast.InternedTerm(true)
	case policy.Absent:
		exists = ast.InternedTerm(false)
	case policy.Unknown:
	}
	return b.term(ast.NewObject(
		ast.Item(key.param, b.text("resource.param", r.Param)),
		ast.Item(key.id, b.text("resource.id", r.ID)),
		ast.Item(key.exists, exists),
		ast.Item(key.namespace, b.text("resource.namespace", r.Namespace)),
		ast.Item(key.kind, b.text("resource.kind", r.Kind))))
}

func (b *builder) fail(what string) *ast.Term {
	if b.err == nil {
		b.err = &inputError{what: what}
	}
	return ast.InternedNullTerm
}

// within adds the name of a member to the error on its way out.
func (b *builder) within(failed bool, name string) {
	if !failed && b.err != nil {
		b.err.at = append(b.err.at, name)
	}
}

// spend counts n bytes of the document as compact JSON would, without escapes.
func (b *builder) spend(n int) bool {
	if b.left -= n; b.left < 0 {
		b.fail("the input is over 2 MiB")
	}
	return b.err == nil
}

func (b *builder) string(s string) *ast.Term {
	if !b.spend(len(s) + 2) {
		return ast.InternedNullTerm
	}
	if word := words[s]; word != nil {
		return word
	}
	// Bytes that are no text would be replaced somewhere on the way, and two inputs become one.
	if !utf8.ValidString(s) {
		return b.fail("the text is not valid UTF-8")
	}
	return b.term(ast.String(s))
}

func (b *builder) text(place, s string) *ast.Term {
	failed := b.err != nil
	term := b.string(s)
	b.within(failed, place)
	return term
}

func (b *builder) textOrNull(place, s string) *ast.Term {
	if s == "" {
		return ast.InternedNullTerm
	}
	return b.text(place, s)
}

func (b *builder) texts(place string, list []string) *ast.Term {
	if len(list) == 0 {
		return ast.InternedEmptyArray
	}
	terms := make([]*ast.Term, len(list))
	for i, s := range list {
		if terms[i] = b.text(place, s); b.err != nil || !b.spend(1) {
			return ast.InternedNullTerm
		}
	}
	return b.term(ast.NewArray(terms...))
}

func (b *builder) object(place string, m map[string]any, depth int) *ast.Term {
	failed := b.err != nil
	term := b.members(m, depth)
	b.within(failed, place)
	return term
}

// value builds v as a member or element of something that is depth levels down in the document.
func (b *builder) value(v any, depth int) *ast.Term {
	switch v := v.(type) {
	case nil:
		b.spend(4)
		return ast.InternedNullTerm
	case bool:
		b.spend(5)
		return ast.InternedTerm(v)
	case string:
		return b.string(v)
	case json.Number:
		return b.number(string(v))
	case []any:
		return b.elements(v, depth+1)
	case map[string]any:
		return b.members(v, depth+1)
	}
	return b.fail(fmt.Sprintf("%T is not a JSON value", v))
}

func (b *builder) descend(depth int) bool {
	if depth > maxInputDepth {
		b.fail("the input is nested over 80 levels deep")
	}
	return b.spend(2)
}

func (b *builder) elements(list []any, depth int) *ast.Term {
	if !b.descend(depth) || !b.spend(2*len(list)) { // at least a byte and a comma each
		return ast.InternedNullTerm
	}
	b.left += len(list)
	terms := make([]*ast.Term, len(list))
	for i, v := range list {
		if terms[i] = b.value(v, depth); b.err != nil {
			b.within(false, "["+strconv.Itoa(i)+"]")
			return ast.InternedNullTerm
		}
	}
	return b.term(ast.NewArray(terms...))
}

func (b *builder) members(m map[string]any, depth int) *ast.Term {
	if !b.descend(depth) {
		return ast.InternedNullTerm
	}
	if len(m) == 0 {
		return ast.InternedEmptyObject
	}
	start := len(b.items)
	for name, v := range m {
		member := [2]*ast.Term{b.string(name)}
		if b.spend(2) {
			member[1] = b.value(v, depth) // grows and shrinks items
		}
		b.items = append(b.items, member)
		if b.err != nil {
			b.within(false, shortName(name))
			return ast.InternedNullTerm
		}
	}
	object := ast.NewObject(b.items[start:]...)
	clear(b.items[start:])
	b.items = b.items[:start]
	return b.term(object)
}

func (b *builder) number(s string) *ast.Term {
	if !b.spend(len(s)) {
		return ast.InternedNullTerm
	}
	if term := ast.InternedIntNumberTermFromString(s); term != nil {
		return term
	}
	if !isSoundNumber(s) {
		return b.fail("the number is not one that a policy can read: at most 128 bytes of JSON, within the range of a float64")
	}
	return b.term(ast.Number(s))
}

// shortName makes a caller's name fit for a message.
func shortName(name string) string {
	if name == "" || len(name) > 40 || strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return "(a member)"
	}
	return name
}
