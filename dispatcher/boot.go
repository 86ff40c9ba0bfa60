package dispatcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/packs"
)

// VerbCollision says that two packs register one verb.
type VerbCollision struct{ Verb, First, Second string }

func (e *VerbCollision) Error() string {
	return fmt.Sprintf("verb %s is registered by pack %s and by pack %s; leave one of the packs out or rename the verb", e.Verb, e.First, e.Second)
}

// table is what the boot checks make of a configuration.
type table struct {
	order     []*pack
	verbs     map[string]*verb
	catalogue []packs.Listing
	available string
	checks    Checker
}

// boot makes every check of dispatch.md 9 that needs nothing opened, and joins all problems.
func boot(cfg Config) (*table, error) {
	t := &table{verbs: map[string]*verb{}}
	var problems []error
	if cfg.Gate == nil {
		problems = append(problems, errors.New("there is no gate; nothing may run without one"))
	}
	if cfg.Audit != nil && cfg.RecordParams && cfg.Sealer == nil {
		problems = append(problems, errors.New("params are to be recorded and there is no sealer for the sensitive ones"))
	}
	byName, all, found := distinct(cfg)
	problems = append(problems, found...)
	manifests := make([]packs.Manifest, len(all))
	for i, p := range all {
		manifests[i] = p.manifest
		if err := p.manifest.Validate(); err != nil {
			problems = append(problems, err)
		}
		problems = append(problems, t.register(p)...)
	}
	problems = append(problems, tables(all)...)
	for name := range cfg.BackendOf {
		if byName[name] == nil {
			problems = append(problems, fmt.Errorf("a backend is configured for pack %s, which is not there", name))
		}
	}
	missing := requirements(all, byName)
	problems = append(problems, missing...)
	order, cycle := sorted(all, byName)
	if cycle != nil {
		problems = append(problems, cycle)
	}
	t.order = order
	checks, err := compile(cfg.Checks, manifests)
	if err != nil {
		problems = append(problems, err)
	}
	t.checks = checks
	slices.SortFunc(t.catalogue, func(a, b packs.Listing) int { return cmp.Compare(a.Verb, b.Verb) })
	t.available = names(t.catalogue)
	return t, errors.Join(problems...)
}

// distinct lists the packs by name and finds the names that occur twice.
func distinct(cfg Config) (byName map[string]*pack, all []*pack, problems []error) {
	byName = make(map[string]*pack)
	for _, p := range cfg.Packs {
		m := p.Manifest()
		if byName[m.Name] != nil {
			problems = append(problems, fmt.Errorf("pack %s is registered twice; import it once", m.Name))
			continue
		}
		row := &pack{pack: p, manifest: m, backend: cfg.BackendOf[m.Name]}
		if row.backend == "" {
			row.backend = DefaultBackend
		}
		byName[m.Name] = row
		all = append(all, row)
	}
	return byName, all, problems
}

// register enters a pack's verbs, internal ones too, and finds collisions.
func (t *table) register(p *pack) (problems []error) {
	for i := range p.manifest.Verbs {
		v := &p.manifest.Verbs[i]
		if other := t.verbs[v.Name]; other != nil {
			if other.pack != p { // twice in one pack is the manifest's own problem
				problems = append(problems, &VerbCollision{Verb: v.Name, First: other.pack.manifest.Name, Second: p.manifest.Name})
			}
			continue
		}
		row := &verb{Verb: *v, pack: p}
		row.declaresNamespace = slices.ContainsFunc(v.Params, func(q packs.Param) bool { return q.Name == "namespace" })
		t.verbs[v.Name] = row
		if v.Visibility == packs.Public {
			t.catalogue = append(t.catalogue, v.Listing(p.manifest.Name))
		}
	}
	return problems
}

// tables finds tables that two packs declare on one backend. SQLite folds the case of names.
func tables(all []*pack) (problems []error) {
	type place struct{ backend, table string }
	owner := make(map[place]string)
	for _, p := range all {
		for _, name := range p.manifest.Schema.Tables {
			at := place{p.backend, strings.ToLower(name)}
			if first, taken := owner[at]; taken && first != p.manifest.Name {
				problems = append(problems, fmt.Errorf("packs %s and %s both declare table %s on backend %s; place one of them on another backend",
					first, p.manifest.Name, name, p.backend))
				continue
			}
			owner[at] = p.manifest.Name
		}
	}
	return problems
}

// requirements finds what packs require and nobody registers.
func requirements(all []*pack, byName map[string]*pack) (problems []error) {
	for _, p := range all {
		for _, name := range p.manifest.Requires {
			if byName[name] == nil {
				problems = append(problems, fmt.Errorf("pack %s requires pack %s, which is not there; add it, or leave %s out", p.manifest.Name, name, p.manifest.Name))
			}
		}
	}
	return problems
}

// sorted puts requirements before the packs that need them, or shows one cycle.
func sorted(all []*pack, byName map[string]*pack) (order []*pack, cycle error) {
	const (
		unseen = iota
		onPath
		placed
	)
	state := make(map[*pack]int)
	var path []string
	var visit func(p *pack) error
	visit = func(p *pack) error {
		path = append(path, p.manifest.Name)
		defer func() { path = path[:len(path)-1] }()
		switch state[p] {
		case placed:
			return nil
		case onPath:
			return fmt.Errorf("packs require each other in a circle: %s; drop one of the requirements", strings.Join(path[slices.Index(path, p.manifest.Name):], " -> "))
		}
		state[p] = onPath
		for _, name := range p.manifest.Requires {
			if q := byName[name]; q != nil {
				if err := visit(q); err != nil {
					return err
				}
			}
		}
		state[p] = placed
		order = append(order, p)
		return nil
	}
	for _, p := range all {
		if err := visit(p); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// compile compiles the packs' checks.
func compile(c CheckCompiler, manifests []packs.Manifest) (Checker, error) {
	if c != nil {
		return c.Compile(manifests)
	}
	for _, m := range manifests {
		if len(m.Checks) > 0 {
			return nil, fmt.Errorf("pack %s has checks on params and there is nothing to compile them with", m.Name)
		}
	}
	return nil, nil
}
