package cel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"

	"github.com/verbgate/verbgate/packs"
)

// problem is one thing that is wrong with a check for one verb.
type problem struct {
	pack    string
	check   *packs.Check
	verb    string // "" when it is wrong whatever the verb
	message bool   // in message_rule, not in rule
	line    int    // in the text, from 1; 0 when there is no place
	column  int    // from 1, in characters
	text    string
}

// problems collects them and says once what is wrong for several verbs.
type problems struct{ list []problem }

func (ps *problems) add(p problem) { ps.list = append(ps.list, p) }

func (ps *problems) errors() []error {
	type key struct {
		check        *packs.Check
		message      bool
		line, column int
		text         string
	}
	var order []key
	verbs := map[key][]string{}
	packNames := map[key]string{}
	for _, p := range ps.list {
		k := key{p.check, p.message, p.line, p.column, p.text}
		if _, seen := packNames[k]; !seen {
			order = append(order, k)
			packNames[k] = p.pack
		}
		if p.verb != "" && !slices.Contains(verbs[k], p.verb) {
			verbs[k] = append(verbs[k], p.verb)
		}
	}
	errs := make([]error, 0, len(order))
	for _, k := range order {
		p := problem{pack: packNames[k], check: k.check, message: k.message, line: k.line, column: k.column, text: k.text}
		errs = append(errs, errors.New(p.describe(verbs[k])))
	}
	return errs
}

// describe words a problem: file:line:column first where the check was read from a file, else the
// pack and check first and the place in the rule after.
func (p *problem) describe(verbs []string) string {
	var b strings.Builder
	line, column := p.line, p.column
	if p.check.File != "" {
		startLine, startColumn := p.check.Line, p.check.Column
		if p.message {
			startLine, startColumn = p.check.MessageLine, p.check.MessageColumn
		}
		// Without a place in the text the problem is where the text starts.
		line, column = max(line, 1)+max(startLine, 1)-1, max(column, 1)+max(startColumn, 1)-1
		fmt.Fprintf(&b, "%s:%d:%d: ", p.check.File, line, column)
	}
	fmt.Fprintf(&b, "pack %s, check %q", p.pack, p.check.Name)
	switch len(verbs) {
	case 0:
	case 1:
		fmt.Fprintf(&b, " (verb %s)", verbs[0])
	default:
		fmt.Fprintf(&b, " (verbs %s)", strings.Join(verbs, ", "))
	}
	if p.message {
		b.WriteString(", message_rule")
	}
	b.WriteString(": ")
	if p.check.File == "" && line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", line, column)
	}
	b.WriteString(p.text)
	return b.String()
}

// at turns a place of the engine's, whose columns count from 0, into a problem's.
func (p problem) at(loc common.Location) problem {
	if loc != nil && loc.Line() > 0 {
		p.line, p.column = loc.Line(), loc.Column()+1
	}
	return p
}

// issues adds what the engine found, in its order.
func (ps *problems) issues(p problem, iss *cel.Issues) {
	for _, e := range iss.Errors() {
		p.text = plainMessage(e.Message)
		ps.add(p.at(e.Location))
	}
}

var (
	internalName = regexp.MustCompile(`'(@?[!_?\[\]a-z:*/%+<>=&|-]+)'`)
	lineBreaks   = regexp.MustCompile(`\s*[\r\n]+\s*`)
)

// plainMessage writes operators as they are in a rule ("_<_" is <) and keeps the text on one line.
func plainMessage(message string) string {
	message = internalName.ReplaceAllStringFunc(message, func(name string) string {
		if strings.Trim(name, "'") == operators.Conditional {
			return "'?:'"
		}
		if plain, ok := operators.FindReverse(strings.Trim(name, "'")); ok && plain != "" {
			return "'" + plain + "'"
		}
		return name
	})
	return lineBreaks.ReplaceAllString(message, " ")
}
