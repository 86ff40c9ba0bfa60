package wire

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Optional is a value that may be absent. The zero Optional is absent.
type Optional[T any] struct {
	value T
	set   bool
}

// Some is a value that is present.
func Some[T any](v T) Optional[T] { return Optional[T]{value: v, set: true} }

// Get returns the value and whether it is present; the zero T when it is not.
func (o Optional[T]) Get() (T, bool) { return o.value, o.set }

// Present says whether there is a value.
func (o Optional[T]) Present() bool { return o.set }

// OperationID names one operation of a client, from its frame to the frame that ends it (wire.md 3).
// It is never empty on the wire. ParseOperationID makes one from a text; a conversion does too, and
// then Encode is what refuses an empty one.
type OperationID string

// ErrEmptyID and ErrNotUTF8 are why ParseOperationID refuses a text.
var (
	ErrEmptyID = errors.New("an operation id must not be empty")
	ErrNotUTF8 = errors.New("an operation id must be valid UTF-8")
)

// ParseOperationID is the id a text spells: any text but the empty one and one that is not UTF-8.
func ParseOperationID(s string) (OperationID, error) {
	if s == "" {
		return "", ErrEmptyID
	}
	if !utf8.ValidString(s) {
		return "", ErrNotUTF8
	}
	return OperationID(s), nil
}

// Cursor is the place of an event in its topic. Within a topic cursors only grow; they are not
// dense.
type Cursor uint64

// ParseCursor reads a cursor as the wire spells it: decimal digits, no sign and no leading zero.
func ParseCursor(s string) (Cursor, error) {
	n, ok := plainUint(s, 1<<64-1)
	if !ok {
		return 0, fmt.Errorf("a cursor is a whole number from 0 to 18446744073709551615 in plain digits, not %s", shown(s))
	}
	return Cursor(n), nil
}

// String is the spelling ParseCursor reads.
func (c Cursor) String() string { return strconv.FormatUint(uint64(c), 10) }

// plainUint reads digits as wire.md 2 wants its integers: nothing but digits, no leading zero, at
// most limit.
func plainUint[T string | []byte](s T, limit uint64) (uint64, bool) {
	if len(s) == 0 || len(s) > 20 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	var n uint64
	for i := range len(s) {
		d := uint64(s[i]) - '0'
		if d > 9 || n > (limit-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// StringList is an immutable list of strings kept in one piece of memory. A []string would need 16
// bytes for each element, which a peer can send in three; this needs 8 and the text. The zero value
// is the empty list. Strings taken from a list share its memory: clone one that outlives the frame.
type StringList struct {
	text string
	ends []int // where each element ends in text; nil for the empty list
}

// NewStringList is a list of the items given.
func NewStringList(items ...string) StringList {
	l := StringList{text: strings.Join(items, "")}
	end := 0
	for _, s := range items {
		end += len(s)
		l.ends = append(l.ends, end)
	}
	return l
}

// Len is the number of elements.
func (l StringList) Len() int { return len(l.ends) }

// At is element i, which must be in [0, Len).
func (l StringList) At(i int) string {
	start := 0
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.text[start:l.ends[i]]
}

// All yields the elements in order.
func (l StringList) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range l.ends {
			if !yield(l.At(i)) {
				return
			}
		}
	}
}

// Slice is the elements as a slice of the caller's own; empty, not nil, for an empty list.
func (l StringList) Slice() []string {
	return slices.AppendSeq(make([]string, 0, len(l.ends)), l.All())
}

// shown quotes a text of a peer for a message: one line, and no longer than a reader wants it.
func shown(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
