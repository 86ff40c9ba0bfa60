package packs

import "strings"

// Elem returns the T of array<T>, and false for every other type.
func (t Type) Elem() (Type, bool) {
	inner, ok := strings.CutPrefix(string(t), "array<")
	if !ok {
		return "", false
	}
	inner, ok = strings.CutSuffix(inner, ">")
	return Type(inner), ok
}

// Valid reports whether t is a type of dispatch.md 9. The spelling is exact: no white space, and the
// element of an array<T> is not an array.
func (t Type) Valid() bool {
	if elem, ok := t.Elem(); ok {
		return elem.scalar() || elem == Object || elem == Any
	}
	return t.scalar() || t == Object || t == Array || t == Any
}

func (t Type) scalar() bool {
	switch t {
	case String, Integer, Number, Boolean, UUID, Datetime:
		return true
	}
	return false
}

// holdsStrings reports whether max_length means something for t.
func (t Type) holdsStrings() bool {
	if elem, ok := t.Elem(); ok {
		t = elem
	}
	return t == String || t == Object || t == Array || t == Any
}

// holdsItems reports whether max_items means something for t.
func (t Type) holdsItems() bool {
	_, list := t.Elem()
	return list || t == Object || t == Array || t == Any
}

// LengthLimit is the largest number of bytes any string in a value of the param may have, object
// keys and strings inside objects and arrays included.
func (p *Param) LengthLimit() int {
	if p.MaxLength > 0 {
		return p.MaxLength
	}
	return DefaultMaxLength
}

// ItemsLimit is the largest number of elements or members any array or object in a value of the
// param may have, at every depth.
func (p *Param) ItemsLimit() int {
	if p.MaxItems > 0 {
		return p.MaxItems
	}
	return DefaultMaxItems
}

// Param returns the declared param of that name, or nil.
func (v *Verb) Param(name string) *Param {
	for i := range v.Params {
		if v.Params[i].Name == name {
			return &v.Params[i]
		}
	}
	return nil
}

// Verb returns the declared verb of that full name, or nil.
func (m *Manifest) Verb(name string) *Verb {
	for i := range m.Verbs {
		if m.Verbs[i].Name == name {
			return &m.Verbs[i]
		}
	}
	return nil
}
