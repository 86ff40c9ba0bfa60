package request

import (
	"encoding/json"
	"errors"
	"iter"
)

// Kind is the kind of a Value. The zero Kind is null.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	Reference
)

// Value is one immutable argument value, safe to copy and to share. The zero value is null. It shares
// the memory of the text it was parsed from.
type Value struct {
	t *tape
	i uint32
}

// ErrUnresolved is what Any returns when the value holds a reference and resolve is nil.
var ErrUnresolved = errors.New("the value holds a reference to $prev and nothing to resolve it with")

func (v Value) node() node {
	if v.t == nil {
		return node{}
	}
	return v.t.nodes[v.i]
}

// Kind tells what the value is.
func (v Value) Kind() Kind { return v.node().kind }

// HasRef reports whether the value is, or holds at any depth, a reference to $prev.
func (v Value) HasRef() bool { return v.node().flags&flagHasRef != 0 }

// Bool is the value of a Bool, and false for every other kind.
func (v Value) Bool() bool { return v.node().flags&flagTrue != 0 }

// Text is the value of a String, and empty for every other kind (a Reference written as a string too).
// It allocates only when the string was written with escapes.
func (v Value) Text() string {
	if v.Kind() != String {
		return ""
	}
	return v.t.str(v.i)
}

// Number is the literal of a Number as it was written, and empty for every other kind. It is JSON, at
// most 128 bytes, and inside the range of a float64.
func (v Value) Number() json.Number {
	if v.Kind() != Number {
		return ""
	}
	return json.Number(v.t.raw(v.i))
}

// Len is the number of elements of an Array or members of an Object, repeated keys counted once, and 0
// for every other kind.
func (v Value) Len() int {
	if n := v.node(); n.kind == Array || n.kind == Object {
		return int(n.n)
	}
	return 0
}

// Elements are the elements of an Array in order; none for every other kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		n := v.node()
		if n.kind != Array {
			return
		}
		for i := v.i + 1; i < n.next; i = v.t.nodes[i].next {
			if !yield(Value{t: v.t, i: i}) {
				return
			}
		}
	}
}

// Members are the members of an Object in the order of the text, each key once (the last of repeated
// ones); none for every other kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		n := v.node()
		if n.kind != Object {
			return
		}
		for i := v.i + 1; i < n.next; i = v.t.nodes[i+1].next {
			if v.t.nodes[i].flags&flagDead == 0 && !yield(v.t.str(i), Value{t: v.t, i: i + 1}) {
				return
			}
		}
	}
}

// Any returns the value as plain JSON: nil, bool, string, json.Number, []any, map[string]any, freshly
// made. The last of repeated object keys wins. Each reference is replaced by what resolve returns for
// it, as it is, not copied; the first error ends the walk and is returned. resolve may be nil when
// HasRef is false.
func (v Value) Any(resolve func(Ref) (any, error)) (any, error) {
	switch v.Kind() {
	case Bool:
		return v.Bool(), nil
	case Number:
		return v.Number(), nil
	case String:
		return v.Text(), nil
	case Array:
		return v.anyArray(resolve)
	case Object:
		return v.anyObject(resolve)
	case Reference:
		if resolve == nil {
			return nil, ErrUnresolved
		}
		return resolve(v.Ref())
	case Null:
	}
	return nil, nil
}

func (v Value) anyArray(resolve func(Ref) (any, error)) (any, error) {
	out := make([]any, 0, v.Len())
	for e := range v.Elements() {
		a, err := e.Any(resolve)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (v Value) anyObject(resolve func(Ref) (any, error)) (any, error) {
	out := make(map[string]any, v.Len())
	for key, e := range v.Members() {
		a, err := e.Any(resolve)
		if err != nil {
			return nil, err
		}
		out[key] = a
	}
	return out, nil
}

// Ref returns the path of a Reference, and the empty path for every other kind.
func (v Value) Ref() Ref {
	n := v.node()
	if n.kind != Reference {
		return Ref{}
	}
	return Ref{Steps: parsePath(v.t.str(v.i)[len(prev):])}
}

// firstRef is the first node of value i, in the order of the text, that is a reference (in JSON form: a
// string that would be one). Members that a later one replaced do not count.
func (t *tape) firstRef(i uint32) (uint32, bool) {
	n := t.nodes[i]
	if n.flags&flagHasRef == 0 {
		return 0, false
	}
	switch n.kind {
	case Array:
		for e := i + 1; e < n.next; e = t.nodes[e].next {
			if ref, ok := t.firstRef(e); ok {
				return ref, true
			}
		}
		return 0, false
	case Object:
		for k := i + 1; k < n.next; k = t.nodes[k+1].next {
			if t.nodes[k].flags&flagDead != 0 {
				continue
			}
			if ref, ok := t.firstRef(k + 1); ok {
				return ref, true
			}
		}
		return 0, false
	}
	return i, true
}
