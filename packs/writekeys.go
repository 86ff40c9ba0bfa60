package packs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// WriteKey is a parsed template of Verb.WriteKeys: record:{id} is {Space: "record", Params: ["id"]}.
type WriteKey struct {
	Space  string
	Params []string
}

// ParseWriteKey reads a template space:{param}[:{param}]. One space, two params at most.
func ParseWriteKey(template string) (WriteKey, error) {
	parts := strings.Split(template, ":")
	key := WriteKey{Space: parts[0]}
	if problem := nameProblem(key.Space, maxNamePart); problem != "" {
		return WriteKey{}, fmt.Errorf("the space %s: %s", showName(key.Space), problem)
	}
	if len(parts) < 2 || len(parts) > 3 {
		return WriteKey{}, errors.New("a template names one or two params: space:{param} or space:{param}:{param}")
	}
	for _, part := range parts[1:] {
		name, open := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		if !open || !closed {
			return WriteKey{}, fmt.Errorf("%s is not a param in braces; write it as {param}", showName(part))
		}
		key.Params = append(key.Params, name)
	}
	return key, nil
}

// ParsedWriteKeys returns the verb's templates in order. Those that do not parse are left out;
// Manifest.Validate refuses them.
func (v *Verb) ParsedWriteKeys() []WriteKey {
	keys := make([]WriteKey, 0, len(v.WriteKeys))
	for _, template := range v.WriteKeys {
		if key, err := ParseWriteKey(template); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Tuples returns the keys an operation takes, one text for each tuple (request.md 7). Two operations
// of one request conflict when a text occurs in both; an operation conflicts with itself when one
// occurs in it twice, over all its templates.
//
// args are the operation's arguments as they were written. One that is anything but a literal string
// (a number, null, a reference in whatever form the caller keeps it) gives no key. A param declared
// as an array of strings or UUIDs gives one key for each element that is a string. A param that was
// left out counts with its default: two writes to one slot collide however they name it. Text is
// compared as it is, but for UUIDs, which have one spelling but for case: they count in lower case, be
// it because the param is declared as one, as Resolve leaves it, or because the text is one in full
// (8-4-4-4-12 hex digits), whatever the param's type. An id that is only a prefix is other text than
// the full one; two operations that name one record by a prefix and in full do not collide.
//
// The texts, such as record:"1f3c…", are unambiguous and printable.
func (k WriteKey) Tuples(v *Verb, args map[string]any) []string {
	tuples := []string{k.Space}
	for _, name := range k.Params {
		values := v.keyValues(name, args)
		next := make([]string, 0, len(tuples)*len(values))
		for _, t := range tuples {
			for _, value := range values {
				next = append(next, t+":"+strconv.Quote(value))
			}
		}
		tuples = next
	}
	return tuples
}

// WriteKeyTuples returns the keys of all the verb's templates, see WriteKey.Tuples.
func (v *Verb) WriteKeyTuples(args map[string]any) []string {
	var all []string
	for _, key := range v.ParsedWriteKeys() {
		all = append(all, key.Tuples(v, args)...)
	}
	return all
}

func (v *Verb) keyValues(name string, args map[string]any) []string {
	p := v.Param(name)
	if p == nil {
		return nil
	}
	value, given := args[name]
	if !given {
		value = p.Default
	}
	elem, isList := p.Type.Elem()
	elements := []any{value}
	if isList {
		elements, _ = value.([]any)
	} else {
		elem = p.Type
	}
	var out []string
	for _, e := range elements {
		s, ok := e.(string)
		if !ok {
			continue
		}
		if elem == UUID || isUUID(s) {
			s = strings.ToLower(s)
		}
		out = append(out, s)
	}
	return out
}

// writeKeyProblem says what is wrong with one template of the verb, or "".
func (v *Verb) writeKeyProblem(template string) string {
	key, err := ParseWriteKey(template)
	if err != nil {
		return err.Error()
	}
	lists := 0
	for i, name := range key.Params {
		p := v.Param(name)
		if p == nil {
			return fmt.Sprintf("the verb has no param %s; declare it or correct the name", showName(name))
		}
		if i > 0 && name == key.Params[0] {
			return fmt.Sprintf("names the param %s twice", showName(name))
		}
		if p.Sensitive {
			return fmt.Sprintf("the param %s is sensitive, and a key shows in refusals; use another param", showName(name))
		}
		elem, isList := p.Type.Elem()
		if isList {
			lists++
		} else {
			elem = p.Type
		}
		if elem != String && elem != UUID {
			return fmt.Sprintf("the param %s has type %s; a key is made of string, uuid, array<string> or array<uuid> params", showName(name), p.Type)
		}
	}
	if lists > 1 {
		return "two array params in one template; write one template for each"
	}
	return ""
}
