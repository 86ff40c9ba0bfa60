package policy

import (
	"fmt"
	"strings"
)

// Path says which parts of a result a Redact obligation removes. It is never empty.
type Path []PathStep

// PathStep is one step of a Path: a member by name, every member, an element by index, or every
// element. The zero value is the member whose name is empty, which no parsed path holds.
type PathStep struct {
	Kind  StepKind
	Field string // of a Member
	Index string // of an Element: decimal digits without leading zeros; may be too large for an int
}

// StepKind is the kind of a PathStep. The set is closed.
type StepKind uint8

const (
	// Member is the member of an object that is called Field.
	Member StepKind = iota
	// EveryMember is every member of an object, spelled .* (or * at the start of a path).
	EveryMember
	// Element is the element of an array at Index.
	Element
	// EveryElement is every element of an array, spelled [*].
	EveryElement
)

// PathError says why a text is not a Path.
type PathError struct {
	Text string
	Pos  int    // 0-based byte offset into Text
	Want string // what the place needs
}

func (e *PathError) Error() string {
	return fmt.Sprintf("redact path %q: at offset %d: %s", e.Text, e.Pos, e.Want)
}

// ParsePath reads a redact path (dispatch.md 3): a $prev path in its canonical spelling, without
// "$prev", plus [*] and .*, as in items[*].email, [0].k or *.secret. A * that is only part of a name
// is refused: it would look like a pattern and remove nothing. The error is a *PathError.
func ParsePath(text string) (Path, error) {
	var path Path
	fail := func(pos int, want string) (Path, error) {
		return nil, &PathError{Text: text, Pos: pos, Want: want}
	}
	if text == "" {
		return fail(0, "an empty path would mean the whole result; name a member or an element")
	}
	for pos := 0; pos < len(text); {
		if text[pos] == '[' {
			end := strings.IndexByte(text[pos:], ']')
			if end < 0 {
				return fail(pos, "the bracket is not closed")
			}
			step, ok := parseIndex(text[pos+1 : pos+end])
			if !ok {
				return fail(pos+1, "brackets hold an index in digits, or *")
			}
			path = append(path, step)
			pos += end + 1
			continue
		}
		dotted := text[pos] == '.'
		if pos > 0 && !dotted {
			return fail(pos, "a step starts with . or [")
		}
		if dotted {
			pos++
		}
		end := strings.IndexAny(text[pos:], ".[]")
		if end < 0 {
			end = len(text) - pos
		}
		name := text[pos : pos+end]
		switch {
		case name == "*":
			path = append(path, PathStep{Kind: EveryMember})
		case name == "":
			return fail(pos, "a name is missing")
		case strings.Contains(name, "*"):
			return fail(pos, "* stands alone, for every member; it is no pattern")
		case dotted && pos == 1:
			return fail(0, "a path does not start with a dot")
		default:
			path = append(path, PathStep{Kind: Member, Field: name})
		}
		pos += end
	}
	return path, nil
}

func parseIndex(text string) (PathStep, bool) {
	if text == "*" {
		return PathStep{Kind: EveryElement}, true
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return PathStep{}, false
	}
	digits := strings.TrimLeft(text, "0")
	if digits == "" {
		digits = "0"
	}
	return PathStep{Kind: Element, Index: digits}, true
}

// String is the canonical spelling of the path; ParsePath reads it back.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch step.Kind {
		case Element:
			b.WriteString("[" + step.Index + "]")
		case EveryElement:
			b.WriteString("[*]")
		case Member, EveryMember:
			if i > 0 {
				b.WriteByte('.')
			}
			if step.Kind == EveryMember {
				b.WriteByte('*')
			} else {
				b.WriteString(step.Field)
			}
		}
	}
	return b.String()
}
