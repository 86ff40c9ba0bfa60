package packs

import (
	"slices"
	"strings"
)

// The names an envelope keeps for itself (dispatch.md 9).
const (
	namespaceParam = "namespace"
	helpParam      = "help"
)

// Resolve checks the params of one operation against the manifest (dispatch.md 1 step 3 and 9) and
// returns them as the checks, the gate and the handler see them: a new map with the defaults filled
// in and UUIDs in lower case. A default is a fresh copy each time; other values are shared with the
// input, which is never changed.
//
// "namespace" is the envelope's unless the verb declares it: it passes without a declaration, as it
// is, when it is a string.
//
// The error is an *InvalidError for the first problem: params the verb does not have, by name, then
// the declared ones in the manifest's order. Its text holds nothing of a sensitive param's value.
func (v *Verb) Resolve(params map[string]any) (Params, error) {
	if err := v.unknownParam(params); err != nil {
		return nil, err
	}
	out := make(Params, len(v.Params)+1)
	for i := range v.Params {
		p := &v.Params[i]
		value, given := params[p.Name]
		if !given {
			if p.Required {
				return nil, &InvalidError{Param: p.Name, Message: "is required: give " + article(describeType(p.Type)) + p.purpose()}
			}
			if p.Default != nil {
				out[p.Name] = clonePlain(p.Default)
			}
			continue
		}
		resolved, f := p.conform(value)
		if f != nil {
			return nil, &InvalidError{Param: p.Name, Message: f.text}
		}
		out[p.Name] = resolved
	}
	if v.Param(namespaceParam) == nil {
		if ns, given := params[namespaceParam]; given {
			if _, ok := ns.(string); !ok {
				return nil, &InvalidError{Param: namespaceParam, Message: "must be a string, got " + article(jsonType(ns))}
			}
			out[namespaceParam] = ns
		}
	}
	return out, nil
}

func (v *Verb) unknownParam(params map[string]any) error {
	unknown, found := "", false
	for name := range params {
		if v.Param(name) == nil && name != namespaceParam && (!found || name < unknown) {
			unknown, found = name, true
		}
	}
	if !found {
		return nil
	}
	if unknown == helpParam {
		return &InvalidError{Param: helpParam, Message: "must be true, and asks what the verb does; leave it out to call the verb"}
	}
	names := make([]string, len(v.Params))
	for i := range v.Params {
		names[i] = v.Params[i].Name
	}
	message := "unknown param " + show(unknown)
	if near := closest(unknown, names); near != "" {
		message += ", did you mean " + near + "?"
	}
	if len(names) == 0 {
		message += "; " + v.Name + " takes no params"
	} else {
		message += "; the params of " + v.Name + " are " + strings.Join(names, ", ")
	}
	return &InvalidError{Message: message}
}

// purpose adds the param's description to an error, cut to its first sentence or line.
func (p *Param) purpose() string {
	text, _, _ := strings.Cut(p.Description, "\n")
	text, _, _ = strings.Cut(text, ". ")
	text = strings.TrimSuffix(text, ".")
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// clonePlain copies a plain JSON value at every depth.
func clonePlain(value any) any {
	switch v := value.(type) {
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = clonePlain(out[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clonePlain(e)
		}
		return out
	}
	return value
}
