package kg

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
)

// cursor is the place in a listing after which the next page begins. Rows only ever come in at the
// new end, so a listing that is paged through shows every row that was there throughout exactly once.
type cursor struct {
	seq   int64  // 0 at the beginning
	query uint32 // which query it belongs to
}

const (
	cursorVersion = 1
	cursorLength  = 1 + 4 + 8
	maxCursor     = 64 // of the param
)

var cursorText = base64.RawURLEncoding.Strict()

// String is the cursor as callers carry it: opaque to them, the same for the same place.
func (c cursor) String() string {
	b := append(make([]byte, 0, cursorLength), cursorVersion)
	b = binary.BigEndian.AppendUint32(b, c.query)
	b = binary.BigEndian.AppendUint64(b, uint64(c.seq))
	return cursorText.EncodeToString(b)
}

// start reads the cursor of a listing, which belongs to the query that the parts describe. Without one
// the listing starts at its beginning.
func (f *fields) start(parts ...string) cursor {
	start := cursor{query: hash(parts)}
	text, how := f.text("cursor", maxCursor)
	if how != given {
		return start
	}
	c, ok := parseCursor(*text)
	switch {
	case !ok:
		f.fail("cursor", "is not one that an answer gave; send next_cursor as it is, or leave it out to start over")
	case c.query != start.query:
		f.fail("cursor", "belongs to another query; repeat the filters and the order of the first page, or leave it out to start over")
	}
	return c
}

// parseCursor accepts exactly what String makes of a place in a listing.
func parseCursor(text string) (cursor, bool) {
	if len(text) > maxCursor {
		return cursor{}, false
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) != cursorLength || b[0] != cursorVersion {
		return cursor{}, false
	}
	c := cursor{query: binary.BigEndian.Uint32(b[1:]), seq: int64(binary.BigEndian.Uint64(b[5:]))}
	// The decoder skips line breaks; a cursor has none.
	return c, c.seq > 0 && c.String() == text
}

// apply adds the condition and the order to a query over a sequence column.
func (c cursor) apply(q *query, column string, oldest bool) {
	switch {
	case oldest:
		q.add(`AND `+column+` > ? ORDER BY `+column, c.seq)
	case c.seq > 0:
		q.add(`AND `+column+` < ? ORDER BY `+column+` DESC`, c.seq)
	default:
		q.add(`ORDER BY ` + column + ` DESC`)
	}
}

func hash(parts []string) uint32 {
	h := fnv.New32a()
	for _, p := range parts {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(p)))
		_, _ = h.Write(n[:]) // never fails
		_, _ = h.Write([]byte(p))
	}
	return h.Sum32()
}
