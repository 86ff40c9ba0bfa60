package opa

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/verbgate/verbgate/policy"
)

// Bounds of obligations. Outside them one is malformed.
const (
	maxNameBytes  = 256 // of an audit tag, a custom name, a rate limit's key
	maxWindowSecs = 366 * 24 * 60 * 60
	maxRate       = 1_000_000_000
	maxPaths      = 256
)

// obligations decodes the obligations of a decision, in the policy's order.
func obligations(value ast.Value) ([]policy.Obligation, *shapeError) {
	list, ok := value.(*ast.Array)
	if !ok {
		return nil, malformed("obligations is %s; it must be an array", kindOf(value))
	}
	if list.Len() > maxObligations {
		return nil, malformed("%d obligations; at most %d fit a decision", list.Len(), maxObligations)
	}
	out := make([]policy.Obligation, 0, list.Len())
	for i := range list.Len() {
		o, err := obligation(list.Elem(i).Value)
		if err != nil {
			return nil, malformed("obligations[%d]: %s", i, err.what)
		}
		out = append(out, o)
	}
	return out, nil
}

func malformed(format string, args ...any) *shapeError {
	err := shapef(format, args...)
	err.obligation = true
	return err
}

// The members of each kind; those that end in ? may be absent. No others are accepted.
var obligationMembers = map[string][]string{
	"audit":      {"kind", "tag"},
	"rate_limit": {"kind", "window_secs", "max", "key?"},
	"redact":     {"kind", "paths"},
	"custom":     {"kind", "name", "value"},
}

func obligation(value ast.Value) (policy.Obligation, *shapeError) {
	obj, ok := value.(ast.Object)
	if !ok {
		return nil, shapef("an obligation is %s; it must be an object", kindOf(value))
	}
	got := map[string]ast.Value{}
	err := eachMember(obj, func(name string, value ast.Value) *shapeError {
		got[name] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	kind, _ := got["kind"].(ast.String)
	if err := checkMembers(got, string(kind)); err != nil {
		return nil, err
	}
	switch kind {
	case "audit":
		tag, err := label("tag", got["tag"])
		return policy.AuditTag{Tag: tag}, err
	case "rate_limit":
		return rateLimit(got)
	case "redact":
		return redact(got["paths"])
	case "custom":
		name, err := label("name", got["name"])
		if err != nil {
			return nil, err
		}
		v, err := plainJSON(got["value"])
		return policy.Custom{Name: name, Value: v}, err
	}
	return nil, shapef("unknown kind of obligation; known are audit, rate_limit, redact, custom")
}

// checkMembers refuses members that kind does not have, and misses those it must have.
func checkMembers(got map[string]ast.Value, kind string) *shapeError {
	members, ok := obligationMembers[kind]
	if !ok {
		return nil // obligation refuses the kind
	}
	for name := range got {
		if !slices.Contains(members, name) && !slices.Contains(members, name+"?") {
			return shapef("unknown member %q of the kind %s; it has: %s", shortName(name), kind, strings.Join(members, ", "))
		}
	}
	for _, name := range members {
		if _, ok := got[name]; !ok && !strings.HasSuffix(name, "?") {
			return shapef("member %q of the kind %s is missing", name, kind)
		}
	}
	return nil
}

// label reads a name that ends up in records and logs.
func label(member string, value ast.Value) (string, *shapeError) {
	s, err := text(member, value)
	if err == nil && (s == "" || len(s) > maxNameBytes || strings.ContainsFunc(s, unicode.IsControl)) {
		err = shapef("%s must be 1 to %d bytes without control characters", member, maxNameBytes)
	}
	return s, err
}

func rateLimit(got map[string]ast.Value) (policy.Obligation, *shapeError) {
	secs, err := whole("window_secs", got["window_secs"], maxWindowSecs)
	if err != nil {
		return nil, err
	}
	limit, err := whole("max", got["max"], maxRate)
	if err != nil {
		return nil, err
	}
	o := policy.RateLimit{Window: time.Duration(secs) * time.Second, Max: limit}
	if k, ok := got["key"]; ok {
		// An empty key would stand for the default, which the policy did not mean by naming one.
		if o.Key, err = text("key", k); err == nil && (o.Key == "" || len(o.Key) > maxNameBytes) {
			err = shapef("key must be 1 to %d bytes", maxNameBytes)
		}
	}
	return o, err
}

// whole reads a whole number from 1 to limit, however it is spelled: 60, 60.0 and 6e1 are equal in Rego.
func whole(member string, value ast.Value, limit int64) (int64, *shapeError) {
	if n, ok := value.(ast.Number); ok {
		i, isInt := n.Int64()
		if !isInt {
			f, err := strconv.ParseFloat(string(n), 64)
			if i = int64(min(max(f, 0), 1<<53)); err != nil || float64(i) != f {
				i = 0
			}
		}
		if 1 <= i && i <= limit {
			return i, nil
		}
	}
	return 0, shapef("%s must be a whole number from 1 to %d", member, limit)
}

func redact(value ast.Value) (policy.Obligation, *shapeError) {
	list, ok := value.(*ast.Array)
	if !ok || list.Len() == 0 || list.Len() > maxPaths {
		return nil, shapef("paths must be an array of 1 to %d paths", maxPaths)
	}
	paths := make([]string, 0, list.Len())
	for i := range list.Len() {
		path, err := text("paths["+strconv.Itoa(i)+"]", list.Elem(i).Value)
		if err != nil {
			return nil, err
		}
		if _, bad := policy.ParsePath(path); bad != nil {
			return nil, shapef("paths[%d] is not a redact path", i)
		}
		paths = append(paths, path)
	}
	return policy.Redact{Paths: paths}, nil
}
