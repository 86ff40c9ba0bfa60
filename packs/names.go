package packs

import (
	"fmt"
	"strings"
)

const (
	maxNamePart = 32 // of a pack, of each part of a verb (dispatch.md 9)
	maxName     = 64 // of params, checks, events and tables
)

// bare says which packs' verbs carry no prefix.
func bare(pack string) bool { return pack == "core" || pack == "kg" }

// nameProblem says what is wrong with a name of the form [a-z][a-z0-9_]*, or "". Names are ASCII, so
// that no two of them look alike, and lower case, so that none differ by case only.
func nameProblem(name string, most int) string { return nameProblemAlso(name, most, "") }

// nameProblemAlso allows further ASCII characters after the first.
func nameProblemAlso(name string, most int, also string) string {
	if name == "" {
		return "the name is empty; give it one"
	}
	for i, r := range name {
		switch {
		case 'a' <= r && r <= 'z', i > 0 && '0' <= r && r <= '9', i > 0 && r == '_', i > 0 && strings.ContainsRune(also, r):
		case r > 0x7e:
			return fmt.Sprintf("has the character %U, which is not ASCII and may look like another; use a-z, 0-9 and _", r)
		case 'A' <= r && r <= 'Z':
			return "has an upper-case letter; write it in lower case"
		case i == 0:
			return "does not begin with a letter a-z"
		default:
			return fmt.Sprintf("has the character %q; use a-z, 0-9 and _", r)
		}
	}
	if len(name) > most {
		return fmt.Sprintf("is %d characters long; shorten it to %d", len(name), most)
	}
	return ""
}

// verbNameProblem checks a verb's full name against the pack that declares it. It assumes that the
// pack's own name is sound.
func verbNameProblem(pack, verb string) string {
	switch verb {
	case "subscribe", "discover":
		return "the name is reserved; choose another"
	}
	own := verb
	prefix, rest, dotted := strings.Cut(verb, ".")
	switch {
	case bare(pack) && dotted:
		return fmt.Sprintf("the verbs of the pack %s carry no prefix; remove the dot and what stands before it", pack)
	case bare(pack):
	case !dotted:
		return fmt.Sprintf("lacks the pack's prefix; write %s.%s", pack, plainVerb(verb))
	case prefix != pack:
		return fmt.Sprintf("carries the prefix %s of another pack; begin it with %s.", showName(prefix), pack)
	case strings.Contains(rest, "."):
		return "has a second dot; a verb is <pack>.<verb>"
	default:
		own = rest
	}
	return nameProblem(own, maxNamePart)
}

func plainVerb(verb string) string {
	if nameProblem(verb, maxNamePart) != "" {
		return "<verb>"
	}
	return verb
}
