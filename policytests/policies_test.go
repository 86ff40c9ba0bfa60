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
	"github.com/open-policy-agent/opa/v1/topdown"
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

// report is what running the tests of a policy tells of it.
type report struct {
	outcomes  []outcome
	uncovered []string        // lines of the policy, tests aside, that no test reached
	judged    map[string]docs // by test: the documents it had judged
}

// docs are input documents, by their text.
type docs map[string]ast.Value

// listener hears the tests for their coverage, and for the documents they have judged.
type listener struct {
	*cover.Cover
	test   string
	judged map[string]docs
}

func (l *listener) TraceEvent(e topdown.Event) {
	if rule, ok := e.Node.(*ast.Rule); ok && e.Op == topdown.EnterOp {
		if name := rule.Ref().GroundPrefix().String(); strings.Contains(name, ".test_") {
			l.test = name
		}
	}
	if in := e.Input(); in != nil {
		if l.judged[l.test] == nil {
			l.judged[l.test] = docs{}
		}
		l.judged[l.test][in.String()] = in.Value
	}
	l.Cover.TraceEvent(e)
}

// runFolder compiles the policy in dir strictly and runs its tests.
func runFolder(dir string) (*report, error) {
	modules, store, err := tester.Load([]string{dir}, nil)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	coverage := &listener{Cover: cover.New(), judged: map[string]docs{}}
	compiler := ast.NewCompiler().WithStrict(true).WithEnablePrintStatements(true)
	results, err := tester.NewRunner().
		SetCompiler(compiler).SetStore(store).SetModules(modules).SetCoverageQueryTracer(coverage).
		SetParallel(1).RaiseBuiltinErrors(true).
		RunTests(context.Background(), nil)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", dir, err)
	}
	out := &report{judged: coverage.judged}
	for r := range results {
		out.outcomes = append(out.outcomes, outcomesOf(r)...)
	}
	if len(out.outcomes) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, errNoTests)
	}
	slices.SortFunc(out.outcomes, func(a, b outcome) int { return strings.Compare(a.name, b.name) })
	for file, lines := range coverage.Report(modules).Files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		for _, r := range lines.NotCovered {
			out.uncovered = append(out.uncovered, fmt.Sprintf("%s:%d", file, r.Start.Row))
		}
	}
	slices.Sort(out.uncovered)
	out.uncovered = slices.Compact(out.uncovered)
	return out, nil
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
			r, err := runFolder(dir)
			require.NoError(t, err)
			for _, o := range r.outcomes {
				t.Run(o.name, func(t *testing.T) {
					require.NoError(t, o.err, o.at)
				})
			}
			require.Empty(t, r.uncovered, "no test reaches these lines")
			require.Empty(t, misjudged(t, r), "these tests judge what their names do not say")
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
			r, err := runFolder(dir)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var failed []string
			for _, o := range r.outcomes {
				if o.err != nil {
					failed = append(failed, o.name+" "+filepath.Base(o.at))
				}
			}
			require.Equal(t, c.failed, failed)
			for i := range r.uncovered {
				r.uncovered[i] = filepath.Base(r.uncovered[i])
			}
			require.Equal(t, c.uncovered, r.uncovered)
		})
	}
}
