package request

import "strings"

// The kinds of nodes that are no values.
const (
	kindKey  Kind = Reference + 1 + iota // a member's key or an argument's name
	kindCall                             // a call of the function form; its text is the verb
)

// Flags of a node.
const (
	flagTrue    uint8 = 1 << iota // a Bool that is true
	flagEscaped                   // the text holds escapes
	flagQuoted                    // a Reference written as a string
	flagDrop                      // the first byte of the unescaped text, a backslash, only protected a $prev
	flagHasRef                    // is or holds a reference; in JSON form a string that would be one
	flagDead                      // a key whose member a later one replaced
)

// node is one value, key or call in the order of the text. A container's nodes follow it; a key's
// value follows the key. Sixteen bytes, so that "1,1,1" costs eight times its text.
type node struct {
	off   uint32 // first byte: inside the quotes of a string
	n     uint32 // bytes of text; for Array, Object: elements or live members
	next  uint32 // index of the first node behind this one and all it holds
	kind  Kind
	flags uint8
}

// tape is the text and its nodes. It does not change once parsed.
type tape struct {
	text  string
	nodes []node
}

// raw is the text of a node as written.
func (t *tape) raw(i uint32) string {
	n := &t.nodes[i]
	return t.text[n.off : n.off+n.n]
}

// str is the text of a String or key node as meant.
func (t *tape) str(i uint32) string {
	flags := t.nodes[i].flags
	if flags&flagEscaped == 0 {
		return t.raw(i)
	}
	s := unescape(t.raw(i))
	if flags&flagDrop != 0 {
		return s[1:]
	}
	return s
}

// Growth of the tape while parsing.
const (
	smallText  = 4096 // up to here the tape is made once, for what the whole text can need
	firstNodes = 512
	stepNodes  = 2048 // up to here it grows by four; then once, for what the rest can need
)

// reserve makes the tape.
func (p *parser) reserve() {
	room := firstNodes
	if len(p.text) <= smallText {
		room = maxNodes(p.text)
	}
	p.nodes = make([]node, 0, room)
}

// maxNodes is how many nodes a text can hold at most: each takes two bytes at least, and starts the
// text or follows one of seven marks.
func maxNodes(text string) int {
	marks := 4
	for _, mark := range [...]string{",", "=", ":", "[", "{", "(", "|"} {
		marks += strings.Count(text, mark)
	}
	return min(marks, len(text)/2+4)
}

// push appends a node whose text runs from one offset to another, and returns its index.
func (p *parser) push(kind Kind, flags uint8, from, to int) uint32 {
	i := len(p.nodes)
	if i == cap(p.nodes) {
		p.grow()
	}
	p.nodes = p.nodes[:i+1]
	n := &p.nodes[i]
	n.off, n.n, n.next = uint32(from), uint32(to-from), uint32(i+1)
	n.kind, n.flags = kind, flags
	return uint32(i)
}

// grow makes room. All tapes of a parse together take little more than eight bytes per byte of text.
func (p *parser) grow() {
	have, rest := len(p.nodes), p.text[p.pos:]
	room := min(3*have, len(rest)/2+4)
	if have >= stepNodes {
		room = maxNodes(rest)
	}
	p.nodes = append(make([]node, 0, have+max(room, 4)), p.nodes...)
}

// closeBox sets the end of the container or call at i.
func (p *parser) closeBox(i uint32, count int) {
	p.nodes[i].n = uint32(count)
	p.nodes[i].next = uint32(len(p.nodes))
}
