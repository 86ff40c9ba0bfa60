package opa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// snapshot is one activated policy. It never changes: a new policy is a new snapshot with a store of
// its own, for writing to a store waits for its readers, and this one is read for as long as it lives.
type snapshot struct {
	revision string
	content  string // digest of the files it was made of
	at       time.Time
	query    rego.PreparedEvalQuery
	txn      storage.Transaction // one for all evaluations
}

// newSnapshot compiles and checks a policy and prepares its query. Compiling cannot be interrupted.
func newSnapshot(ctx context.Context, b *loaded, g *Gate) (*snapshot, error) {
	store, err := newStore(b.data)
	if err != nil {
		return nil, err
	}
	if wrap := g.wrapStore; wrap != nil {
		store = wrap(store)
	}
	store = faultStore{store}
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, err
	}
	compiler, err := g.compile(ctx, b.modules, store, txn)
	if err != nil {
		return nil, err
	}
	if err := checkEntrypoint(compiler, g.entrypoint); err != nil {
		return nil, err
	}
	if g.cfg.RunTests {
		if err := g.runTests(ctx, b); err != nil {
			return nil, err
		}
	}
	query, err := rego.New(
		rego.ParsedQuery(ast.NewBody(ast.NewExpr(ast.NewTerm(g.entrypoint)))),
		rego.Compiler(compiler),
		rego.Store(store),
		rego.Transaction(txn),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot{revision: b.revision, content: b.content, query: query, txn: txn}, nil
}

// newStore makes the store of a policy's data. The data is converted once, here: it may hold numbers
// the engine cannot bear, and reading it must not convert anything again.
func newStore(data map[string]any) (storage.Store, error) {
	value, err := ast.InterfaceToValue(data)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	obj, ok := value.(ast.Object)
	if !ok {
		return nil, errors.New("data: the root is not an object")
	}
	return inmem.NewFromASTObject(obj), nil
}

func (g *Gate) compile(ctx context.Context, modules map[string]*ast.Module, store storage.Store, txn storage.Transaction) (*ast.Compiler, error) {
	set, err := schemas()
	if err != nil {
		return nil, err
	}
	compiler := ast.NewCompiler().
		WithCapabilities(g.caps).
		WithSchemas(set).
		WithPathConflictsCheck(storage.NonEmpty(ctx, store, txn))
	if compiler.Compile(modules); compiler.Failed() {
		return nil, compiler.Errors
	}
	return compiler, nil
}

// checkEntrypoint refuses a policy in which the entry point can never have a value: a misspelt
// package would otherwise be found by the first call, as a deny.
func checkEntrypoint(compiler *ast.Compiler, ref ast.Ref) error {
	rules := compiler.GetRulesWithPrefix(ref)
	if slices.ContainsFunc(rules, func(r *ast.Rule) bool { return len(r.Head.Args) == 0 }) {
		return nil
	}
	if len(rules) > 0 {
		return fmt.Errorf("the entry point %s is a function; it must be a rule without arguments", ref)
	}
	parent := ref[:len(ref)-1]
	var packages, siblings []string
	for _, m := range compiler.Modules {
		packages = append(packages, m.Package.Path.String())
		if m.Package.Path.Equal(parent) {
			for _, r := range m.Rules {
				siblings = append(siblings, r.Head.Ref().String())
			}
		}
	}
	if len(siblings) > 0 {
		return fmt.Errorf("the entry point %s is not there: its package defines %s; define it, or name another entry point", ref, enumerate(siblings))
	}
	return fmt.Errorf("the entry point %s is not there: no rule of the policy defines it, the packages are %s; define it, or name another entry point", ref, enumerate(packages))
}

// enumerate lists names once each, in order, and not too many of them.
func enumerate(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 10 {
		names = append(slices.Clone(names[:10]), "…")
	}
	return strings.Join(names, ", ")
}

// storeError marks what the policy store itself reports: the only failure no caller can cause.
type storeError struct{ err error }

func (e *storeError) Error() string { return "policy store: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// faultStore marks the failures of a store, so that they are told apart by where they come from and
// not by what they look like. That something is not found is no failure.
type faultStore struct{ storage.Store }

func (s faultStore) Read(ctx context.Context, txn storage.Transaction, path storage.Path) (any, error) {
	v, err := s.Store.Read(ctx, txn, path)
	if err != nil && !storage.IsNotFound(err) && ctx.Err() == nil {
		return nil, &storeError{err}
	}
	return v, err
}
