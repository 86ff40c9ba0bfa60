package packs

import (
	"slices"
	"sync"
)

var registry struct {
	sync.Mutex
	packs []Pack
}

// Register makes a pack known to the program. It is meant for the init function of a pack's own
// package, so that a blank import adds the pack. It checks nothing: two packs of one name are found,
// with every other problem, when the dispatcher starts.
func Register(p Pack) {
	registry.Lock()
	defer registry.Unlock()
	registry.packs = append(registry.packs, p)
}

// Registered returns the packs registered so far, in the order of registration.
func Registered() []Pack {
	registry.Lock()
	defer registry.Unlock()
	return slices.Clone(registry.packs)
}
