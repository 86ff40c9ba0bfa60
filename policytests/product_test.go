package policytests_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	_ "github.com/verbgate/verbgate/packs/core"
	_ "github.com/verbgate/verbgate/packs/kg"
	_ "github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
	"github.com/verbgate/verbgate/policy/opa"
)

// Records that are there before each test; twins begin alike.
const (
	own     = "aaaaaaaa-1111-4111-8111-111111111111"
	twin    = "bbbbbbbb-1111-4111-8111-111111111111"
	twin2   = "bbbbbbbb-2222-4222-8222-222222222222"
	foreign = "cccccccc-3333-4333-8333-333333333333"
)

type compiler struct{}

func (compiler) Compile(manifests []packs.Manifest) (dispatcher.Checker, error) {
	return cel.Compile(manifests, cel.Config{})
}

type product struct {
	*dispatcher.Dispatcher
	caller dispatcher.Caller
}

// newProduct wires the product as cmd/verbgate does, with a policy of this package, on data that holds
// three records in home and one in a namespace the policy does not open to caller.
func newProduct(t *testing.T, dir, home string, actor policy.Actor, locate time.Duration) *product {
	t.Helper()
	data := t.TempDir()
	for id, namespace := range map[string]string{own: home, twin: home, twin2: home, foreign: "team-z"} {
		setUp := start(t, data, dispatcher.Config{Gate: must(t, opa.Config{FS: anything})})
		p := &product{setUp, dispatcher.Caller{Source: dispatcher.CLI, Transport: "embedded", Actor: actor, Namespace: namespace}}
		made := p.run(t, fmt.Sprintf(`create(kind="note", title="n", content="secret of %s")`, namespace))
		require.True(t, made.OK, made.Error)
		require.NoError(t, setUp.Close())
		var record struct{ ID string }
		require.NoError(t, json.Unmarshal(made.Result, &record))
		rename(t, filepath.Join(data, "main.db"), record.ID, id)
	}
	gate := must(t, opa.Config{Path: dir, PollInterval: -1, Timeout: time.Minute})
	d := start(t, data, dispatcher.Config{Gate: gate, FailOpen: true, Limits: dispatcher.Limits{LocateTimeout: locate}})
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return &product{d, dispatcher.Caller{Source: dispatcher.MCP, Transport: "stdio", Actor: actor, Namespace: home}}
}

func must(t *testing.T, cfg opa.Config) *opa.Gate {
	t.Helper()
	gate, err := opa.New(cfg)
	require.NoError(t, err)
	require.NoError(t, gate.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, gate.Close()) })
	return gate
}

func start(t *testing.T, data string, cfg dispatcher.Config) *dispatcher.Dispatcher {
	t.Helper()
	files := sqlite.New(data, nil)
	cfg.Packs, cfg.Checks, cfg.Backends = packs.Registered(), compiler{}, files
	d, err := dispatcher.New(cfg)
	require.NoError(t, err)
	require.NoError(t, d.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	return d
}

// rename gives a record an id of the test's choice, which no verb allows.
func rename(t *testing.T, file, from, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer db.Close()
	done, err := db.ExecContext(t.Context(), `UPDATE kg_records SET id = ? WHERE id = ?`, to, from)
	require.NoError(t, err)
	n, err := done.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// run is the answer to the last operation of ops.
func (p *product) run(t *testing.T, ops string) dispatcher.Entry {
	t.Helper()
	req, err := request.Parse(ops)
	require.NoError(t, err, ops)
	results := p.Run(context.Background(), p.caller, req).Results
	return results[len(results)-1]
}

var (
	ann = policy.Actor{Kind: "user", ID: "ann", Claims: map[string]any{"assurance": "high"}}
	bot = policy.Actor{Kind: "agent", ID: "a1", Claims: map[string]any{"tree": "team-a:bots"}}
)

// Whatever spelling of another namespace's id and however busy the packs: the fences hold.
func TestFencesHold(t *testing.T) {
	bare := strings.ReplaceAll(foreign, "-", "")
	spellings := []string{
		foreign, strings.ToUpper(foreign), bare, strings.ToUpper(bare), foreign[:35], bare[:31], foreign[:8], bare[:12],
		foreign[:13] + bare[12:], bare + "-", "-" + bare, foreign + "0", "{" + foreign + "}", " " + foreign,
	}
	for _, c := range []struct {
		dir, home string
		actor     policy.Actor
	}{{"starter", "local", ann}, {"roles", "team-a", ann}, {"fenced_agent", "team-a:bots", bot}} {
		for name, locate := range map[string]time.Duration{"packs answer": 0, "packs do not answer in time": 1} {
			t.Run(c.dir+", "+name, func(t *testing.T) {
				p := newProduct(t, c.dir, c.home, c.actor, locate)
				for _, id := range spellings {
					for _, ops := range []string{
						`get(id=%q)`, `delete(id=%q)`, `update(id=%q, title="mine")`, `neighbors(id=%q, limit=5)`, `memory.remember(content="x", about=%q)`,
						`link(source_id=%q, target_id="` + own + `", relation="r")`, `link(source_id=%q, target_id="` + own[:20] + `", relation="r")`,
						`merge_note(into_id=%q, from_id="` + own + `")`, `merge_note(into_id="` + own + `", from_id=%q)`,
					} {
						got := p.run(t, fmt.Sprintf(ops, id))
						require.False(t, got.OK, "%s with %q: %s", ops, id, got.Result)
						require.NotEmpty(t, got.Error)
						require.NotContains(t, got.Error, "secret")
						require.NotEqual(t, dispatcher.CodePolicyError, got.Code, got.Error)
						require.NotEqual(t, dispatcher.CodeInternal, got.Code, got.Error)
					}
					if c.dir == "starter" {
						continue // which says that it does not fence the target of link
					}
					got := p.run(t, fmt.Sprintf(`link(source_id=%q, target_id=%q, relation="r")`, own, id))
					require.False(t, got.OK, "link to %q: %s", id, got.Result)
				}
			})
		}
	}
}

// A shortened id that fits several records of one's own is answered by the verb, which names them.
func TestAmbiguousIDs(t *testing.T) {
	p := newProduct(t, "starter", "local", ann, 0)
	for _, ops := range []string{
		`get(id="bbbbbbbb")`, `delete(id="BBBBBBBB")`, `update(id="bbbbbbbb-", title="x")`, `neighbors(id="bbbbbbbb")`,
		`link(source_id="bbbbbbbb", target_id="` + own + `", relation="r")`, `link(source_id="` + own + `", target_id="bbbbbbbb", relation="r")`,
		`merge_note(into_id="bbbbbbbb", from_id="` + own + `")`,
	} {
		got := p.run(t, ops)
		require.Equal(t, dispatcher.CodeAmbiguousID, got.Code, "%s: %s", ops, got.Error)
		require.Contains(t, got.Error, twin)
		require.Contains(t, got.Error, twin2)
	}
	require.True(t, p.run(t, `get(id="bbbbbbbb-1")`).OK, "one digit more, and one is left")

	// The other two policies say what to do.
	for dir, home := range map[string]string{"roles": "team-a", "fenced_agent": "team-a:bots"} {
		actor := ann
		if dir == "fenced_agent" {
			actor = bot
		}
		got := newProduct(t, dir, home, actor, 0).run(t, `get(id="bbbbbbbb")`)
		require.Equal(t, dispatcher.CodePermissionDenied, got.Code)
		require.Contains(t, got.Error, "give the full id")
	}
}

// link works for one's own records, as each policy wants it asked for.
func TestLink(t *testing.T) {
	p := newProduct(t, "starter", "local", ann, 0)
	seed := `create(kind="entity", entity_kind="concept", name="LoRA") | link(source_id=$prev.id, target_id=%q, relation="introduced_by")`
	require.True(t, p.run(t, fmt.Sprintf(seed, own)).OK)
	require.True(t, p.run(t, fmt.Sprintf(seed, own[:8])).OK)

	// What the starter policy says of itself: the edge is made, and shows the id and nothing else.
	edge := p.run(t, fmt.Sprintf(seed, foreign))
	require.True(t, edge.OK, edge.Error)
	require.Contains(t, string(edge.Result), `"namespace":"local"`)
	require.NotContains(t, string(edge.Result), "secret")
	require.Equal(t, dispatcher.CodeNamespaceMismatch, p.run(t, fmt.Sprintf(`merge_note(into_id=%q, from_id=%q)`, own, foreign)).Code)

	p = newProduct(t, "roles", "team-a", ann, 0)
	refused := p.run(t, fmt.Sprintf(seed, own))
	require.Contains(t, refused.Error, "give only its first 23 characters")
	linked := p.run(t, fmt.Sprintf(seed, own[:23]))
	require.True(t, linked.OK, linked.Error)
	merged := p.run(t, fmt.Sprintf(`merge_note(into_id=%q, from_id=%q)`, own, twin[:23]))
	require.True(t, merged.OK, merged.Error)
}
