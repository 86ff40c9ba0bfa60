package cel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// maxMessage is how long a computed message may be, in bytes before escaping.
const maxMessage = 1024

// Check runs the checks of in.Verb in the manifest's order over in.Params, which packs.Verb.Resolve
// must have accepted. It returns nil when all hold, and when the verb's manifest has none. A verb of
// no compiled manifest is refused, so the zero Set refuses every call.
//
// The error is otherwise a *packs.CheckError for the first that does not hold. Its Err is nil when the check
// said no; otherwise the check could not be evaluated or was cut short, and Err, which holds neither
// values nor the engine's text, says why. When ctx ended, errors.Is finds its error.
func (s *Set) Check(ctx context.Context, in *policy.Input) error {
	checks, compiled := s.verbs[in.Verb]
	if !compiled {
		return fmt.Errorf("cel: the verb %q is in none of the compiled manifests", in.Verb)
	}
	if len(checks) == 0 {
		return nil
	}
	vars := &variables{in: in}
	for i := range checks {
		if err := checks[i].run(ctx, vars); err != nil {
			return err
		}
	}
	return nil
}

// run returns nil or a *packs.CheckError.
func (c *check) run(ctx context.Context, vars *variables) (err error) {
	defer func() {
		if v := recover(); v != nil { // its value may be a param's
			err = refusal(c.name, fmt.Errorf("panic of type %T", v))
		}
	}()
	out, err := c.rule.eval(ctx, vars)
	if err != nil {
		return refusal(c.name, err)
	}
	holds, ok := out.(types.Bool)
	if !ok { // Compile refuses such a rule
		return refusal(c.name, errUnexpected)
	}
	if holds == types.True {
		return nil
	}
	if c.messageRule == nil {
		return &packs.CheckError{Check: c.name, Message: c.message}
	}
	out, err = c.messageRule.eval(ctx, vars)
	text, ok := out.(types.String)
	if err != nil || !ok {
		if err == nil {
			err = errUnexpected
		}
		return &packs.CheckError{
			Check: c.name, Message: "the params do not meet this check, and its message could not be computed",
			Err: fmt.Errorf("compute the message: %w", err),
		}
	}
	return &packs.CheckError{Check: c.name, Message: plainText(string(text))}
}

// eval evaluates one expression. Its errors are ours alone.
func (r *rule) eval(ctx context.Context, vars *variables) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("not evaluated: %w", err)
	}
	if err := r.scan(vars.in); err != nil {
		return nil, err
	}
	var out ref.Val
	var err error
	if r.loops {
		out, _, err = r.program.ContextEval(ctx, vars)
		// An expression that was interrupted may still have a value: x || true has. It counts as
		// cut short all the same.
		if ended := ctx.Err(); ended != nil {
			return nil, fmt.Errorf("cut short: %w", ended)
		}
	} else {
		out, _, err = r.program.Eval(vars)
	}
	if err != nil {
		return nil, classify(err)
	}
	return out, nil
}

// scan looks through the values that the rule reads, for what no rule may see.
func (r *rule) scan(in *policy.Input) error {
	for _, s := range r.scans {
		// A param that is null here or absent has no parts; the rule's own reading deals with it.
		if value := in.Params[s.name]; value != nil {
			if err := scan(s.kind, value, 1); err != nil {
				return &valueError{what: "the param " + s.name, err: err}
			}
		}
	}
	if r.claims {
		if err := scan(packs.Object, in.Token.Actor.Claims, 1); err != nil {
			return &valueError{what: "token.actor.claims", err: err}
		}
	}
	return nil
}

// classify replaces the engine's error, whose text may quote a param, by one that does not.
func classify(err error) error {
	var absent *absentError
	var bad *valueError
	switch {
	case errors.As(err, &absent):
		return absent
	case errors.As(err, &bad):
		return bad
	}
	for _, known := range []error{errNumber, errTime, errUnexpected} {
		if errors.Is(err, known) {
			return known
		}
	}
	text := err.Error()
	for _, class := range []string{
		"no such key", "no such overload", "index out of bounds", "division by zero", "modulus by zero",
		"integer overflow", "timestamp overflow", "duration overflow", "type conversion error", "internal error",
	} {
		if strings.Contains(text, class) {
			return errors.New(class)
		}
	}
	if strings.HasPrefix(text, "error parsing regexp") || strings.Contains(text, "regex") {
		return errors.New("a pattern does not compile or is too large")
	}
	return errors.New("evaluation failed")
}

// refusal words for the caller why a check did not come to an answer.
func refusal(name string, err error) *packs.CheckError {
	message := "the check could not be evaluated on these params, so the call is refused"
	var absent *absentError
	var bad *valueError
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		message = "the check was cut short, so the call is refused"
	case errors.As(err, &absent):
		message = "the check needs the param " + absent.param + ", which was not given"
	case errors.As(err, &bad) && errors.Is(err, errNumber):
		message = "the check cannot take a number in " + bad.what + " exactly, so the call is refused; give a smaller or shorter number"
	case errors.As(err, &bad):
		message = "the check could not read " + bad.what + ", so the call is refused"
	}
	return &packs.CheckError{Check: name, Message: message, Err: err}
}

// plainText makes a message one a terminal and a log can show: control, bidi and other invisible
// characters are escaped, and it is cut at maxMessage bytes.
func plainText(s string) string {
	cut := len(s) > maxMessage
	if cut {
		s = strings.ToValidUTF8(s[:maxMessage], "")
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	if cut {
		b.WriteString("…")
	}
	return b.String()
}

// variables shows an input to the engine without a map made for each call.
type variables struct{ in *policy.Input }

var _ cel.Activation = (*variables)(nil)

// ResolveName implements the engine's activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case varParams:
		return v.in.Params, true
	case varToken:
		return &v.in.Token, true
	case varVerb:
		return types.String(v.in.Verb), true
	case varNow:
		return types.Timestamp{Time: v.in.Context.Time}, true
	}
	return nil, false
}

// Parent implements the engine's activation.
func (v *variables) Parent() interpreter.Activation { return nil }
