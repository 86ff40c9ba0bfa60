package opa_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// seen is the input document as a policy sees it, handed out through a custom obligation.
func seen(t testing.TB, in *policy.Input) map[string]any {
	t.Helper()
	g := gateOf(t, `decision := {"decision": "allow", "obligations": [{"kind": "custom", "name": "echo", "value": input}]}`)
	d := g.Decide(t.Context(), in)
	require.Equal(t, policy.Allow, d.Verdict, "%+v", d)
	return d.Obligations[0].(policy.Custom).Value.(map[string]any)
}

func TestInputDocument(t *testing.T) {
	in := call(params(t, `{"id":"0190","list":[1,2.50,null,true,"x",{}],"nested":{"a":{"b":[]}},"none":null}`))
	in.Context.Via = []string{"outer", "inner"}
	in.Context.Index, in.Context.Count, in.Context.Mode = 2, 1000, "parallel"
	in.Context.SaveTo = "out.jsonl"
	in.Token.Explicit = true
	require.Equal(t, params(t, `{
		"verb": "get", "pack": "kg", "category": "assertive",
		"token": {"namespace": "local", "explicit": true, "read": ["local", "local:notes"],
			"actor": {"kind": "user", "id": "ada", "groups": ["staff"], "claims": {"sub": "ada"}}},
		"params": {"id": "0190", "list": [1, 2.50, null, true, "x", {}], "nested": {"a": {"b": []}}, "none": null},
		"resource": {"param": "id", "id": "0190", "exists": true, "namespace": "local", "kind": "entity"},
		"context": {"source": "mcp", "transport": "stdio", "session_id": "s1", "request_id": "r1", "decision_id": "d1",
			"time": "2026-11-30T20:01:02.000003000Z", "mode": "parallel", "index": 2, "count": 1000, "plan": false, "save_to": "out.jsonl", "via": ["outer", "inner"]}
	}`), seen(t, in))
}

// Nothing is missing and nothing is null but what the contract says.
func TestInputDocumentOfZeroValues(t *testing.T) {
	in := &policy.Input{Resource: &policy.Resource{}}
	want := params(t, `{
		"verb": "", "pack": "", "category": "",
		"token": {"namespace": "", "explicit": false, "read": [], "actor": {"kind": "", "id": "", "groups": [], "claims": {}}},
		"params": {},
		"resource": {"param": "", "id": "", "exists": null, "namespace": "", "kind": ""},
		"context": {"source": "", "transport": "", "session_id": "", "request_id": "", "decision_id": "", "time": "0001-01-01T00:00:00.000000000Z",
			"mode": "", "index": 0, "count": 0, "plan": false, "save_to": null, "via": []}
	}`)
	require.Equal(t, want, seen(t, in))
	in.Resource.Exists = policy.Absent
	require.Equal(t, false, seen(t, in)["resource"].(map[string]any)["exists"])
	in.Resource = nil
	delete(want, "resource")
	require.Equal(t, want, seen(t, in))
}

func TestInputTimeIsUTC(t *testing.T) {
	in := call(nil)
	in.Context.Time = time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	require.Equal(t, "2026-01-02T02:04:05.000000600Z", seen(t, in)["context"].(map[string]any)["time"])
}

// The published schema describes exactly the members a document can have.
func TestInputSchemaIsComplete(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal(opa.InputSchema(), &schema))
	var compare func(place string, schema map[string]any, doc map[string]any)
	compare = func(place string, schema map[string]any, doc map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		if properties == nil {
			return // open
		}
		require.Equal(t, false, schema["additionalProperties"], place)
		for name, value := range doc {
			require.Contains(t, properties, name, place)
			if member, ok := value.(map[string]any); ok {
				compare(place+"."+name, properties[name].(map[string]any), member)
			}
		}
		for name := range properties {
			require.Contains(t, doc, name, place)
		}
		if place != "input" {
			require.Len(t, schema["required"], len(properties), place)
		}
	}
	compare("input", schema, seen(t, call(map[string]any{"a": true})))
}

// Integers and decimals reach Rego exactly.
func TestNumbersAreExact(t *testing.T) {
	for _, rego := range []string{
		`decision if input.params.amount + 0 == 18446744073709551617`,
		`decision if sum([input.params.amount, 1]) == 18446744073709551618`,
		`decision if product([input.params.amount, 3]) == 55340232221128654851`,
		`decision if input.params.amount != 18446744073709551616`,
		`decision if input.params.precise == 9007199254740993`,
		`decision if input.params.precise != 9007199254740992`,
		`decision if input.params.decimal + 0.2 == 0.3`,
		`decision if input.params.exponent == 1500`,
	} {
		t.Run(rego, func(t *testing.T) {
			in := call(params(t, `{"amount":18446744073709551617,"precise":9007199254740993,"decimal":0.1,"exponent":1.5e3}`))
			require.Equal(t, policy.Allow, gateOf(t, rego).Decide(t.Context(), in).Verdict)
		})
	}
}

// null and absent are different things to a policy.
func TestNullIsNotAbsent(t *testing.T) {
	g := gateOf(t, "default decision := false\n\ndecision if not input.params.owner")
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(params(t, `{}`))).Verdict)
	require.Equal(t, policy.Deny, g.Decide(t.Context(), call(params(t, `{"owner":null}`))).Verdict)
}

func TestIsSoundNumber(t *testing.T) {
	for _, ok := range []string{
		"0", "-0", "1", "-1", "10", "1.0", "0.5", "-12.250", "1e1", "1E+1", "1e-1", "1.5e300", "0e999999999", "0.00e-99999999",
		"18446744073709551617", strings.Repeat("9", 128), "5e-324", "1.7976931348623157e308",
	} {
		require.True(t, opa.IsSoundNumber(ok), ok)
	}
	for _, bad := range []string{
		"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "e1", "1.e1", "1e1.5", "0x10", "1_000", "Inf", "NaN", "inf", " 1", "1 ", "1a", "1e5x", "--1",
		"1e309", "-1e309", "1e3000000", "1e-3000000", "1e-400", "1e99999999999999999999", strings.Repeat("9", 129), "1e" + strings.Repeat("0", 128),
	} {
		require.False(t, opa.IsSoundNumber(bad), bad)
	}
}

// Just below the limits everything passes.
func TestOKInputNearTheLimits(t *testing.T) {
	g := gateOf(t, `decision if input.verb == "get"`)
	var v any = "x"
	for range 78 {
		v = []any{v}
	}
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(map[string]any{"a": v})).Verdict)
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(map[string]any{"a": strings.Repeat("a", 2<<20-1000)})).Verdict)
}

// The gate only reads its input, and one input may be judged many times at once.
func TestInputIsOnlyRead(t *testing.T) {
	g := opened(t, opa.Config{FS: fsOf("starter"), Timeout: time.Minute})
	in := call(params(t, `{"b":[1,{"z":1,"a":2}],"a":{"y":1,"x":[]}}`))
	want := call(params(t, `{"b":[1,{"z":1,"a":2}],"a":{"y":1,"x":[]}}`))
	done := make(chan struct{})
	for range 8 {
		go func() {
			for range 50 {
				g.Decide(t.Context(), in)
			}
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
	require.Equal(t, want, in)
}
