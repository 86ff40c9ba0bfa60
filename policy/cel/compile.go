package cel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/verbgate/verbgate/packs"
)

// interruptEvery is how many steps of a comprehension run between two looks at the caller's context.
const interruptEvery = 100

// check is one compiled check of one verb.
type check struct {
	name        string
	rule        rule
	message     string
	messageRule *rule // in place of message, or nil
}

// scanned is a param that scan looks through.
type scanned struct {
	name string
	kind packs.Type
}

// rule is one compiled expression.
type rule struct {
	program cel.Program
	loops   bool // it holds a comprehension, so it looks at the caller's context
	// scans are the params with elements or members whose value it reads and that no rule which ran
	// before it looked through: they are looked through first.
	scans  []scanned
	claims bool // it reads token.actor.claims, which are looked through as well
}

// compiler compiles the checks of one verb.
type compiler struct {
	pack   string
	verb   *packs.Verb
	cfg    Config
	env    *cel.Env
	found  *problems
	checks []check
}

func newCompiler(pack string, v *packs.Verb, cfg Config, found *problems) (*compiler, error) {
	p, paramsType, err := newProvider(v)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", pack, err)
	}
	env, err := cel.NewEnv(
		cel.CustomTypeProvider(p),
		cel.CustomTypeAdapter(values),
		cel.Variable(varParams, paramsType),
		cel.Variable(varToken, types.NewObjectType(typeToken)),
		cel.Variable(varVerb, cel.StringType),
		cel.Variable(varNow, cel.TimestampType),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.EnableErrorOnBadPresenceTest(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(cfg.MaxRuleSize),
		cel.ParserRecursionLimit(cfg.MaxDepth),
		cel.ExpressionNodeLimit(cfg.MaxRuleSize),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(cfg.MaxComprehensions),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("pack %s: verb %s: make the environment of its checks: %w", pack, v.Name, err)
	}
	return &compiler{pack: pack, verb: v, cfg: cfg, env: env, found: found}, nil
}

// compile adds one check, or what is wrong with it.
func (c *compiler) compile(ck *packs.Check) {
	at := problem{pack: c.pack, check: ck, verb: c.verb.Name}
	if (ck.Message == "") == (ck.MessageRule == "") {
		at.verb, at.text = "", "has neither or both of message and message_rule; keep one"
		c.found.add(at)
	}
	r, ok := c.expression(at, ck.Rule, types.BoolType, nil)
	out := check{name: ck.Name, rule: r, message: plainText(ck.Message)}
	if ck.MessageRule != "" {
		at.message = true
		m, fine := c.expression(at, ck.MessageRule, types.StringType, r.scans)
		out.messageRule, ok = &m, ok && fine
	}
	if ok {
		c.checks = append(c.checks, out)
	}
}

// expression compiles one expression of a check. at names the check, and tells a message_rule from a
// rule; scanned are the params that the check looked through before it.
func (c *compiler) expression(at problem, text string, want *types.Type, scanned []scanned) (rule, bool) {
	fail := func(p problem, format string, args ...any) (rule, bool) {
		p.text = fmt.Sprintf(format, args...)
		c.found.add(p)
		return rule{}, false
	}
	if strings.TrimSpace(text) == "" {
		return fail(at, "the rule is empty; write a CEL expression that is true when the params are fine")
	}
	parsed, iss := c.env.Parse(text)
	if iss.Err() != nil {
		c.found.issues(at, iss)
		return rule{}, false
	}
	read, claims, ok := c.inspect(at, parsed)
	if !ok {
		return rule{}, false
	}
	checked, iss := c.env.Check(parsed)
	if iss.Err() != nil {
		c.found.issues(at, iss)
		return rule{}, false
	}
	if got := checked.OutputType(); !got.IsExactType(want) {
		what := "a rule is a boolean that is true when the params are fine"
		if at.message {
			what = "a message_rule is a string"
		}
		return fail(at.at(start(checked)), "gives %s, not %s; %s", got, want, what)
	}
	cost, err := c.env.EstimateCost(checked, &estimator{verb: c.verb, cfg: c.cfg})
	if err != nil {
		return fail(at, "its cost cannot be estimated; simplify it")
	}
	if cost.Max > c.cfg.MaxCost {
		return fail(at, "may cost %d, more than the limit of %d; lower max_length or max_items of the params it reads, or simplify it", cost.Max, c.cfg.MaxCost)
	}
	loops := len(ast.MatchDescendants(ast.NavigateAST(checked.NativeRep()), ast.KindMatcher(ast.ComprehensionKind))) > 0
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops {
		options = append(options, cel.InterruptCheckFrequency(interruptEvery))
	}
	program, err := c.env.Program(checked, options...)
	if err != nil {
		return fail(at, "cannot be prepared: %s", plainMessage(err.Error()))
	}
	return rule{program: program, loops: loops, scans: c.toScan(read, scanned), claims: claims}, true
}

// inspect looks at what a parsed rule reads. params and token are read by member only, so that what
// is undeclared or secret cannot be reached round about, as by dyn(params), and their sizes are known.
// It returns the params whose value is looked into, and whether the claims are.
func (c *compiler) inspect(at problem, parsed *cel.Ast) (read []string, claims, ok bool) {
	tree := parsed.NativeRep()
	before := len(c.found.list)
	fail := func(e ast.Expr, format string, args ...any) {
		p := at.at(tree.SourceInfo().GetStartLocation(e.ID()))
		p.text = fmt.Sprintf(format, args...)
		c.found.add(p)
	}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree), ast.AllMatcher()) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			for _, name := range []string{e.AsComprehension().IterVar(), e.AsComprehension().IterVar2()} {
				if name == varParams || name == varToken || name == varVerb || name == varNow {
					fail(e, "%s is a variable already; give the element another name", name)
				}
			}
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == overloads.Matches && len(call.Args()) > 0 {
				pattern := call.Args()[len(call.Args())-1]
				if problem := patternProblem(pattern, c.cfg.MaxRegexProgram); problem != "" {
					fail(pattern, "%s", problem)
				}
			}
		case ast.IdentKind:
			name := strings.TrimPrefix(e.AsIdent(), ".")
			if name != varParams && name != varToken {
				continue
			}
			sel, field, ok := member(e)
			switch {
			case !ok:
				fail(e, "%s is read by member only; write %s.<name>", name, name)
			case name == varParams && c.readParam(at, sel, field, fail):
				if looksInto(sel) {
					read = append(read, field)
				}
			case name == varToken && field == "actor":
				of, name, ok := member(sel)
				if !ok {
					fail(sel, "token.actor is read by member only; write token.actor.<name>")
				}
				claims = claims || name == "claims" && looksInto(of)
			}
		}
	}
	return read, claims, len(c.found.list) == before
}

// looksInto reports whether a rule may meet the elements or members of what a selection reads. Testing
// that it is there, as has(params.x), and counting them, as size(params.x), meets none.
func looksInto(sel ast.NavigableExpr) bool {
	if sel.AsSelect().IsTestOnly() {
		return false
	}
	parent, ok := sel.Parent()
	return !ok || parent.Kind() != ast.CallKind || parent.AsCall().FunctionName() != overloads.Size
}

// toScan picks of the params that a rule reads those to look through: they may hold what no rule may
// see, and neither before nor the rule of an earlier check has met them. Messages of earlier checks
// do not count, for they are computed only where the call ends.
func (c *compiler) toScan(read []string, before []scanned) []scanned {
	var scans []scanned
	for _, name := range read {
		s := scanned{name, c.verb.Param(name).Type}
		if !hasParts(s.kind) || slices.Contains(scans, s) || slices.Contains(before, s) ||
			slices.ContainsFunc(c.checks, func(earlier check) bool { return slices.Contains(earlier.rule.scans, s) }) {
			continue
		}
		scans = append(scans, s)
	}
	return scans
}

func (c *compiler) readParam(at problem, sel ast.Expr, field string, fail func(ast.Expr, string, ...any)) bool {
	p := c.verb.Param(field)
	switch {
	case p == nil && field == "namespace":
		fail(sel, "the verb declares no param namespace; write token.namespace")
	case p == nil:
		names := make([]string, len(c.verb.Params))
		for i := range c.verb.Params {
			names[i] = c.verb.Params[i].Name
		}
		have := "the verb has no params"
		if len(names) > 0 {
			have = "the verb's params are " + strings.Join(names, ", ")
		}
		fail(sel, "reads the undeclared param %s; %s", field, have)
	case p.Sensitive && at.message:
		fail(sel, "a message must not read the sensitive param %s; say what is wrong without it", field)
	default:
		return true
	}
	return false
}

// member returns the selection that reads a member of e, if that is all e is used for.
func member(e ast.NavigableExpr) (ast.NavigableExpr, string, bool) {
	parent, ok := e.Parent()
	if !ok || parent.Kind() != ast.SelectKind {
		return nil, "", false
	}
	return parent, parent.AsSelect().FieldName(), true
}

// hasParts reports whether a value of the type may have elements or members.
func hasParts(t packs.Type) bool {
	_, list := t.Elem()
	return list || t == packs.Object || t == packs.Array || t == packs.Any
}

func start(a *cel.Ast) interface {
	Line() int
	Column() int
} {
	return a.NativeRep().SourceInfo().GetStartLocation(a.NativeRep().Expr().ID())
}
