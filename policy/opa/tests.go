package opa

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
)

// runTests runs the policy's own tests with OPA's tester, under the same capabilities and the same
// schema as the policy. No test at all is a failure: a renamed folder must not look like success.
func (g *Gate) runTests(ctx context.Context, b *loaded) error {
	store, err := newStore(b.data)
	if err != nil {
		return err
	}
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return err
	}
	defer store.Abort(ctx, txn)
	modules := make(map[string]*ast.Module, len(b.modules)+len(b.tests))
	maps.Copy(modules, b.modules)
	maps.Copy(modules, b.tests)
	set, err := schemas()
	if err != nil {
		return err
	}
	compiler := ast.NewCompiler().WithCapabilities(g.caps).WithSchemas(set).
		WithPathConflictsCheck(storage.NonEmpty(ctx, store, txn))
	results, err := tester.NewRunner().
		SetCompiler(compiler).
		SetStore(store).
		SetModules(modules).
		RaiseBuiltinErrors(true).
		RunTests(ctx, txn)
	if err != nil {
		return err
	}
	ran := 0
	var failed []Problem
	for r := range results {
		if r == nil || r.Skip {
			continue
		}
		ran++
		if r.Pass() {
			continue
		}
		p := Problem{Message: fmt.Sprintf("test %s failed", r.Name)}
		if r.Error != nil {
			p.Message = fmt.Sprintf("test %s: %v", r.Name, r.Error)
		}
		if r.Location != nil {
			p.File, p.Line, p.Column = strings.TrimPrefix(r.Location.File, "/"), r.Location.Row, r.Location.Col
		}
		failed = append(failed, p)
	}
	if len(failed) > 0 {
		slices.SortFunc(failed, cmpProblem)
		return &LoadError{Problems: failed, Err: fmt.Errorf("%d of %d policy tests failed", len(failed), ran)}
	}
	if ran == 0 {
		return fmt.Errorf("its tests were asked for and it has none; add a *_test.rego file with test_ rules")
	}
	return nil
}
