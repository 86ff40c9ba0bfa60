package packs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate checks the manifest by itself (dispatch.md 9); what several packs must agree on is the
// dispatcher's to check. The error joins every problem, and each names the pack, the verb or check,
// the param, and the way out. It does not compile the checks' rules.
func (m Manifest) Validate() error {
	r := &report{where: "pack " + showName(m.Name)}
	r.add(nameProblem(m.Name, maxNamePart))
	if m.Name == "audit" || m.Name == "gate" { // a pack's topics begin with its name
		r.add("the topics of that name are the event store's; choose another name")
	}
	r.text("description", m.Description)
	m.validateRequires(r)

	verbs := seen{}
	for i := range m.Verbs {
		v := &m.Verbs[i]
		vr := r.at("verb " + showName(v.Name))
		vr.add(verbs.again(v.Name, "the verb is declared twice; remove one"))
		if nameProblem(m.Name, maxNamePart) == "" {
			vr.add(verbNameProblem(m.Name, v.Name))
		}
		v.validate(vr)
	}

	checks := seen{}
	for i := range m.Checks {
		c := &m.Checks[i]
		cr := r.at("check " + showName(c.Name))
		cr.add(checks.again(c.Name, "the check is declared twice; rename one"))
		m.validateCheck(cr, c)
	}

	topics := seen{}
	for _, topic := range m.Topics {
		tr := r.at("topic " + showName(topic))
		tr.add(topics.again(topic, "the topic is declared twice; remove one"))
		prefix, event, dotted := strings.Cut(topic, ".")
		if !dotted || prefix != m.Name {
			tr.addf("a topic is <pack>.<event>; begin it with %s.", m.Name)
			continue
		}
		tr.add(nameProblem(event, maxName))
	}
	m.validateSchema(r)
	return errors.Join(r.all()...)
}

func (m *Manifest) validateRequires(r *report) {
	names := seen{}
	for _, name := range m.Requires {
		rr := r.at("requires " + showName(name))
		rr.add(nameProblem(name, maxNamePart))
		rr.add(names.again(name, "the pack is named twice; remove one"))
		if name == m.Name {
			rr.add("a pack cannot require itself; remove it")
		}
	}
}

func (m *Manifest) validateCheck(r *report, c *Check) {
	// A dash may stand in a check's name: it is shown to people and never called.
	r.add(nameProblemAlso(c.Name, maxName, "-"))
	if strings.TrimSpace(c.Rule) == "" {
		r.add("the rule is empty; write a CEL expression that is true when the params are fine")
	}
	switch {
	case c.Message == "" && c.MessageRule == "":
		r.add("has neither message nor message_rule; say what the caller should do instead")
	case c.Message != "" && c.MessageRule != "":
		r.add("has both message and message_rule; keep one")
	}
	r.text("message", c.Message)
	verbs := seen{}
	for _, name := range c.Verbs {
		r.add(verbs.again(name, fmt.Sprintf("names the verb %s twice; remove one", showName(name))))
		if m.Verb(name) == nil {
			problem := fmt.Sprintf("names the verb %s, which the pack does not declare", showName(name))
			names := make([]string, len(m.Verbs))
			for i := range m.Verbs {
				names[i] = m.Verbs[i].Name
			}
			if near := closest(name, names); near != "" {
				problem += "; did you mean " + near + "?"
			} else {
				problem += "; declare it or correct the name"
			}
			r.add(problem)
		}
	}
}

func (m *Manifest) validateSchema(r *report) {
	tables := seen{}
	for _, table := range m.Schema.Tables {
		tr := r.at("table " + showName(table))
		tr.add(nameProblem(table, maxName))
		tr.add(tables.again(table, "the table is declared twice; remove one"))
		if strings.HasPrefix(table, "sqlite_") || strings.HasPrefix(table, "pg_") {
			tr.add("the prefix belongs to the database; choose another name")
		}
	}
	for i, script := range m.Schema.Migrations {
		if strings.TrimSpace(script) == "" {
			r.at(fmt.Sprintf("migration %d", i+1)).add("the script is empty; write the SQL it runs")
		}
	}
	switch {
	case len(m.Schema.Tables) > 0 && len(m.Schema.Migrations) == 0:
		r.add("the schema declares tables but no migration that makes them; add one")
	case len(m.Schema.Tables) == 0 && len(m.Schema.Migrations) > 0:
		r.add("the schema has migrations but declares no table; list every table they make")
	}
}

// report collects problems below one place of the manifest.
type report struct {
	where string
	errs  *[]error
}

func (r *report) all() []error {
	if r.errs == nil {
		return nil
	}
	return *r.errs
}

// at is the same report one step further down. Every report of a tree writes to one list.
func (r *report) at(step string) *report {
	if r.errs == nil {
		r.errs = new([]error)
	}
	return &report{where: r.where + ": " + step, errs: r.errs}
}

// add records a problem; "" is none.
func (r *report) add(problem string) {
	if problem == "" {
		return
	}
	if r.errs == nil {
		r.errs = new([]error)
	}
	*r.errs = append(*r.errs, errors.New(r.where+": "+problem))
}

func (r *report) addf(format string, args ...any) { r.add(fmt.Sprintf(format, args...)) }

func (r *report) text(what, text string) {
	if problem := plainText(text); problem != "" {
		r.add("the " + what + " " + problem)
	}
}

// seen remembers names, to find the ones that come twice.
type seen map[string]bool

func (s seen) again(name, problem string) string {
	if s[name] {
		return problem
	}
	s[name] = true
	return ""
}

func oneOf[T ~string](value T, all ...T) bool { return slices.Contains(all, value) }
