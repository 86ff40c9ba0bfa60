package kg

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// cursor is the place in a listing after which the next page begins. Rows only ever come in at the
// new end, so a listing that is paged through shows every row that was there throughout exactly once,
// also when the row a cursor stands on is deleted.
//
// The place is a sequence number of the whole file: two of them would tell how much others have written
// in between. So a cursor shows it sealed, as one block of AES under a key that stays in the file.
type cursor struct {
	seq   int64        // 0 at the beginning
	query uint32       // which query it belongs to
	seal  cipher.Block // of the file
}

const (
	cursorVersion = 1
	maxCursor     = 64 // of the param
)

var cursorText = base64.RawURLEncoding.Strict()

// beginning is where a listing of the file starts.
func beginning(ctx context.Context, tx *sql.Tx) (cursor, error) {
	var key []byte
	if err := tx.QueryRowContext(ctx, `SELECT key FROM kg_cursor_key`).Scan(&key); err != nil {
		return cursor{}, err
	}
	seal, err := aes.NewCipher(key)
	if err != nil {
		return cursor{}, fmt.Errorf("the key of cursors: %w", err)
	}
	return cursor{seal: seal}, nil
}

// String is the cursor as callers carry it: opaque to them, the same for the same place.
func (c cursor) String() string {
	var b [aes.BlockSize]byte
	b[0] = cursorVersion // the three bytes after it are zero, so that hardly anything else opens
	binary.BigEndian.PutUint32(b[4:], c.query)
	binary.BigEndian.PutUint64(b[8:], uint64(c.seq))
	c.seal.Encrypt(b[:], b[:])
	return cursorText.EncodeToString(b[:])
}

// start reads the cursor of a listing, which belongs to the query that the parts describe. Without one
// the listing starts at its beginning.
func (f *fields) start(beginning cursor, parts ...string) cursor {
	beginning.query = hash(parts)
	text, how := f.text("cursor", maxCursor)
	if how != given {
		return beginning
	}
	c, ok := beginning.parse(*text)
	switch {
	case !ok:
		f.fail("cursor", "is not one that an answer gave; send next_cursor as it is, or leave it out to start over")
	case c.query != beginning.query:
		f.fail("cursor", "belongs to another query; repeat the filters and the order of the first page, or leave it out to start over")
	}
	return c
}

// parse accepts exactly what String makes of a place in a listing of the same file.
func (c cursor) parse(text string) (cursor, bool) {
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) != aes.BlockSize {
		return cursor{}, false
	}
	c.seal.Decrypt(b, b)
	c.query, c.seq = binary.BigEndian.Uint32(b[4:]), int64(binary.BigEndian.Uint64(b[8:]))
	// The version and the zeros are those that String writes only if the whole is what it wrote; the
	// decoder skips line breaks, and a cursor has none.
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
