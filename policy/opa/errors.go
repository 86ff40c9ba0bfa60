package opa

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// LoadError says why a policy was not activated. It names files, lines and columns and is meant for
// whoever runs the server.
type LoadError struct {
	Policy   string    // where the policy is
	Problems []Problem // at least one
	Err      error     // the underlying error
}

// Problem is one thing that is wrong with a policy. File is relative to the policy and may be "";
// Line and Column count from 1, or are 0.
type Problem struct {
	File         string
	Line, Column int
	Message      string
}

func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

func (e *LoadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s was not activated: ", e.Policy)
	if len(e.Problems) == 1 {
		b.WriteString(e.Problems[0].String())
		return b.String()
	}
	fmt.Fprintf(&b, "%d problems", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Unwrap returns the underlying error.
func (e *LoadError) Unwrap() error { return e.Err }

// loadError turns what the engine reports into problems with a way out, in a stable order.
func loadError(where string, caps *ast.Capabilities, err error) *LoadError {
	out := &LoadError{Policy: where, Err: err}
	var list ast.Errors
	var one *ast.Error
	var several loader.Errors
	switch {
	case errors.As(err, &out):
		out.Policy = where
		return out
	case errors.As(err, &list):
		for _, e := range list {
			out.Problems = append(out.Problems, problem(e, caps))
		}
	case errors.As(err, &one):
		out.Problems = append(out.Problems, problem(one, caps))
	case errors.As(err, &several):
		for _, e := range several {
			out.Problems = append(out.Problems, Problem{Message: e.Error()})
		}
	default:
		out.Problems = []Problem{{Message: err.Error()}}
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return cmpProblem(a, b)
	})
	return out
}

func cmpProblem(a, b Problem) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	if a.Column != b.Column {
		return a.Column - b.Column
	}
	return strings.Compare(a.Message, b.Message)
}

func problem(e *ast.Error, caps *ast.Capabilities) Problem {
	p := Problem{Message: e.Message}
	if e.Location != nil {
		p.File = strings.TrimPrefix(e.Location.File, "/")
		p.Line, p.Column = e.Location.Row, e.Location.Col
	}
	if e.Details != nil {
		p.Message += details(e.Details.Lines())
	}
	if name, ok := strings.CutPrefix(e.Message, "undefined function "); ok && isShut(caps, name) {
		p.Message += "; this built-in function is withheld from policies unless the configuration allows it by name"
	}
	// A function named after "with … as" is no call, so the engine takes a withheld one for a variable.
	name, ok := strings.CutPrefix(e.Message, "var ")
	if name, unsafe := strings.CutSuffix(name, " is unsafe"); ok && unsafe && slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool {
		return strings.HasPrefix(b.Name, name+".") && isShut(caps, b.Name)
	}) {
		p.Message += "; if a built-in function is meant: some of " + name + ". are withheld from policies unless the configuration allows them by name"
	}
	return p
}

// details puts what the engine says beyond a message on one line, without the excerpt of the source
// and the caret under it.
func details(lines []string) string {
	var kept []string
	for _, line := range lines {
		line = strings.Join(strings.Fields(line), " ")
		if strings.Trim(line, "^") == "" {
			kept = kept[:max(0, len(kept)-1)]
			continue
		}
		kept = append(kept, line)
	}
	if len(kept) == 0 {
		return ""
	}
	return "; " + strings.Join(kept, "; ")
}

// evalError is what went wrong in an evaluation, for the log. The engine's own messages may quote
// values of the input, which no log line may hold, so only those known to be free of them are kept.
type evalError struct {
	code, place, what string
}

func (e *evalError) Error() string {
	s := e.code
	if e.place != "" {
		s = e.place + ": " + s
	}
	if e.what != "" {
		s += ": " + e.what
	}
	return s
}

func newEvalError(err error) *evalError {
	var e *topdown.Error
	if !errors.As(err, &e) {
		return &evalError{code: fmt.Sprintf("evaluation failed (%T)", err)}
	}
	out := &evalError{code: e.Code}
	if e.Location != nil {
		out.place = fmt.Sprintf("%s:%d:%d", strings.TrimPrefix(e.Location.File, "/"), e.Location.Row, e.Location.Col)
	}
	switch e.Code {
	case topdown.ConflictErr, topdown.WithMergeErr, topdown.CancelErr:
		out.what = e.Message // names of rules only
	default:
		// The message starts with the name of the function.
		name, _, _ := strings.Cut(e.Message, ":")
		if slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool { return b.Name == name }) {
			out.what = name
		}
	}
	return out
}

// panicError describes a panic by its type and where it happened. The value may quote the input.
func panicError(value any) *evalError {
	e := &evalError{code: fmt.Sprintf("panic (%T)", value)}
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			e.place = fmt.Sprintf("%s:%d", frame.Function, frame.Line)
			return e
		}
		if !more {
			return e
		}
	}
}
