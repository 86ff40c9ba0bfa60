package opa

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/verbgate/verbgate/policy"
)

// Limits of what a policy may answer.
const (
	maxReasonBytes = 1024 // longer ones are cut
	maxCodeBytes   = 64
	maxObligations = 64
)

// deniedByPolicy is the reason when the policy says no more than false.
const deniedByPolicy = "denied by policy"

// shapeError says that the entry point's value is no decision. Its text holds no values, but names
// of members.
type shapeError struct {
	obligation bool // it is about an obligation
	what       string
}

func (e *shapeError) Error() string { return e.what }

func shapef(format string, args ...any) *shapeError {
	return &shapeError{what: fmt.Sprintf(format, args...)}
}

// decode reads the value of the entry point (dispatch.md 3): true, false, or a closed object. The
// error is a *shapeError.
func decode(value ast.Value) (policy.Decision, error) {
	switch v := value.(type) {
	case ast.Boolean:
		if v {
			return policy.Decision{Verdict: policy.Allow}, nil
		}
		return policy.Decision{Reason: deniedByPolicy}, nil
	case ast.Object:
		d, err := decodeObject(v)
		if err != nil {
			return policy.Decision{}, err
		}
		return d, nil
	}
	return policy.Decision{}, shapef("the decision is %s; it must be true, false or an object", kindOf(value))
}

func decodeObject(obj ast.Object) (policy.Decision, *shapeError) {
	var d policy.Decision
	decided := false
	err := eachMember(obj, func(name string, value ast.Value) *shapeError {
		var err *shapeError
		switch name {
		case "decision":
			decided = true
			d.Verdict, err = verdict(value)
		case "reason":
			d.Reason, err = text(name, value)
			d.Reason = plainText(d.Reason)
		case "code":
			if d.Code, err = text(name, value); err == nil && !isCode(d.Code) {
				err = shapef("code must be 1 to 64 characters of a-z 0-9 _ .")
			}
		case "obligations":
			d.Obligations, err = obligations(value)
		default:
			err = shapef("unknown member %q of a decision; it has: decision, reason, code, obligations", shortName(name))
		}
		return err
	})
	if err != nil {
		return policy.Decision{}, err
	}
	if !decided {
		return policy.Decision{}, shapef(`the decision object has no member "decision"`)
	}
	if d.Verdict == policy.Allow {
		return d, nil
	}
	if d.Reason == "" {
		return policy.Decision{}, shapef("a deny needs a reason that is not empty")
	}
	for _, o := range d.Obligations {
		if _, ok := o.(policy.AuditTag); !ok {
			return policy.Decision{}, &shapeError{obligation: true, what: "a deny can only carry obligations of the kind audit"}
		}
	}
	return d, nil
}

func verdict(value ast.Value) (policy.Verdict, *shapeError) {
	switch value {
	case ast.String("allow"):
		return policy.Allow, nil
	case ast.String("deny"):
		return policy.Deny, nil
	}
	return policy.Deny, shapef(`decision must be "allow" or "deny"`)
}

func isCode(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= maxCodeBytes
}

// plainText makes a policy's reason fit for people: one line, without characters that steer a
// terminal or reorder the text, and not longer than maxReasonBytes.
func plainText(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s))
	if len(s) <= maxReasonBytes {
		return s
	}
	const more = "…"
	return strings.ToValidUTF8(s[:maxReasonBytes-len(more)], "") + more
}

// eachMember calls fn for every member, in the order of the names, until one is refused.
func eachMember(obj ast.Object, fn func(name string, value ast.Value) *shapeError) *shapeError {
	var err *shapeError
	obj.Until(func(k, v *ast.Term) bool {
		name, ok := k.Value.(ast.String)
		if !ok {
			err = shapef("a member name is %s; it must be a string", kindOf(k.Value))
		} else {
			err = fn(string(name), v.Value)
		}
		return err != nil
	})
	return err
}

func text(name string, value ast.Value) (string, *shapeError) {
	s, ok := value.(ast.String)
	if !ok {
		return "", shapef("%s is %s; it must be a string", name, kindOf(value))
	}
	return string(s), nil
}

// plainJSON converts a value into plain JSON. Sets and keys that are no strings have no place there.
func plainJSON(value ast.Value) (any, *shapeError) {
	switch v := value.(type) {
	case ast.Null:
		return nil, nil
	case ast.Boolean:
		return bool(v), nil
	case ast.Number:
		return json.Number(v), nil
	case ast.String:
		return string(v), nil
	case *ast.Array:
		list := make([]any, 0, v.Len())
		var err *shapeError
		v.Until(func(t *ast.Term) bool {
			var element any
			element, err = plainJSON(t.Value)
			list = append(list, element)
			return err != nil
		})
		return list, err
	case ast.Object:
		m := make(map[string]any, v.Len())
		err := eachMember(v, func(name string, value ast.Value) (err *shapeError) {
			m[name], err = plainJSON(value)
			return err
		})
		return m, err
	}
	return nil, shapef("%s is not a JSON value", kindOf(value))
}

func kindOf(value ast.Value) string {
	switch value.(type) {
	case ast.Null:
		return "null"
	case ast.Boolean:
		return "a boolean"
	case ast.Number:
		return "a number"
	case ast.String:
		return "a string"
	case *ast.Array:
		return "an array"
	case ast.Set:
		return "a set"
	case ast.Object:
		return "an object"
	}
	return "no JSON value"
}
