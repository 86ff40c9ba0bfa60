package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	_ "github.com/verbgate/verbgate/packs/core"
	_ "github.com/verbgate/verbgate/packs/kg"
	_ "github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
	"github.com/verbgate/verbgate/policy/opa"
	"github.com/verbgate/verbgate/policytests"
)

// compiler adapts policy/cel to the dispatcher, as cmd/verbgate does.
type compiler struct{}

func (compiler) Compile(manifests []packs.Manifest) (dispatcher.Checker, error) {
	return cel.Compile(manifests, cel.Config{})
}

// real is the product as cmd/verbgate wires it: every part is the one a user runs.
type real struct {
	*dispatcher.Dispatcher
	store *audit.Store
}

func newReal(tb testing.TB, change ...func(*dispatcher.Config)) *real {
	tb.Helper()
	dir := tb.TempDir()
	starter, err := fs.Sub(policytests.Starter, "starter")
	require.NoError(tb, err)
	gate, err := opa.New(opa.Config{FS: starter, Timeout: time.Minute})
	require.NoError(tb, err)
	require.NoError(tb, gate.Open(tb.Context()))
	key, err := audit.LoadKey(filepath.Join(dir, "seal.key"))
	require.NoError(tb, err)
	store, err := audit.New(audit.Config{Path: filepath.Join(dir, "audit.db")})
	require.NoError(tb, err)
	require.NoError(tb, store.Open(tb.Context()))
	files := sqlite.New(filepath.Join(dir, "data"), nil)
	cfg := dispatcher.Config{
		Packs: packs.Registered(), Gate: gate, FailOpen: true, Checks: compiler{}, Backends: files, Audit: store, Sealer: key, RecordParams: true,
		// A slow machine must fail no test.
		Limits: dispatcher.Limits{RequestTimeout: 10 * time.Minute, LocateTimeout: time.Minute, AuditTimeout: time.Minute},
	}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dispatcher.New(cfg)
	require.NoError(tb, err)
	require.NoError(tb, d.Open(tb.Context()))
	tb.Cleanup(func() {
		require.NoError(tb, d.Close())
		require.NoError(tb, gate.Close())
		require.NoError(tb, store.Close())
		require.NoError(tb, files.Close())
	})
	return &real{d, store}
}

var localUser = dispatcher.Caller{Source: dispatcher.MCP, Transport: "stdio", Actor: policy.Actor{Kind: "user", ID: "ann"}}

func (r *real) run(tb testing.TB, ops string) *dispatcher.Envelope {
	tb.Helper()
	req, err := request.Parse(ops)
	require.NoError(tb, err, ops)
	return r.Run(tb.Context(), localUser, req)
}

func (r *real) records(tb testing.TB, requestID string) []policy.Record {
	tb.Helper()
	var out []policy.Record
	for rec, err := range r.store.Records(context.Background(), audit.Filter{RequestID: requestID}) {
		require.NoError(tb, err)
		out = append(out, rec)
	}
	return out
}

// The examples of the document the product was asked for from, against the real packs.
func TestSeedExamples(t *testing.T) {
	r := newReal(t)
	for _, tc := range []struct {
		ops       string
		succeeded int
	}{
		{`create(kind="entity", entity_kind="concept", name="LoRA")`, 1},
		{`search(kind="entity", query="LoRA")`, 1},
		{`{"tool":"search","args":{"kind":"entity","query":"LoRA"}}`, 1},
		{`[stats(), memory.recall(query="attention cache behavior", limit=3)]`, 2},
		{`[{"tool":"stats","args":{}},{"tool":"memory.recall","args":{"query":"attention cache behavior","limit":3}}]`, 2},
	} {
		env := r.run(t, tc.ops)
		require.Equal(t, tc.succeeded, env.Summary.Succeeded, "%s: %+v", tc.ops, env.Results)
		require.Equal(t, dispatcher.Success, env.Status)
		require.Len(t, r.records(t, env.RequestID), tc.succeeded)
	}
	t.Run("a chain that links what it made", func(t *testing.T) {
		target := r.run(t, `create(kind="entity", entity_kind="paper", name="LoRA paper")`)
		var made struct{ ID string }
		require.NoError(t, json.Unmarshal(target.Results[0].Result, &made))
		env := r.run(t, fmt.Sprintf(`create(kind="entity", entity_kind="concept", name="Low rank") | link(source_id=$prev.id, target_id=%q, relation="introduced_by")`, made.ID))
		require.Equal(t, dispatcher.Success, env.Status, "%+v", env.Results)
	})
	t.Run("Err the chain as printed, with an empty target", func(t *testing.T) {
		env := r.run(t, `create(kind="entity", entity_kind="concept", name="LoRA 2") | link(source_id=$prev.id, target_id="", relation="introduced_by")`)
		require.True(t, env.Results[0].OK, "completed operations are not rolled back")
		require.Equal(t, dispatcher.CodeInvalidParams, env.Results[1].Code)
	})
	t.Run("Err not found", func(t *testing.T) {
		env := r.run(t, `get(id="00000000-0000-4000-8000-000000000000")`)
		require.Equal(t, dispatcher.CodeNotFound, env.Results[0].Code)
		require.Contains(t, env.Results[0].Error, "not found: ")
	})
	t.Run("Err bareword and mixed separators", func(t *testing.T) {
		for _, ops := range []string{`get(id=abc)`, `a() | b(), c()`} {
			_, err := request.Parse(ops)
			require.Error(t, err)
		}
	})
}

func TestRealDenial(t *testing.T) {
	r := newReal(t)
	env := r.run(t, `[create(kind="note", content="x", namespace="team"), stats()]`)
	denied := env.Results[0]
	require.Equal(t, dispatcher.CodePermissionDenied, denied.Code)
	require.Contains(t, denied.Error, `permission denied for verb "create": `)
	require.True(t, env.Results[1].OK)
	records := r.records(t, env.RequestID)
	require.Len(t, records, 2)
	for _, rec := range records {
		if rec.Index == 0 {
			require.Equal(t, "deny", rec.Decision)
			require.Equal(t, denied.DecisionID, rec.DecisionID)
			require.Equal(t, "not_run", rec.Outcome)
			require.NotEmpty(t, rec.Revision)
		}
	}
	list := r.run(t, `list(kind="note", namespace="local:team")`)
	require.NotContains(t, string(list.Results[0].Result), `"x"`, "what was denied did not run")
}

func TestRealChecks(t *testing.T) {
	r := newReal(t)
	for _, ops := range []string{`create(kind="song", name="x")`, `search(kind="entity", query="")`, `memory.recall(query="x", limit=100000)`, `create()`} {
		env := r.run(t, ops)
		require.Equal(t, dispatcher.CodeInvalidParams, env.Results[0].Code, "%s: %+v", ops, env.Results[0])
		require.Equal(t, policy.KindRefusal, r.records(t, env.RequestID)[0].Kind)
	}
}

func TestRealMemory(t *testing.T) {
	r := newReal(t)
	env := r.run(t, `create(kind="entity", entity_kind="concept", name="cache") | memory.remember(content="attention caches grow", about=$prev.id)`)
	require.Equal(t, dispatcher.Success, env.Status, "%+v", env.Results)
	var verbs []string
	for _, rec := range r.records(t, env.RequestID) {
		verbs = append(verbs, rec.Verb)
	}
	require.ElementsMatch(t, []string{"create", "get", "memory.remember"}, verbs, "the nested get crossed the gate and is on record")
	recalled := r.run(t, `memory.recall(query="attention")`)
	require.Contains(t, string(recalled.Results[0].Result), "attention caches grow")
	internal := r.run(t, `memory.recall_score(id="x", query="y")`)
	require.Equal(t, dispatcher.CodeNotCallable, internal.Results[0].Code)
}

func TestRealCatalogue(t *testing.T) {
	r := newReal(t)
	env := r.run(t, `verbs()`)
	require.True(t, env.Results[0].OK)
	for _, verb := range []string{"create", "get", "list", "update", "delete", "search", "link", "neighbors", "merge_entity", "merge_note", "stats",
		"memory.remember", "memory.recall", "memory.forget", "verbs"} {
		require.Contains(t, string(env.Results[0].Result), `"verb":"`+verb+`"`)
	}
	require.NotContains(t, string(env.Results[0].Result), "recall_score")
}

func TestRealParallelWritesAndRecords(t *testing.T) {
	r := newReal(t)
	ops := make([]string, 100)
	for i := range ops {
		ops[i] = fmt.Sprintf(`create(kind="note", content="note %d")`, i)
	}
	env := r.run(t, "["+strings.Join(ops, ",")+"]")
	require.Equal(t, 100, env.Summary.Succeeded)
	seen := map[int]bool{}
	for _, rec := range r.records(t, env.RequestID) {
		seen[rec.Index] = true
	}
	require.Len(t, seen, 100)
}

// The parser, the params, the checks, the gate and the handler each have their own idea of a sound
// number. What the first accepts the others must carry, exactly.
func TestRealNumbers(t *testing.T) {
	r := newReal(t)
	for _, n := range []string{
		"0", "-0", "1", "-1", "1.0", "1e0", "0.1", "1e308", "-1e308", "5e-324", "9007199254740993", "9223372036854775807", "-9223372036854775808",
		"18446744073709551615", "18446744073709551616", "123456789012345678901234567890.5", "0." + strings.Repeat("3", 126),
	} {
		env := r.run(t, `create(kind="note", content="number", properties={"n":`+n+`})`)
		require.Equal(t, dispatcher.Success, env.Status, "%s: %v", n, env.Results[0].Error)
		require.Contains(t, string(env.Results[0].Result), `"n":`+n+`}`)
		require.Contains(t, string(r.records(t, env.RequestID)[0].Params), `"n":`+n+`}`)
	}
	// CEL has no number for a whole one past 2^64 that a double would round. A check that reads such a
	// value refuses; those of create only ask what is there, in one record as in many.
	for _, n := range []string{"18446744073709551617", strings.Repeat("9", 128)} {
		for _, ops := range []string{
			`create(kind="note", content="number", properties={"n":` + n + `})`,
			`create(items=[{"kind":"note", "content":"number", "properties":{"n":` + n + `}}]) | get(id=$prev.ids[0])`,
		} {
			env := r.run(t, ops)
			require.Equal(t, dispatcher.Success, env.Status, "%s: %v", ops, env.Results[0].Error)
			require.Contains(t, string(env.Results[len(env.Results)-1].Result), `"n":`+n+`}`)
		}
	}
}
