package opa

import (
	"os"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/storage"
)

// BreakStore makes every snapshot of g read from what wrap returns. It is the one fault that cannot
// be caused from outside: the built-in store does not fail.
func BreakStore(g *Gate, wrap func(storage.Store) storage.Store) { g.wrapStore = wrap }

// IsSoundNumber is the check of the numbers of an input.
var IsSoundNumber = isSoundNumber

// SetLimit sets how many evaluations may run at once.
func SetLimit(g *Gate, n int) {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	g.pool.limit = n
}

// StableFor is how long a folder must look the same before it is read.
const StableFor = stableFor

// ChangeTime is when a file was changed in any way, as far as the gate can tell.
func ChangeTime(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return changeTime(info)
}

// Limits are the time limit of an evaluation and its grace.
func Limits(g *Gate) (timeout, grace time.Duration) { return g.cfg.Timeout, g.cfg.Grace }

// OptionAllocs counts what making ready the options of one more evaluation allocates.
func OptionAllocs(g *Gate) float64 {
	j, snap := newJob(), g.current.Load()
	j.optionsFor(snap)
	return testing.AllocsPerRun(100, func() { j.optionsFor(snap) })
}
