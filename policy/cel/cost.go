package cel

import (
	"github.com/google/cel-go/checker"
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

// The factors by which a cost grows with a string's length, measured so that a unit is 20 to 40 ns
// everywhere. CEL itself takes counting a string's characters for free and guesses at a pattern's
// work from the length of its text.
const (
	countFactor    = 0.01
	containsFactor = 0.02 // linear: Go searches with SIMD and Rabin-Karp
	matchFactor    = 0.1
)

// deepCompare is the cost of comparing two values that may both be lists or maps. A whole request is
// at most 1 MiB, so over the elements of one list the sizes even out; nested in two, it is too dear.
const deepCompare = 1000

// numberString is the longest text of a number, time or duration.
const numberString = 40

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
	case overloads.IntToString, overloads.UintToString, overloads.DoubleToString, overloads.BoolToString,
		overloads.TimestampToString, overloads.DurationToString:
		size := checker.SizeEstimate{Min: 1, Max: numberString}
		return &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(1), ResultSize: &size}
	case overloads.ContainsString:
		both := sizeOf(subject(target, args)).Add(sizeOf(args[0]))
		return &checker.CallEstimate{CostEstimate: both.MultiplyByCostFactor(containsFactor).Add(checker.FixedCostEstimate(1))}
	case overloads.Equals, overloads.NotEquals:
		if mayHaveParts(args[0]) && mayHaveParts(args[1]) {
			cost := checker.FixedCostEstimate(deepCompare)
			if len(args[0].Path()) == 0 && len(args[1].Path()) == 0 {
				// Both are made by the rule, as by map, and may hold one large value many times.
				size := sizeOf(args[0])
				size.Max = min(size.Max, sizeOf(args[1]).Max)
				cost = cost.Add(size.MultiplyByCost(cost))
			}
			return &checker.CallEstimate{CostEstimate: cost}
		}
	case overloads.InList:
		if mayHaveParts(args[0]) && listOfParts(args[1]) {
			return &checker.CallEstimate{CostEstimate: sizeOf(args[1]).MultiplyByCost(checker.FixedCostEstimate(deepCompare))}
		}
	case overloads.Matches, overloads.MatchesString:
		program := e.cfg.MaxRegexProgram
		if pattern, ok := literal(args[len(args)-1].Expr()); ok {
			if n, err := programSize(pattern); err == nil {
				program = n
			}
		}
		length := sizeOf(subject(target, args)).Add(checker.FixedSizeEstimate(1))
		work := length.Multiply(checker.FixedSizeEstimate(uint64(program)))
		return &checker.CallEstimate{CostEstimate: work.MultiplyByCostFactor(matchFactor)}
	}
	return nil
}

func subject(target *checker.AstNode, args []checker.AstNode) checker.AstNode {
	if target != nil {
		return *target
	}
	return args[0]
}

func mayHaveParts(node checker.AstNode) bool { return partsKind(node.Type()) }

func listOfParts(node checker.AstNode) bool {
	t := node.Type()
	return t.Kind() != types.ListKind || partsKind(t.Parameters()[0])
}

func partsKind(t *types.Type) bool {
	switch t.Kind() {
	case types.ListKind, types.MapKind, types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	}
	return false
}

func sizeOf(node checker.AstNode) checker.SizeEstimate {
	if s := node.ComputedSize(); s != nil {
		return *s
	}
	return checker.UnknownSizeEstimate()
}
