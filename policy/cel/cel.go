// Package cel runs the packs' checks on the params of a call (dispatch.md 5).
//
// A check is a CEL expression in a pack's manifest that is true when the params are fine. Compile
// reads the checks of all manifests once, each in an environment typed by the verb it applies to, so
// that a misspelt param, a rule that is not boolean, a pattern that does not parse, or a rule that
// could take long refuses the start and not a call. Set.Check then runs them.
//
// What a rule may read: params (by member, as the manifest declares them), token (namespace,
// explicit, read, actor.kind, actor.id, actor.groups, actor.claims), verb, and now, the time at which
// the operation is judged. The language is CEL's standard library and nothing beside it.
//
// How params look to a rule: string and uuid are strings, integer an int, number a double, boolean a
// bool, datetime a timestamp, array<T> a list of those, array a list, object a map, any whatever it
// is. Inside arrays, objects and any a number is an int if it fits, else a uint, else a double. An
// optional param is read after has(params.x); reading one that was not given fails the check. Null is
// a value, as it is for policies: has(params.x) is true for it, and only nullable params (which
// compare with null) and any can hold it.
//
// What the package does not do: it resolves no params (packs.Verb.Resolve does, before), judges no
// rights (the gate does, after), and reads no clock.
//
// Invariants. Only true passes: a check that is false, fails, panics or is cut short refuses. No
// integer is ever rounded to pass a check: a rule that reads a value with a number that fits none of
// CEL's types refuses, one that only asks whether it is there or how many parts it has does not look at
// them. No error holds a param's value or the engine's own text.
package cel

import (
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// Config bounds the rules. Fields that are zero take the default.
type Config struct {
	// MaxCost is the largest estimated cost of one rule, in CEL's units (20 to 40 ns each), over the
	// sizes the manifest allows. The default is about a tenth of a second.
	MaxCost uint64
	// MaxRuleSize is the largest number of characters of a rule.
	MaxRuleSize int
	// MaxDepth is how deep a rule may nest.
	MaxDepth int
	// MaxComprehensions is how deep all, exists, map and filter may nest in one another.
	MaxComprehensions int
	// MaxRegexProgram is the largest compiled size of a pattern.
	MaxRegexProgram int
}

// The defaults of Config.
const (
	DefaultMaxCost           = 4_000_000
	DefaultMaxRuleSize       = 8 << 10
	DefaultMaxDepth          = 64
	DefaultMaxComprehensions = 2
	DefaultMaxRegexProgram   = 1000
)

func (c *Config) setDefaults() error {
	if c.MaxCost == 0 {
		c.MaxCost = DefaultMaxCost
	}
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"MaxRuleSize", &c.MaxRuleSize, DefaultMaxRuleSize},
		{"MaxDepth", &c.MaxDepth, DefaultMaxDepth},
		{"MaxComprehensions", &c.MaxComprehensions, DefaultMaxComprehensions},
		{"MaxRegexProgram", &c.MaxRegexProgram, DefaultMaxRegexProgram},
	} {
		if *f.value < 0 {
			return fmt.Errorf("cel: %s is %d; it must be positive, or 0 for the default", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	return nil
}

// Set holds the compiled checks of all packs. It does not change and is safe for concurrent use.
type Set struct {
	verbs map[string][]check // in the manifest's order
}

// Compile compiles the checks of manifests that packs.Manifest.Validate accepts. The error joins
// every problem, each with file, line and column where the check has them, else with the pack, the
// check and the place in the rule.
func Compile(manifests []packs.Manifest, cfg Config) (*Set, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	set := &Set{verbs: map[string][]check{}}
	var errs []error
	for i := range manifests {
		m := &manifests[i]
		for _, v := range m.Verbs {
			if _, twice := set.verbs[v.Name]; twice {
				errs = append(errs, fmt.Errorf("pack %s: the verb %s is declared twice; rename one", m.Name, v.Name))
			}
		}
		errs = append(errs, set.compilePack(m, cfg)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, nil
}

func (s *Set) compilePack(m *packs.Manifest, cfg Config) []error {
	var found problems
	for i := range m.Checks {
		for _, name := range m.Checks[i].Verbs {
			if m.Verb(name) == nil {
				found.add(problem{pack: m.Name, check: &m.Checks[i], text: fmt.Sprintf("names the verb %s, which the pack does not declare; declare it or correct the name", name)})
			}
		}
	}
	for i := range m.Verbs {
		v := &m.Verbs[i]
		s.verbs[v.Name] = nil
		var c *compiler // made for the first check: most verbs of some packs have none
		for j := range m.Checks {
			ck := &m.Checks[j]
			if !appliesTo(ck, v.Name) {
				continue
			}
			if c == nil {
				var err error
				if c, err = newCompiler(m.Name, v, cfg, &found); err != nil {
					return append(found.errors(), err)
				}
			}
			c.compile(ck)
		}
		if c != nil {
			s.verbs[v.Name] = c.checks
		}
	}
	return found.errors()
}

func appliesTo(c *packs.Check, verb string) bool {
	if len(c.Verbs) == 0 {
		return true
	}
	for _, v := range c.Verbs {
		if v == verb {
			return true
		}
	}
	return false
}
