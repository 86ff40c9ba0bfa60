package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/core"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
)

// celChecks compiles the packs' checks, as the program does.
type celChecks struct{}

func (celChecks) Compile(manifests []packs.Manifest) (dispatcher.Checker, error) {
	return cel.Compile(manifests, cel.Config{})
}

// fence is a gate that keeps by-id verbs out of namespaces the token cannot read, and get from whom
// the test says.
type fence struct{ noGet string }

func (f fence) Decide(_ context.Context, in *policy.Input) policy.Decision {
	if in.Verb == "get" && in.Token.Actor.ID == f.noGet {
		return policy.Decision{Reason: "no get for " + f.noGet}
	}
	if r := in.Resource; r != nil && r.Exists == policy.Present && !strings.Contains(strings.Join(in.Token.Read, " "), r.Namespace) {
		return policy.Decision{Reason: "the record is in " + r.Namespace}
	}
	return policy.Decision{Verdict: policy.Allow, Gate: "fence"}
}

// The pack in the real pipeline: checks in CEL, nested calls, resources, records.
func TestInThePipeline(t *testing.T) {
	dir := t.TempDir()
	files := sqlite.New(dir, nil)
	store, err := audit.New(audit.Config{Path: filepath.Join(dir, "audit.db")})
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context()))
	key, err := audit.LoadKey(filepath.Join(dir, "audit.key"))
	require.NoError(t, err)
	d, err := dispatcher.New(dispatcher.Config{
		Packs: []packs.Pack{memory.Pack{}, kg.Pack{}, core.Pack{}}, Gate: fence{noGet: "eve"}, Checks: celChecks{}, Backends: files,
		Audit: store, RecordParams: true, Sealer: key,
	})
	require.NoError(t, err)
	require.NoError(t, d.Open(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.NoError(t, store.Close())
		require.NoError(t, files.Close())
	})
	run := func(source dispatcher.Source, actor, namespace, ops string) []dispatcher.Entry {
		t.Helper()
		parsed, err := request.Parse(ops)
		require.NoError(t, err, ops)
		caller := dispatcher.Caller{Source: source, Actor: policy.Actor{Kind: "user", ID: actor}, Namespace: namespace}
		return d.Run(t.Context(), caller, parsed).Results
	}
	ok := func(source dispatcher.Source, actor, namespace, ops string) object {
		t.Helper()
		entries := run(source, actor, namespace, ops)
		last := entries[len(entries)-1]
		require.True(t, last.OK, "%s: %s %v", ops, last.Code, last.Error)
		return decode(t, last.Result)
	}
	refused := func(source dispatcher.Source, actor, namespace, ops string, code dispatcher.Code, text string) {
		t.Helper()
		entries := run(source, actor, namespace, ops)
		last := entries[len(entries)-1]
		require.False(t, last.OK, ops)
		require.Equal(t, code, last.Code, "%s: %v", ops, last.Error)
		require.Contains(t, fmt.Sprint(last.Error), text, ops)
	}

	made := ok(dispatcher.MCP, "ann", "a", `create(kind="entity", entity_kind="concept", name="LoRA") | memory.remember(content="LoRA needs little memory", about=$prev.id, tags=["ml"], salience=0.9)`)
	require.Len(t, made["about"], 36)
	id := made["id"].(string)
	found := ok(dispatcher.MCP, "ann", "a", `memory.recall(query="lora", limit=3)`)
	require.Equal(t, id, found["items"].([]any)[0].(object)["id"])
	// The third seed's example, in a store that holds nothing like it.
	require.Equal(t, number("0"), ok(dispatcher.MCP, "ann", "a", `memory.recall(query="attention cache behavior", limit=3)`)["count"])

	// The nested get is judged for the caller himself, and his refusal is what he reads.
	refused(dispatcher.MCP, "eve", "a", fmt.Sprintf(`memory.remember(content="x", about=%q)`, made["about"]), dispatcher.CodePermissionDenied, "no get for eve")
	refused(dispatcher.MCP, "ann", "b", fmt.Sprintf(`memory.remember(content="x", about=%q)`, made["about"]), dispatcher.CodePermissionDenied, "the record is in a")
	refused(dispatcher.MCP, "ann", "a", `memory.remember(content="x", about="1b4e28ba-2fa1-4d2b-883f-0016d3cca427")`, dispatcher.CodeNotFound, "1b4e28ba")

	// The internal verb is the operator's.
	score := fmt.Sprintf(`memory.recall_score(id=%q, query="lora")`, id)
	refused(dispatcher.MCP, "ann", "a", score, dispatcher.CodeNotCallable, "memory.recall_score")
	require.Equal(t, true, ok(dispatcher.CLI, "root", "a", score)["recalled"])
	require.NotContains(t, fmt.Sprint(ok(dispatcher.MCP, "ann", "a", `verbs(pack="memory")`)), "recall_score")

	// The checks, before the gate; and the resource, for the gate.
	for ops, check := range map[string]string{
		`memory.remember(content=" ")`:                     "content is blank",
		`memory.remember(content="x", tags=["a", ""])`:     "a tag is blank",
		`memory.remember(content="x", about="LoRA")`:       "about is not an id",
		`memory.remember(content="x", salience=1.5)`:       "at most 1",
		`memory.remember(content="x", colour="red")`:       "colour",
		`memory.recall(query="")`:                          "query is blank",
		`memory.recall(query="x", limit=101)`:              "at most 100",
		`memory.recall(query="x", limit=0)`:                "at least 1",
		`memory.recall(query="x", tag="")`:                 "tag is blank",
		`memory.recall(query="?")`:                         "no word to look for",
		`memory.forget(id="abc")`:                          "id is not an id",
		`memory.forget(id="1b4e28ba-2fa1-4d2b-883f-0016")`: "no memory",
	} {
		code := dispatcher.CodeInvalidParams
		if check == "no memory" {
			code = dispatcher.CodeNotFound
		}
		refused(dispatcher.MCP, "ann", "a", ops, code, check)
	}
	refused(dispatcher.MCP, "ann", "b", fmt.Sprintf(`memory.forget(id=%q)`, id), dispatcher.CodePermissionDenied, "the record is in a")
	entries := run(dispatcher.MCP, "ann", "a", fmt.Sprintf(`[memory.forget(id=%q), memory.forget(id=%q)]`, id, id))
	require.Equal(t, dispatcher.CodeWriteConflict, entries[0].Code)
	require.Equal(t, dispatcher.CodeWriteConflict, entries[1].Code)
	require.Equal(t, id, ok(dispatcher.MCP, "ann", "a", fmt.Sprintf(`memory.forget(id=%q)`, id))["id"])

	// Every consultation left a record, the nested ones too.
	nested := 0
	for r, err := range store.Records(t.Context(), audit.Filter{Verb: "get"}) {
		require.NoError(t, err)
		require.True(t, json.Valid(r.Params))
		nested++
	}
	require.Equal(t, 4, nested)

	// What succeeded was told to those who follow, with the namespace of the call, and nothing else was.
	for topic, want := range map[string]string{
		"kg.created":        fmt.Sprintf(`{"id":%q,"kind":"entity"}`, made["about"]),
		"memory.remembered": fmt.Sprintf(`{"id":%q,"about":%q}`, id, made["about"]),
		"memory.forgotten":  fmt.Sprintf(`{"id":%q}`, id),
	} {
		require.Contains(t, d.Topics(), topic)
		events, err := store.Events(t.Context(), topic, 0, 10)
		require.NoError(t, err)
		require.Len(t, events, 1, topic)
		require.Equal(t, "a", events[0].Namespace)
		require.JSONEq(t, want, string(events[0].Payload))
	}
}
