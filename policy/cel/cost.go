package cel

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/verbgate/verbgate/packs"
)

// What a token is taken to hold at most. It comes from the connection, not from the caller's params,
// so nothing enforces these.
const (
	tokenStrings = 256 // bytes of a namespace, group or name
	tokenItems   = 1000
)

// The factors by which a cost grows with a string's length, in CEL's units of about 50 ns. CEL itself
// takes counting a string's characters for free and guesses at a pattern's work from its text.
const (
	countFactor = 0.01
	matchFactor = 0.1
)

// estimator tells CEL's static cost estimate how large values can be. Resolve enforces these sizes
// on every call, at every depth of a param.
type estimator struct {
	verb *packs.Verb
	cfg  Config
}

// EstimateSize is the largest size of the value at a path: characters of a string, elements of a list
// or map.
func (e *estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) < 2 {
		return nil
	}
	switch path[0] {
	case varParams, "." + varParams:
		p := e.verb.Param(path[1])
		if p == nil {
			return nil
		}
		return sizeFor(node.Type(), p.LengthLimit(), p.ItemsLimit(), path[len(path)-1] == "@keys")
	case varToken, "." + varToken:
		return sizeFor(node.Type(), tokenStrings, tokenItems, path[len(path)-1] == "@keys")
	}
	return nil
}

func sizeFor(t *types.Type, length, items int, key bool) *checker.SizeEstimate {
	size := 1
	switch kind := t.Kind(); {
	case key || kind == types.StringKind || kind == types.BytesKind:
		size = length
	case kind == types.ListKind || kind == types.MapKind:
		size = items
	case t.IsAssignableType(types.NullType) || kind == types.DynKind || kind == types.AnyKind || kind == types.TypeParamKind:
		size = max(length, items) // it may be any of them
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(size)}
}

// EstimateCallCost replaces CEL's own guess where it is too low.
func (e *estimator) EstimateCallCost(_, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch overload {
	case overloads.SizeString, overloads.SizeStringInst:
		text := subject(target, args)
		return &checker.CallEstimate{CostEstimate: sizeOf(text).MultiplyByCostFactor(countFactor).Add(checker.FixedCostEstimate(1))}
	case overloads.Matches, overloads.MatchesString:
		text, pattern := subject(target, args), args[len(args)-1]
		program := e.cfg.MaxRegexProgram
		if pattern.Expr().Kind() == ast.LiteralKind {
			if s, ok := pattern.Expr().AsLiteral().Value().(string); ok {
				if n, err := types.RegexProgramSize(s); err == nil {
					program = n
				}
			}
		}
		length := sizeOf(text).Add(checker.FixedSizeEstimate(1))
		cost := length.Multiply(checker.FixedSizeEstimate(uint64(program))).MultiplyByCostFactor(matchFactor)
		if pattern.Expr().Kind() != ast.LiteralKind { // compiled for every call
			cost = cost.Add(sizeOf(pattern).MultiplyByCost(checker.FixedCostEstimate(10)))
		}
		return &checker.CallEstimate{CostEstimate: cost}
	}
	return nil
}

func subject(target *checker.AstNode, args []checker.AstNode) checker.AstNode {
	if target != nil {
		return *target
	}
	return args[0]
}

func sizeOf(node checker.AstNode) checker.SizeEstimate {
	if s := node.ComputedSize(); s != nil {
		return *s
	}
	return checker.UnknownSizeEstimate()
}
