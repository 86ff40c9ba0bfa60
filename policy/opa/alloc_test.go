package opa_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// A decision is fast by design: the document is built value by value, and the options of an evaluation
// are kept. Time would tell that on a quiet machine only; allocations tell it anywhere. A round trip of
// the params over JSON text costs 66 here, the bounds leave about half of that.
func TestAllocations(t *testing.T) {
	in := call(params(t, benchParams))
	for _, c := range []struct {
		name string
		cfg  opa.Config
		most float64
	}{
		{"OK the starter", opa.Config{FS: fsOf("starter"), Timeout: time.Minute}, 350}, // 304; 342 with the race detector
		{"OK yes to all", opa.Config{FS: files("decision := true"), Timeout: time.Minute}, 160},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := opened(t, c.cfg)
			require.Equal(t, policy.Allow, g.Decide(t.Context(), in).Verdict)
			require.LessOrEqual(t, testing.AllocsPerRun(200, func() { g.Decide(t.Context(), in) }), c.most)
			require.LessOrEqual(t, opa.OptionAllocs(g), 1.0, "only the input is new from one evaluation to the next")
		})
	}
}
