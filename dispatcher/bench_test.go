package dispatcher_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
)

// BenchmarkRunGet is one whole request in process: dispatch, checks, gate, pack, audit in mode sync.
func BenchmarkRunGet(b *testing.B) {
	for _, audited := range []bool{true, false} {
		b.Run(auditMode(audited), func(b *testing.B) {
			r := newReal(b, auditing(audited))
			req, err := request.Parse(`get(id="` + r.newEntity(b) + `")`)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if env := r.Run(b.Context(), localUser, req); env.Summary.Succeeded != 1 {
					b.Fatal(env.Results[0].Error)
				}
			}
		})
	}
}

// BenchmarkRun is BenchmarkRunGet of a call that the policy denies, and of a batch.
func BenchmarkRun(b *testing.B) {
	for _, bench := range []struct {
		name, ops string
		succeeded int
	}{
		{"denied", `get(id="0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11", namespace="team")`, 0},
		{"batch of 10", "[" + strings.TrimSuffix(strings.Repeat(`get(id="$ID"),`, 10), ",") + "]", 10},
	} {
		for _, audited := range []bool{true, false} {
			b.Run(bench.name+"/"+auditMode(audited), func(b *testing.B) {
				r := newReal(b, auditing(audited))
				req, err := request.Parse(strings.ReplaceAll(bench.ops, "$ID", r.newEntity(b)))
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if env := r.Run(b.Context(), localUser, req); env.Summary.Succeeded != bench.succeeded {
						b.Fatal(env.Results[0].Error)
					}
				}
			})
		}
	}
}

func auditMode(audited bool) string {
	if audited {
		return "audit=sync"
	}
	return "audit=none"
}

func auditing(audited bool) func(*dispatcher.Config) {
	return func(c *dispatcher.Config) {
		if !audited {
			c.Audit = nil
		}
	}
}

// newEntity makes a record and returns its id.
func (r *real) newEntity(tb testing.TB) string {
	tb.Helper()
	env := r.run(tb, `create(kind="entity", entity_kind="concept", name="LoRA")`)
	var made struct{ ID string }
	require.NoError(tb, json.Unmarshal(env.Results[0].Result, &made))
	return made.ID
}
