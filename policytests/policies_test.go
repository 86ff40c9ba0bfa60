package policytests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/stretchr/testify/require"
)

// errNoTests says that a folder proves nothing.
var errNoTests = errors.New("no tests")

// outcome is one Rego test, or one case of a test that has cases.
type outcome struct {
	name string // the rule, and the case after a slash
	at   string // file:line
	err  error  // nil when it passed
}

// runFolder compiles the policy in dir strictly and runs its tests. uncovered lists the lines of the
// policy, tests aside, that no test reached.
func runFolder(dir string) (outcomes []outcome, uncovered []string, err error) {
	modules, store, err := tester.Load([]string{dir}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("load %s: %w", dir, err)
	}
	coverage := cover.New()
	compiler := ast.NewCompiler().WithStrict(true).WithEnablePrintStatements(true)
	results, err := tester.NewRunner().
		SetCompiler(compiler).SetStore(store).SetModules(modules).SetCoverageQueryTracer(coverage).
		SetCoverageRuns(nil).RaiseBuiltinErrors(true).
		RunTests(context.Background(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("compile %s: %w", dir, err)
	}
	for r := range results {
		outcomes = append(outcomes, outcomesOf(r)...)
	}
	if len(outcomes) == 0 {
		return nil, nil, fmt.Errorf("%s: %w", dir, errNoTests)
	}
	slices.SortFunc(outcomes, func(a, b outcome) int { return strings.Compare(a.name, b.name) })
	for file, report := range coverage.Report(modules).Files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		for _, r := range report.NotCovered {
			uncovered = append(uncovered, fmt.Sprintf("%s:%d", file, r.Start.Row))
		}
	}
	slices.Sort(uncovered)
	return outcomes, slices.Compact(uncovered), nil
}

func outcomesOf(r *tester.Result) []outcome {
	base := outcome{name: r.Package + "." + r.Name, at: fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)}
	switch {
	case r.Error != nil:
		base.err = r.Error
	case r.Skip:
		base.err = errors.New("skipped; a test that does not run proves nothing")
	case r.Fail:
		base.err = errors.New("failed")
	}
	if len(r.SubResults) == 0 {
		return []outcome{base}
	}
	var out []outcome
	failed := false
	for path, sub := range r.SubResults.Iter {
		o := outcome{name: base.name + "/" + strings.Join(path, "/"), at: base.at}
		if sub.Fail {
			o.err = errors.New("failed")
			failed = true
		}
		out = append(out, o)
	}
	if base.err != nil && !failed {
		out = append(out, base)
	}
	return out
}

func TestPolicies(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	require.Subset(t, folders, []string{"starter", "roles", "fenced_agent"})
	for _, dir := range folders {
		t.Run(dir, func(t *testing.T) {
			outcomes, uncovered, err := runFolder(dir)
			require.NoError(t, err)
			for _, o := range outcomes {
				t.Run(o.name, func(t *testing.T) {
					require.NoError(t, o.err, o.at)
				})
			}
			require.Empty(t, uncovered, "no test reaches these lines")
		})
	}
}

// The files read as opa fmt would write them.
func TestFormat(t *testing.T) {
	files, err := filepath.Glob("*/*.rego")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			formatted, err := format.Source(file, text)
			require.NoError(t, err)
			require.Equal(t, string(formatted), string(text))
		})
	}
}

// What runs the policies must itself fail when there is nothing to run or something is wrong.
func TestRunFolder(t *testing.T) {
	const gate = "package verbgate.gate\n\ndefault decision := false\n\ndecision if input.verb == \"get\"\n"
	test := func(body string) string {
		return "package verbgate.gate_test\n\nimport data.verbgate.gate\n\n" + body + "\n"
	}
	cases := []struct {
		name      string
		files     map[string]string
		err       string   // of the folder
		failed    []string // name and place of failing tests
		uncovered []string // base names
	}{
		{name: "OK", files: map[string]string{
			"gate.rego":      gate,
			"gate_test.rego": test(`test_get if gate.decision with input as {"verb": "get"}`) + "\ntest_other if not gate.decision with input as {}\n",
		}},
		{name: "ErrEmptyFolder", err: "no tests"},
		{name: "ErrNoTests", files: map[string]string{"gate.rego": gate}, err: "no tests"},
		{name: "ErrDoesNotCompile", files: map[string]string{"gate.rego": "package verbgate.gate\n\ndecision := nowhere\n"}, err: "gate.rego:3"},
		{name: "ErrNotStrict", err: "gate.rego:5", files: map[string]string{
			"gate.rego":      "package verbgate.gate\n\nimport data.unused\n\ndecision if { x := 1; true }\n",
			"gate_test.rego": test(`test_get if gate.decision with input as {"verb": "get"}`),
		}},
		{name: "ErrFailingTest", failed: []string{"data.verbgate.gate_test.test_put gate_test.rego:5"}, files: map[string]string{
			"gate.rego":      gate,
			"gate_test.rego": test(`test_put if gate.decision with input as {"verb": "put"}`) + "\ntest_get if gate.decision with input as {\"verb\": \"get\"}\n",
		}},
		{name: "ErrFailingCase", failed: []string{"data.verbgate.gate_test.test_verbs/put gate_test.rego:5"}, files: map[string]string{
			"gate.rego":      gate,
			"gate_test.rego": test("test_verbs[verb] if {\n\tsome verb in [\"get\", \"put\"]\n\tgate.decision with input as {\"verb\": verb}\n}"),
		}},
		{name: "ErrSkippedTest", failed: []string{"data.verbgate.gate_test.todo_test_put gate_test.rego:5"}, files: map[string]string{
			"gate.rego":      gate,
			"gate_test.rego": test(`todo_test_put if gate.decision with input as {"verb": "put"}`) + "\ntest_get if gate.decision with input as {\"verb\": \"get\"}\n\ntest_put if not gate.decision with input as {}\n",
		}},
		{name: "ErrUncovered", uncovered: []string{"gate.rego:5"}, files: map[string]string{
			"gate.rego":      "package verbgate.gate\n\ndefault decision := false\n\ndecision if input.verb == \"put\"\n",
			"gate_test.rego": test("test_other if { x := gate.decision with input as {}; x == false }"),
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			outcomes, uncovered, err := runFolder(dir)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var failed []string
			for _, o := range outcomes {
				if o.err != nil {
					failed = append(failed, o.name+" "+filepath.Base(o.at))
				}
			}
			require.Equal(t, c.failed, failed)
			for i := range uncovered {
				uncovered[i] = filepath.Base(uncovered[i])
			}
			require.Equal(t, c.uncovered, uncovered)
		})
	}
}
