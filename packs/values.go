package packs

import (
	"encoding/json"
	"time"
)

// Time is the instant of a call.
type Time = time.Time

// Params are the arguments of a call by name, as plain JSON values. The getters return the zero
// value when the param is absent, null or of another type; the dispatcher has checked types before.
type Params map[string]any

// Has reports whether the param is there and not null.
func (p Params) Has(name string) bool { return p[name] != nil }

// String returns a string param.
func (p Params) String(name string) string {
	s, _ := p[name].(string)
	return s
}

// Bool returns a boolean param.
func (p Params) Bool(name string) bool {
	b, _ := p[name].(bool)
	return b
}

// Int returns an integer param; 0 when it does not fit an int64.
func (p Params) Int(name string) int64 {
	n, _ := p[name].(json.Number)
	i, err := n.Int64()
	if err != nil {
		return 0
	}
	return i
}

// Float returns a number param, rounded to a float64.
func (p Params) Float(name string) float64 {
	n, _ := p[name].(json.Number)
	f, err := n.Float64()
	if err != nil {
		return 0
	}
	return f
}

// Strings returns an array<string> param; elements of another type are left out.
func (p Params) Strings(name string) []string {
	list, _ := p[name].([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Object returns an object param, or nil. It is shared: do not change it.
func (p Params) Object(name string) map[string]any {
	m, _ := p[name].(map[string]any)
	return m
}

// List returns an array param, or nil. It is shared: do not change it.
func (p Params) List(name string) []any {
	l, _ := p[name].([]any)
	return l
}
