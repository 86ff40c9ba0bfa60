package packs

import (
	"fmt"
	"strings"
)

// Bounds of record ids.
const (
	MinIDPrefix  = 8  // hex digits a prefix must have
	ShownMatches = 5  // ids that an AmbiguousIDError lists
	MaxIDLength  = 64 // of a param that takes an id; a full id has 36 bytes
	idDigits     = 32
)

// IDRef is a record's id as a caller gave it: a full UUID, which names its record wherever that is, or
// a prefix of at least MinIDPrefix hex digits, which is a search in the namespaces the caller may read.
type IDRef struct {
	Param string // the param it came in
	Given string // as the caller wrote it
	Text  string // in lower case with the usual dashes: a whole id, or its beginning
	Full  bool
}

// ParseIDRef reads an id in either case: a full one in its usual spelling, 36 characters with the dashes,
// a prefix with or without them. A full id has one spelling so that a policy can tell it from a prefix
// by its length: one finds records everywhere, the other does not. Anything else is an *InvalidError
// about param that shows what an id looks like.
func ParseIDRef(param, given string) (IDRef, error) {
	bad := func(format string, args ...any) (IDRef, error) {
		return IDRef{}, &InvalidError{Param: param, Message: fmt.Sprintf(format, args...) +
			`; give a full id such as "1b4e28ba-2fa1-4d2b-883f-0016d3cca427", or at least its first 8 hex digits`}
	}
	if given == "" {
		return bad("an empty string is no id")
	}
	dashed := strings.Contains(given, "-")
	digits := make([]byte, 0, idDigits)
	for i := range len(given) {
		c := given[i]
		switch {
		case c == '-' && dashPlace(i), '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		case c == '-':
			return bad("the dashes are not where an id has them")
		default:
			return bad("an id consists of hex digits")
		}
		switch {
		case dashed && dashPlace(i) != (c == '-'):
			return bad("the dashes are not where an id has them")
		case c != '-':
			digits = append(digits, c)
		}
	}
	switch n := len(digits); {
	case n > idDigits:
		return bad("an id has %d hex digits, this has %d", idDigits, n)
	case n < MinIDPrefix:
		return bad("%d hex digits are too few to search by", n)
	case n == idDigits && !dashed:
		return bad("a full id is written with its dashes")
	}
	var text strings.Builder
	for _, c := range digits {
		if dashPlace(text.Len()) {
			text.WriteByte('-')
		}
		text.WriteByte(c)
	}
	return IDRef{Param: param, Given: given, Text: strings.ToLower(text.String()), Full: len(digits) == idDigits}, nil
}

func dashPlace(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// Range returns the bounds of the ids that begin with r.Text: from is part of the range, to is not.
func (r IDRef) Range() (from, to string) {
	return r.Text, r.Text + "g" // sorts after every hex digit and the dash
}

// One returns the only match. No match is a *NotFoundError for a record of that kind; several are an
// *AmbiguousIDError. A search need not return more than ShownMatches+1 ids, in order.
func (r IDRef) One(kind string, matches []string) (string, error) {
	switch len(matches) {
	case 0:
		return "", &NotFoundError{Kind: kind, ID: r.Given}
	case 1:
		return matches[0], nil
	}
	return "", &AmbiguousIDError{
		Prefix: r.Given, Matches: matches[:min(len(matches), ShownMatches)], More: len(matches) > ShownMatches,
	}
}
