package packs

import "strconv"

// sealedMember marks a sealed value. A caller's own object with such a member is sealed whole, so
// that nobody can pass a text off as a seal of the gate's.
const sealedMember = "$sealed"

// Seal returns the params as an audit record may hold them (dispatch.md 7). seal is called with the
// path of each value that must not be shown, as params.token, and its result takes the value's place.
// Sealed are the params declared sensitive, those not declared at all (a misspelt apikey is a secret
// all the same; "namespace" is none), and every object at any depth that has a member "$sealed". With
// a nil verb, one no pack owns, no param is declared. The input is not changed; unsealed parts are
// shared with it.
func (v *Verb) Seal(params map[string]any, seal func(path string, value any) any) map[string]any {
	out := make(map[string]any, len(params))
	for name, value := range params {
		path := "params." + name
		var p *Param
		if v != nil {
			p = v.Param(name)
		}
		_, isString := value.(string)
		switch {
		case p == nil && name == namespaceParam && isString:
			out[name] = value
		case p == nil || p.Sensitive:
			out[name] = seal(path, value)
		case holdsForged(value, 1):
			out[name] = sealForged(path, value, seal, 1)
		default:
			out[name] = value
		}
	}
	return out
}

func sealForged(path string, value any, seal func(string, any) any, depth int) any {
	if depth > maxDepth {
		return seal(path, value)
	}
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = sealForged(path+"["+strconv.Itoa(i)+"]", e, seal, depth+1)
		}
		return out
	case map[string]any:
		if _, forged := v[sealedMember]; forged {
			return seal(path, v)
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = sealForged(path+"."+k, e, seal, depth+1)
		}
		return out
	}
	return value
}

// holdsForged reports whether there is anything to seal, so that plain values need no copy.
func holdsForged(value any, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			if holdsForged(e, depth+1) {
				return true
			}
		}
	case map[string]any:
		if _, forged := v[sealedMember]; forged {
			return true
		}
		for _, e := range v {
			if holdsForged(e, depth+1) {
				return true
			}
		}
	}
	return false
}
