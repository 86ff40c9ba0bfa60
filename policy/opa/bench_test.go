package opa_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// benchParams are those of a usual call.
var benchParams = `{"kind":"entity","entity_kind":"concept","name":"LoRA","tags":["ml","adapters"],"limit":20,"properties":{"year":2021,"score":0.75}}`

// One decision of the small policy in testdata/starter.
func BenchmarkDecide(b *testing.B) {
	g := opened(b, opa.Config{FS: fsOf("starter"), Timeout: time.Minute})
	in := call(params(b, benchParams))
	require.Equal(b, policy.Allow, g.Decide(b.Context(), in).Verdict)
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(b.Context(), in)
	}
}

func BenchmarkDecideParallel(b *testing.B) {
	g := opened(b, opa.Config{FS: fsOf("starter"), Timeout: time.Minute})
	in := call(params(b, benchParams))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g.Decide(b.Context(), in)
		}
	})
}

// A policy that says yes to everything: what a decision costs besides the policy.
func BenchmarkDecideTrue(b *testing.B) {
	g := gateOf(b, "decision := true")
	in := call(params(b, benchParams))
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(b.Context(), in)
	}
}

// The plain way, to compare with: a prepared query, and the document as nested maps.
func BenchmarkPreparedQueryWithMaps(b *testing.B) {
	source, err := os.ReadFile("testdata/starter/gate.rego")
	require.NoError(b, err)
	data, err := os.ReadFile("testdata/starter/data.json")
	require.NoError(b, err)
	query, err := rego.New(rego.Query("data.verbgate.gate.decision"), rego.Module("gate.rego", string(source)),
		rego.Store(inmem.NewFromReader(bytes.NewReader(data)))).PrepareForEval(b.Context())
	require.NoError(b, err)
	doc := seen(b, call(params(b, benchParams)))
	b.ReportAllocs()
	for b.Loop() {
		results, err := query.Eval(b.Context(), rego.EvalInput(doc))
		if err != nil || len(results) != 1 {
			b.Fatal(results, err)
		}
	}
}
