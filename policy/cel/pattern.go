package cel

import (
	"fmt"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
)

// patternProblem says what is wrong with the pattern of a matches call, or "". Patterns are literals:
// one that comes from a caller could be dear, and would be compiled anew on every call.
func patternProblem(e ast.Expr, limit int) string {
	text, ok := literal(e)
	if !ok {
		return "the pattern of matches must be a string literal, so that its cost is known when the pack is loaded"
	}
	size, err := programSize(text)
	switch {
	case err != nil:
		return "the pattern does not parse: " + err.Error()
	case size > limit:
		return fmt.Sprintf("the pattern compiles to %d instructions, more than the limit of %d; simplify it", size, limit)
	}
	return ""
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().Value().(string)
	return s, ok
}

// programSize is the number of instructions a pattern compiles to. cel-go has a function of that name
// which panics on repetitions such as {3}: it leaves out the simplification.
func programSize(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}
