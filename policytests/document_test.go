package policytests_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy/opa"
)

// impossible begins the names of tests about documents that the gate never makes. All other tests judge
// such as it does make: a rule that holds for a document of another shape proves nothing.
const impossible = "test_impossible_"

// misjudged lists the documents of a policy's tests that are not of the shape that the test's name says.
func misjudged(t *testing.T, r *report) []string {
	t.Helper()
	var out []string
	for test, documents := range r.judged {
		for text, document := range documents {
			problem := shapeProblem(t, document)
			switch name := test[strings.LastIndex(test, ".")+1:]; {
			case strings.HasPrefix(name, impossible) && problem == "":
				out = append(out, fmt.Sprintf("%s: the gate does make this document: %s", name, text))
			case !strings.HasPrefix(name, impossible) && problem != "":
				out = append(out, fmt.Sprintf("%s: %s: %s", name, problem, text))
			}
		}
	}
	slices.Sort(out)
	return out
}

// shapeProblem says why the gate would never make the document; "" when it would.
func shapeProblem(t *testing.T, document ast.Value) string {
	t.Helper()
	var schema any
	require.NoError(t, json.Unmarshal(opa.InputSchema(), &schema))
	value, err := ast.JSON(document)
	require.NoError(t, err)
	rows, err := rego.New(
		rego.Query(`[fits, problems] := json.match_schema(input.document, input.schema)`),
		rego.Input(map[string]any{"document": value, "schema": schema}),
		rego.StrictBuiltinErrors(true),
	).Eval(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 1)
	if rows[0].Bindings["fits"] != true {
		return fmt.Sprint(rows[0].Bindings["problems"])
	}
	resource, ok := value.(map[string]any)["resource"].(map[string]any)
	if ok && resource["exists"] != true && (resource["namespace"] != "" || resource["kind"] != "") {
		return "resource: namespace and kind are empty unless the record exists"
	}
	return ""
}

// The check of documents must itself find the ones that never occur, wherever they hide.
func TestDocuments(t *testing.T) {
	const whole = `{
		"verb": "get", "pack": "kg", "category": "assertive", "params": {},
		"token": {"namespace": "local", "explicit": false, "read": ["local"], "actor": {"kind": "user", "id": "ann", "groups": [], "claims": {}}},
		"resource": {"param": "id", "id": "0b4c1e6e", "exists": null, "namespace": "", "kind": ""},
		"context": {"source": "mcp", "transport": "stdio", "session_id": "", "request_id": "", "decision_id": "", "time": "", "mode": "single", "index": 0, "count": 1, "plan": false, "save_to": null, "via": []}
	}`
	test := func(name, changed string) string {
		return "package verbgate.gate_test\n\nimport data.verbgate.gate\n\nids := [\"a\", 7]\n\nwhole := " + whole + "\n\n" + name + " if {\n\tsome id in ids\n\tgate.decision with input as " + changed + "\n}\n"
	}
	for name, c := range map[string]struct{ tests, want string }{
		"OK as the gate makes it":      {test("test_get", `whole`), ""},
		"OK impossible, and said so":   {test("test_impossible_get", `object.remove(whole, ["token"])`), ""},
		"OK by cases":                  {test("test_get[id]", `object.union(whole, {"params": {"id": id}})`), ""},
		"Err null for no namespace":    {test("test_get", `object.union(whole, {"resource": {"namespace": null}})`), "resource.namespace"},
		"Err a namespace of no record": {test("test_get", `object.union(whole, {"resource": {"namespace": "local"}})`), "empty unless the record exists"},
		"Err something missing":        {test("test_get", `json.remove(whole, ["token/actor/claims"])`), "claims is required"},
		"Err something more":           {test("test_get", `object.union(whole, {"token": {"namspace": "x"}})`), "namspace"},
		"Err one member by name":       {test("test_get", `whole with input.token.read as "local"`), "token.read"},
		"Err one of several cases":     {test("test_get[id]", `object.union(whole, {"resource": {"id": id}})`), "resource.id"},
		"Err not impossible at all":    {test("test_impossible_get", `whole`), "the gate does make this document"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.rego"), []byte("package verbgate.gate\n\ndecision if input\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "gate_test.rego"), []byte(c.tests), 0o600))
			r, err := runFolder(dir)
			require.NoError(t, err)
			require.NotEmpty(t, r.judged)
			problems := misjudged(t, r)
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0], c.want)
		})
	}
}
