package request

import (
	"hash/maphash"
	"slices"
)

// fewKeys is up to how many keys are compared pairwise, without a table.
const fewKeys = 12

// keyTable finds equal keys among the nodes of one call or object: slots hold node indices plus one.
// The hash is seeded per parse, so that no text can be built that collides.
type keyTable struct {
	slots []uint32
	seed  maphash.Seed
}

// fit empties the table and makes it large enough for count keys at three quarters.
func (t *keyTable) fit(count int) {
	size := 64
	for size*3 < count*4 {
		size *= 2
	}
	if cap(t.slots) < size {
		if t.slots == nil {
			t.seed = maphash.MakeSeed()
		}
		t.slots = make([]uint32, size)
		return
	}
	t.slots = t.slots[:size]
	clear(t.slots)
}

// put enters the key and returns the equal one it replaces.
func (p *parser) put(t *keyTable, key uint32) (old uint32, replaced bool) {
	mask := uint64(len(t.slots) - 1)
	for h := p.hashKey(t.seed, key); ; h++ {
		slot := &t.slots[h&mask]
		if *slot == 0 {
			*slot = key + 1
			return 0, false
		}
		if old = *slot - 1; p.sameKey(old, key) {
			*slot = key + 1
			return old, true
		}
	}
}

func (p *parser) hashKey(seed maphash.Seed, key uint32) uint64 {
	n := &p.nodes[key]
	if raw := p.text[n.off : n.off+n.n]; n.flags&flagEscaped == 0 {
		return maphash.String(seed, raw)
	}
	return maphash.Bytes(seed, p.unescaped(key, &p.scratch))
}

func (p *parser) sameKey(a, b uint32) bool {
	x, y := &p.nodes[a], &p.nodes[b]
	if (x.flags|y.flags)&flagEscaped == 0 {
		return p.text[x.off:x.off+x.n] == p.text[y.off:y.off+y.n]
	}
	return string(p.unescaped(a, &p.scratch)) == string(p.unescaped(b, &p.scratch2))
}

// unescaped is the text of a node as meant, in a buffer that the next call with it overwrites.
func (p *parser) unescaped(i uint32, buf *[]byte) []byte {
	n := &p.nodes[i]
	raw := p.text[n.off : n.off+n.n]
	*buf = appendUnescaped(slices.Grow((*buf)[:0], len(raw)), raw)
	return *buf
}

// repeatedArg reports whether the last of the count arguments from first on has the name of an earlier
// one. Names are entered one by one, since a repeat is reported before what follows it is read.
func (p *parser) repeatedArg(first uint32, count int, last uint32) bool {
	if count <= fewKeys {
		for k := first; k != last; k = p.nodes[k+1].next {
			if p.sameKey(k, last) {
				return true
			}
		}
		return false
	}
	if t := &p.argTable; count == fewKeys+1 || count*4 > len(t.slots)*3 {
		t.fit(count * 2)
		for k := first; k != last; k = p.nodes[k+1].next {
			p.put(t, k)
		}
	}
	_, repeated := p.put(&p.argTable, last)
	return repeated
}

// closeObject ends the object at i with count members and marks those that a later one replaces.
func (p *parser) closeObject(i uint32, count int) {
	dead := 0
	bury := func(key uint32) {
		if p.nodes[key].flags&flagDead == 0 {
			p.nodes[key].flags |= flagDead
			dead++
		}
	}
	first, end := i+1, uint32(len(p.nodes))
	switch {
	case count < 2:
	case count <= fewKeys:
		for k := p.nodes[first+1].next; k != end; k = p.nodes[k+1].next {
			for old := first; old != k; old = p.nodes[old+1].next {
				if p.sameKey(old, k) {
					bury(old)
				}
			}
		}
	default:
		p.keyTable.fit(count)
		for k := first; k != end; k = p.nodes[k+1].next {
			if old, replaced := p.put(&p.keyTable, k); replaced {
				bury(old)
			}
		}
	}
	p.closeBox(i, count-dead)
	if p.refs == 0 {
		return
	}
	for k := first; k != end; k = p.nodes[k+1].next {
		if p.nodes[k].flags&flagDead == 0 && p.nodes[k+1].flags&flagHasRef != 0 {
			p.nodes[i].flags |= flagHasRef
			return
		}
	}
}
