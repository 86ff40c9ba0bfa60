package kg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/verbgate/verbgate/packs"
)

const (
	minPrefixDigits = 8
	maxIDLength     = 64 // of the param; a full id has 36 bytes
	shownMatches    = 5
)

// idRef is an id as a caller gave it: a full one, or a prefix to search by.
type idRef struct {
	param string
	given string
	text  string // canonical spelling, lower case with dashes; whole or cut
	full  bool
}

// parseID reads a full UUID (32 hex digits, with the usual dashes or none, in either case) or a prefix
// of at least 8 of its digits. Anything else is an *packs.InvalidError about param.
func parseID(param, given string) (idRef, error) {
	bad := func(why string) (idRef, error) {
		return idRef{}, &packs.InvalidError{Param: param, Message: why +
			`; give a full id such as "1b4e28ba-2fa1-4d2b-883f-0016d3cca427", or at least its first 8 hex digits`}
	}
	if given == "" {
		return bad("an empty string is no id")
	}
	digits := make([]byte, 0, 32)
	dashed := strings.Contains(given, "-")
	for i := range len(given) {
		c := given[i]
		switch {
		case dashed && isDashPlace(i):
			if c != '-' {
				return bad("the dashes are not where an id has them")
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			digits = append(digits, c)
		case c >= 'A' && c <= 'F':
			digits = append(digits, c+'a'-'A')
		case c == '-':
			return bad("the dashes are not where an id has them")
		default:
			return bad("an id consists of hex digits")
		}
	}
	if len(digits) > 32 {
		return bad(fmt.Sprintf("an id has 32 hex digits, this has %d", len(digits)))
	}
	if len(digits) < minPrefixDigits {
		return bad(fmt.Sprintf("%d hex digits are too few to search by", len(digits)))
	}
	var text strings.Builder
	for _, c := range digits {
		if isDashPlace(text.Len()) {
			text.WriteByte('-')
		}
		text.WriteByte(c)
	}
	return idRef{param: param, given: given, text: text.String(), full: len(digits) == 32}, nil
}

func isDashPlace(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// place is where the thing is that an id names.
type place struct {
	seq       int64
	id        string
	kind      string
	namespace string
}

// find resolves the id. A full one is looked up everywhere; a prefix is a search in the readable
// namespaces, which tells nothing about any other.
func (r idRef) find(ctx context.Context, tx *sql.Tx, readable []string) (place, error) {
	if r.full {
		var p place
		err := tx.QueryRowContext(ctx, `
			SELECT seq, id, kind, namespace FROM kg_records WHERE id = ?1
			UNION ALL
			SELECT seq, id, 'edge', namespace FROM kg_edges WHERE id = ?1`, r.text).Scan(&p.seq, &p.id, &p.kind, &p.namespace)
		if errors.Is(err, sql.ErrNoRows) {
			return place{}, r.notFound()
		}
		return p, err
	}
	places, err := r.search(ctx, tx, readable)
	if err != nil {
		return place{}, err
	}
	switch len(places) {
	case 0:
		return place{}, r.notFound()
	case 1:
		return places[0], nil
	}
	e := &packs.AmbiguousIDError{Prefix: r.given, More: len(places) > shownMatches}
	for _, p := range places[:min(len(places), shownMatches)] {
		e.Matches = append(e.Matches, p.id)
	}
	return place{}, e
}

// search returns what fits the prefix, one more than is ever shown.
func (r idRef) search(ctx context.Context, tx *sql.Tx, readable []string) ([]place, error) {
	q := &query{}
	q.add(`SELECT seq, id, kind, namespace FROM kg_records WHERE id >= ? AND id < ?`, r.text, r.text+"g") // "g" sorts after every digit and the dash
	q.readable("+namespace", readable)
	q.add(`UNION ALL SELECT seq, id, 'edge', namespace FROM kg_edges WHERE id >= ? AND id < ?`, r.text, r.text+"g")
	q.readable("+namespace", readable)
	q.add(`ORDER BY id LIMIT ?`, shownMatches+1)
	return collect(ctx, tx, q, func(scan func(...any) error) (p place, err error) {
		err = scan(&p.seq, &p.id, &p.kind, &p.namespace)
		return p, err
	})
}

func (r idRef) notFound() error { return &packs.NotFoundError{Kind: "record", ID: r.given} }

// findRecord resolves an id that must be an entity's or a note's.
func (r idRef) findRecord(ctx context.Context, tx *sql.Tx, readable []string) (place, error) {
	p, err := r.find(ctx, tx, readable)
	if err == nil && p.kind == kindEdge {
		err = &packs.InvalidError{Param: r.param, Message: "this is the id of an edge; give an entity's or a note's"}
	}
	return p, err
}

// newID makes the id of a new record.
func newID() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}

// Locate implements packs.Locator for full ids and prefixes, and finds what the handlers find. Text
// that cannot be an id names no record; a prefix that fits several is an *packs.AmbiguousIDError.
func (g *graph) Locate(ctx context.Context, ref packs.ResourceRef) (packs.Location, error) {
	id, err := parseID(ref.Param, ref.ID)
	if err != nil {
		return packs.Location{}, nil
	}
	p, err := reading(ctx, g.store, func(tx *sql.Tx) (place, error) { return id.find(ctx, tx, ref.Token.Readable()) })
	var missing *packs.NotFoundError
	switch {
	case errors.As(err, &missing):
		return packs.Location{}, nil
	case err != nil:
		return packs.Location{}, fmt.Errorf("locate the record of %s: %w", ref.Verb, err)
	}
	return packs.Location{Exists: true, ID: p.id, Namespace: p.namespace, Kind: p.kind}, nil
}
