package kg

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/verbgate/verbgate/packs"
)

// Bounds of what a record may hold, in bytes of UTF-8 unless it says otherwise. The manifest declares
// the same for params; the handlers hold items and merges to them too.
const (
	maxLabel   = 64  // of an entity_kind, a note_kind, a relation
	maxName    = 512 // of a name, a title
	maxText    = 64 << 10
	maxTag     = 128
	maxTags    = 32       // tags of a record
	maxProps   = 64 << 10 // of properties, spelt as JSON
	maxItems   = 1000
	labelRules = "begin with a letter and use only a-z, 0-9 and _"
)

var labelForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// presence says how a field was given. The zero value is not at all.
type presence uint8

const (
	absent presence = iota
	cleared
	given
)

// fields reads what a caller said about a record, from params or from one of items, whose members no
// manifest has checked. The first problem stays in err, and everything read after it is absent.
type fields struct {
	from  map[string]any
	where string // "" or "items[3]."
	nulls bool   // null clears; else it is no value
	err   error
}

func (f *fields) fail(name, format string, args ...any) {
	if f.err == nil {
		f.err = &packs.InvalidError{Param: f.where + name, Message: fmt.Sprintf(format, args...)}
	}
}

// only fails on the first member, by name, that is not among the allowed ones.
func (f *fields) only(why string, allowed ...string) {
	var extra []string
	for name := range f.from {
		if !slices.Contains(allowed, name) {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		f.fail(shown(slices.Min(extra)), "%s; those are %s", why, strings.Join(allowed, ", "))
	}
}

func (f *fields) value(name string) (any, presence) {
	v, there := f.from[name]
	switch {
	case !there || f.err != nil:
		return nil, absent
	case v != nil:
		return v, given
	case f.nulls:
		return nil, cleared
	}
	f.fail(name, "is null, which is no value here; leave it out")
	return nil, absent
}

// text reads a string of at most limit bytes.
func (f *fields) text(name string, limit int) (*string, presence) {
	v, p := f.value(name)
	if p != given {
		return nil, p
	}
	s, ok := v.(string)
	switch {
	case !ok:
		f.fail(name, "must be a string")
	case len(s) > limit:
		f.fail(name, "has %d bytes, more than the %d allowed", len(s), limit)
	default:
		return &s, given
	}
	return nil, absent
}

// spoken is text that says something: not only white space.
func (f *fields) spoken(name string, limit int) (*string, presence) {
	s, p := f.text(name, limit)
	if p == given && strings.TrimSpace(*s) == "" {
		f.fail(name, "is blank; write something, or leave it out")
		return nil, absent
	}
	return s, p
}

// label reads the name of a kind or a relation.
func (f *fields) label(name string) (*string, presence) {
	s, p := f.text(name, maxLabel)
	if p == given && !labelForm.MatchString(*s) {
		f.fail(name, "must %s, as in \"concept\" or \"introduced_by\"", labelRules)
		return nil, absent
	}
	return s, p
}

// choice reads one of a few strings; absent is the first of them.
func (f *fields) choice(name string, values ...string) string {
	s, how := f.text(name, maxLabel)
	if how != given {
		return values[0]
	}
	if *s == "" || !slices.Contains(values, *s) {
		f.fail(name, "must be one of %s", strings.TrimPrefix(strings.Join(values, ", "), ", "))
		return values[0]
	}
	return *s
}

// tags reads a list of tags, in the order given, each once.
func (f *fields) tags() ([]string, presence) {
	v, p := f.value("tags")
	if p != given {
		return []string{}, p
	}
	list, ok := v.([]any)
	if !ok {
		f.fail("tags", `must be an array of strings, as in ["paper", "2021"]`)
		return nil, absent
	}
	tags := make([]string, 0, len(list))
	for i, e := range list {
		s, ok := e.(string)
		switch {
		case !ok:
			f.fail("tags", "element [%d] must be a string", i)
		case strings.TrimSpace(s) == "":
			f.fail("tags", "element [%d] is blank", i)
		case len(s) > maxTag:
			f.fail("tags", "element [%d] has %d bytes, more than the %d allowed", i, len(s), maxTag)
		case !slices.Contains(tags, s):
			tags = append(tags, s)
		}
		if f.err != nil {
			return nil, absent
		}
	}
	if len(tags) > maxTags {
		f.fail("tags", "are %d, more than the %d allowed", len(tags), maxTags)
		return nil, absent
	}
	return tags, given
}

// object reads an object.
func (f *fields) object(name string) (map[string]any, presence) {
	v, p := f.value(name)
	if p != given {
		return nil, p
	}
	m, ok := v.(map[string]any)
	if !ok {
		f.fail(name, `must be an object, as in {"year": 2021}`)
		return nil, absent
	}
	return m, given
}

// properties spells an object for the store.
func (f *fields) properties(m map[string]any) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage("{}")
	}
	text, err := encode(m)
	switch {
	case err != nil:
		f.fail("properties", "cannot be spelt as JSON")
	case len(text) > maxProps:
		f.fail("properties", "take %d bytes as JSON, more than the %d allowed", len(text), maxProps)
	}
	return json.RawMessage(text)
}

// shown is a caller's member name as an error may repeat it: nothing invisible, nothing long.
func shown(name string) string {
	if labelForm.MatchString(name) && len(name) <= maxLabel {
		return name
	}
	runes := []rune(name)
	return strconv.QuoteToASCII(string(runes[:min(len(runes), 32)]))
}
