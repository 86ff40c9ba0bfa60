package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// paper is a pack that is nothing but a manifest and a note of when it was opened and closed.
type paper struct {
	packs.Manifest
	log      *[]string
	openErr  error
	closeErr error
	handlers map[string]packs.Handler
}

type paperPack struct{ *paper }

func (p paperPack) Manifest() packs.Manifest { return p.paper.Manifest }

func (p paperPack) Open(context.Context, packs.Env) (packs.Instance, error) {
	if p.openErr != nil {
		return nil, p.openErr
	}
	*p.log = append(*p.log, "open "+p.paper.Name)
	return paperInstance(p), nil
}

type paperInstance struct{ *paper }

func (p paperInstance) Handlers() map[string]packs.Handler {
	if p.handlers != nil {
		return p.handlers
	}
	out := map[string]packs.Handler{}
	for _, v := range p.Verbs {
		out[v.Name] = func(context.Context, *packs.Call) (any, error) { return nil, nil }
	}
	return out
}

func (p paperInstance) Close() error {
	*p.log = append(*p.log, "close "+p.paper.Name)
	return p.closeErr
}

type allowAll struct{}

func (allowAll) Decide(context.Context, *policy.Input) policy.Decision {
	return policy.Decision{Verdict: policy.Allow}
}

func manifest(name string, requires []string, verbs ...string) packs.Manifest {
	m := packs.Manifest{Name: name, Description: "d", Requires: requires}
	for _, v := range verbs {
		m.Verbs = append(m.Verbs, packs.Verb{Name: v, Description: "d", Category: packs.Assertive, Visibility: packs.Public})
	}
	return m
}

func bootWith(log *[]string, manifests ...packs.Manifest) dispatcher.Config {
	cfg := dispatcher.Config{Gate: allowAll{}}
	for _, m := range manifests {
		cfg.Packs = append(cfg.Packs, paperPack{&paper{Manifest: m, log: log}})
	}
	return cfg
}

func TestBootProblems(t *testing.T) {
	withTable := func(m packs.Manifest, table string) packs.Manifest {
		m.Schema = packs.Schema{Tables: []string{table}, Migrations: []string{"create table " + table + "(x)"}}
		return m
	}
	withCheck := manifest("c", nil, "c.a")
	withCheck.Checks = []packs.Check{{Name: "x", Rule: "true", Message: "m"}}
	internal := manifest("b", nil, "a.same")
	internal.Verbs[0].Visibility = packs.Subhandler

	for _, tc := range []struct {
		name   string
		cfg    dispatcher.Config
		change func(*dispatcher.Config)
		says   []string
	}{
		{"Err no gate", bootWith(nil), func(c *dispatcher.Config) { c.Gate = nil }, []string{"there is no gate"}},
		{"Err duplicate pack", bootWith(nil, manifest("a", nil, "a.x"), manifest("a", nil, "a.y")), nil, []string{"pack a is registered twice"}},
		{"Err two packs, one verb", bootWith(nil, manifest("a", nil, "a.same"), manifest("b", nil, "a.same")), nil,
			[]string{"verb a.same is registered by pack a and by pack b"}},
		{"Err an internal verb collides too", bootWith(nil, manifest("a", nil, "a.same"), internal), nil, []string{"verb a.same is registered by pack a and by pack b"}},
		{"Err bad verb name", bootWith(nil, manifest("a", nil, "a.Upper")), nil, []string{"a.Upper"}},
		{"Err reserved verb", bootWith(nil, manifest("core", nil, "subscribe")), nil, []string{"subscribe"}},
		{"Err missing prefix", bootWith(nil, manifest("a", nil, "bare")), nil, []string{"bare"}},
		{"Err every missing requirement", bootWith(nil, manifest("a", []string{"x", "y"}, "a.v"), manifest("b", []string{"z"}, "b.v")), nil,
			[]string{"pack a requires pack x", "pack a requires pack y", "pack b requires pack z"}},
		{"Err cycle", bootWith(nil, manifest("a", []string{"b"}, "a.v"), manifest("b", []string{"c"}, "b.v"), manifest("c", []string{"a"}, "c.v")), nil,
			[]string{"a -> b -> c -> a"}},
		{"Err cycle of one", bootWith(nil, manifest("a", []string{"a"}, "a.v")), nil, []string{"a -> a"}},
		{"Err cycle behind an innocent", bootWith(nil, manifest("z", []string{"a"}, "z.v"), manifest("a", []string{"b"}, "a.v"), manifest("b", []string{"a"}, "b.v")), nil,
			[]string{"a -> b -> a"}},
		{"Err one table, two packs", bootWith(nil, withTable(manifest("a", nil, "a.v"), "things"), withTable(manifest("b", nil, "b.v"), "Things")), nil,
			[]string{"packs a and b both declare table Things on backend main"}},
		{"Err checks and no compiler", bootWith(nil, withCheck), nil, []string{"pack c has checks"}},
		{"Err backend of a pack that is not there", bootWith(nil), func(c *dispatcher.Config) { c.BackendOf = map[string]string{"ghost": "main"} }, []string{"ghost"}},
		{"Err params without a sealer", bootWith(nil), func(c *dispatcher.Config) { c.Audit, c.RecordParams = nowhere{}, true }, []string{"sealer"}},
		{"Err all of them at once", bootWith(nil, manifest("a", []string{"gone"}, "a.same"), manifest("b", nil, "a.same"), manifest("b", nil)),
			func(c *dispatcher.Config) { c.Gate = nil }, []string{"there is no gate", "requires pack gone", "registered by pack a and by pack b", "pack b is registered twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.cfg)
			}
			d, err := dispatcher.New(tc.cfg)
			require.Error(t, err)
			require.Nil(t, d)
			for _, s := range tc.says {
				require.ErrorContains(t, err, s)
			}
		})
	}
	t.Run("Err collision is typed", func(t *testing.T) {
		_, err := dispatcher.New(bootWith(nil, manifest("a", nil, "a.same"), manifest("b", nil, "a.same")))
		var collision *dispatcher.VerbCollision
		require.ErrorAs(t, err, &collision)
		require.Equal(t, dispatcher.VerbCollision{Verb: "a.same", First: "a", Second: "b"}, *collision)
	})
	t.Run("OK one table on two backends", func(t *testing.T) {
		cfg := bootWith(nil, withTable(manifest("a", nil, "a.v"), "things"), withTable(manifest("b", nil, "b.v"), "things"))
		cfg.BackendOf = map[string]string{"b": "other"}
		_, err := dispatcher.New(cfg)
		require.NoError(t, err)
	})
}

type nowhere struct{}

func (nowhere) Append(context.Context, []policy.Record) error { return nil }

func TestOpenOrder(t *testing.T) {
	var log []string
	d, err := dispatcher.New(bootWith(&log, manifest("z", []string{"m", "a"}, "z.v"), manifest("m", []string{"a"}, "m.v"), manifest("a", nil, "a.v")))
	require.NoError(t, err)
	require.NoError(t, d.Open(t.Context()))
	require.Error(t, d.Open(t.Context()), "a second Open would open the packs again")
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "closing twice is closing once")
	require.Error(t, d.Open(t.Context()))
	require.Equal(t, []string{"open a", "open m", "open z", "close z", "close m", "close a"}, log)
}

func TestOpenFailures(t *testing.T) {
	t.Run("Err a pack does not open", func(t *testing.T) {
		var log []string
		cfg := bootWith(&log, manifest("a", nil, "a.v"), manifest("b", []string{"a"}, "b.v"), manifest("c", nil, "c.v"))
		cfg.Packs[1].(paperPack).openErr = errors.New("no disk")
		d, err := dispatcher.New(cfg)
		require.NoError(t, err)
		require.EqualError(t, d.Open(t.Context()), "open pack b: no disk")
		require.Equal(t, []string{"open a", "close a"}, log, "what was opened is closed")
		require.NoError(t, d.Close())
	})
	t.Run("Err verbs and handlers differ", func(t *testing.T) {
		var log []string
		cfg := bootWith(&log, manifest("a", nil, "a.v", "a.w"))
		cfg.Packs[0].(paperPack).handlers = map[string]packs.Handler{"a.v": func(context.Context, *packs.Call) (any, error) { return nil, nil },
			"b.x": func(context.Context, *packs.Call) (any, error) { return nil, nil }}
		d, err := dispatcher.New(cfg)
		require.NoError(t, err)
		err = d.Open(t.Context())
		require.ErrorContains(t, err, "verb a.w has no handler")
		require.ErrorContains(t, err, "handler for b.x")
		require.Equal(t, []string{"open a", "close a"}, log)
	})
	t.Run("Err a resource nobody can locate", func(t *testing.T) {
		var log []string
		m := manifest("a", nil, "a.v")
		m.Verbs[0].Params, m.Verbs[0].Resource = []packs.Param{{Name: "id", Type: packs.String, Description: "d"}}, "id"
		d, err := dispatcher.New(bootWith(&log, m))
		require.NoError(t, err)
		require.ErrorContains(t, d.Open(t.Context()), "cannot locate")
	})
	t.Run("Err records and no backends", func(t *testing.T) {
		var log []string
		m := manifest("a", nil, "a.v")
		m.Schema = packs.Schema{Tables: []string{"x"}, Migrations: []string{"create table x(y)"}}
		d, err := dispatcher.New(bootWith(&log, m))
		require.NoError(t, err)
		require.ErrorContains(t, d.Open(t.Context()), "no backends are configured")
	})
}
