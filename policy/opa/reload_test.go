package opa_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// place is a folder in a test, with the gate that watches it and all that was heard of it.
type place struct {
	t    *testing.T
	dir  string
	gate *opa.Gate

	mu  sync.Mutex
	all []opa.Activation
	log bytes.Buffer
}

func (p *place) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(line)
}

func (p *place) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *place) activations() []opa.Activation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// watched opens a gate on a folder inside a bubble of synctest: files are real, waiting takes no time.
func watched(t *testing.T, path string) *place {
	p := &place{t: t, dir: path}
	cfg := opa.Config{Path: path, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(p, nil))}
	cfg.OnActivation = func(a opa.Activation) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = append(p.all, a)
	}
	var err error
	p.gate, err = opa.New(cfg)
	require.NoError(t, err)
	require.NoError(t, p.gate.Open(t.Context()))
	return p
}

func (p *place) write(name, content string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644))
}

// rest lets the watcher look, wait for the folder to be at rest, and act.
func (p *place) rest() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

func (p *place) decide() policy.Decision { return p.gate.Decide(p.t.Context(), call(nil)) }

func gateFile(reason string) string {
	return "package verbgate.gate\n\ndecision := {\"decision\": \"deny\", \"reason\": \"" + reason + "\"}\n"
}

func TestWatchFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.rego"), []byte(gateFile("one")), 0o644))
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := watched(t, dir)
		defer func() { require.NoError(t, p.gate.Close()) }()
		require.GreaterOrEqual(t, time.Since(start), opa.StableFor, "a folder is looked at twice")
		require.Len(t, p.activations(), 1)
		first := p.decide()
		require.Equal(t, "one", first.Reason)

		p.rest()
		require.Len(t, p.activations(), 1, "nothing changed")

		p.write("gate.rego", gateFile("second"))
		require.Equal(t, first, p.decide(), "until the watcher has looked")
		p.rest()
		require.Equal(t, "second", p.decide().Reason)
		require.NotEqual(t, first.Revision, p.decide().Revision)
		require.Len(t, p.activations(), 2)
		require.Equal(t, p.decide().Revision, p.activations()[1].Revision)

		// A file of fifty is broken: all of the old, none of the new, said once.
		for i := range 50 {
			p.write(fmt.Sprintf("more%d.rego", i), fmt.Sprintf("package more%d\n\nx := 1\n", i))
		}
		p.write("broken.rego", "package verbgate.gate\n\n:=")
		p.write("gate.rego", gateFile("three"))
		p.rest()
		p.rest()
		require.Equal(t, "second", p.decide().Reason)
		require.Len(t, p.activations(), 3)
		require.ErrorContains(t, p.activations()[2].Err, "broken.rego:3:1")
		require.Equal(t, p.activations()[1].Revision, p.activations()[2].Revision)
		require.Equal(t, p.activations()[2].Err, p.gate.Status().LastError)
		require.Equal(t, 1, strings.Count(p.logged(), "level=ERROR"))

		require.NoError(t, os.Remove(filepath.Join(dir, "broken.rego")))
		p.rest()
		require.Equal(t, "three", p.decide().Reason)
		require.NoError(t, p.gate.Status().LastError)

		// A package renamed in place takes its rules with it.
		p.write("gate.rego", strings.Replace(gateFile("four"), "verbgate.gate", "verbgate.gone", 1))
		p.rest()
		require.ErrorContains(t, p.gate.Status().LastError, "the entry point data.verbgate.gate.decision is not there")
		require.Equal(t, "three", p.decide().Reason)

		// A new file renamed over the old, with the old one's time and size.
		info, err := os.Stat(filepath.Join(dir, "gate.rego"))
		require.NoError(t, err)
		p.write("gate.new", gateFile("fiv3"))
		require.NoError(t, os.Chtimes(filepath.Join(dir, "gate.new"), info.ModTime(), info.ModTime()))
		require.NoError(t, os.Rename(filepath.Join(dir, "gate.new"), filepath.Join(dir, "gate.rego")))
		p.rest()
		require.Equal(t, "fiv3", p.decide().Reason)

		// Touching a file changes nothing, and is no activation.
		n := len(p.activations())
		now := time.Unix(2_000_000_000, 0)
		require.NoError(t, os.Chtimes(filepath.Join(dir, "gate.rego"), now, now))
		p.rest()
		require.Len(t, p.activations(), n)

		// The folder goes away and comes back.
		require.NoError(t, os.Rename(dir, dir+".away"))
		p.rest()
		p.rest()
		require.Len(t, p.activations(), n+1)
		require.ErrorContains(t, p.gate.Status().LastError, "no such file or folder")
		require.Equal(t, "fiv3", p.decide().Reason)
		require.NoError(t, os.Rename(dir+".away", dir))
		p.rest()
		require.NoError(t, p.gate.Status().LastError, "back, and unchanged")
		require.Len(t, p.activations(), n+1)
		p.write("gate.rego", gateFile("six"))
		p.rest()
		require.Equal(t, "six", p.decide().Reason)
	})
}

// While a folder is being written it is not read.
func TestFolderMustBeAtRest(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.rego"), []byte(gateFile("one")), 0o644))
	synctest.Test(t, func(t *testing.T) {
		p := watched(t, dir)
		defer func() { require.NoError(t, p.gate.Close()) }()
		for i := range 30 {
			p.write("gate.rego", gateFile("half"+strings.Repeat("x", i+1)))
			time.Sleep(opa.StableFor / 2)
			require.Equal(t, "one", p.decide().Reason)
		}
		p.write("gate.rego", gateFile("two"))
		p.rest()
		require.Equal(t, "two", p.decide().Reason)
		require.Len(t, p.activations(), 2)

		// One that never comes to rest is given up, with the way out.
		stop := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					p.write("gate.rego", gateFile("more"+strings.Repeat("x", i%50)))
				}
			}
		}()
		err := p.gate.Reload(t.Context())
		close(stop)
		require.ErrorContains(t, err, "the folder keeps changing")
		require.Equal(t, "two", p.decide().Reason)
	})
}

// A roll-out by renaming a link: of the folder itself, or of the folder its files lead to.
func TestLinksAreSwapped(t *testing.T) {
	for name, layout := range map[string]func(t *testing.T, base string) (path, link string){
		"OK the folder": func(t *testing.T, base string) (string, string) {
			return filepath.Join(base, "current"), filepath.Join(base, "current")
		},
		"OK behind every file": func(t *testing.T, base string) (string, string) {
			require.NoError(t, os.Mkdir(filepath.Join(base, "mount"), 0o755))
			require.NoError(t, os.Symlink(filepath.Join("..data", "gate.rego"), filepath.Join(base, "mount", "gate.rego")))
			return filepath.Join(base, "mount"), filepath.Join(base, "mount", "..data")
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			path, link := layout(t, base)
			for _, v := range []string{"v1", "v2"} {
				require.NoError(t, os.Mkdir(filepath.Join(base, v), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(base, v, "gate.rego"), []byte(gateFile(v)), 0o644))
			}
			require.NoError(t, os.Symlink(filepath.Join(base, "v1"), link))
			synctest.Test(t, func(t *testing.T) {
				p := watched(t, path)
				defer func() { require.NoError(t, p.gate.Close()) }()
				require.Equal(t, "v1", p.decide().Reason)
				require.NoError(t, os.Symlink(filepath.Join(base, "v2"), link+".new"))
				require.NoError(t, os.Rename(link+".new", link))
				p.rest()
				require.Equal(t, "v2", p.decide().Reason)
			})
		})
	}
}

func TestWatchArchive(t *testing.T) {
	one := tarGz(t, entry{name: "gate.rego", content: gateFile("one")})
	two := tarGz(t, entry{name: "gate.rego", content: gateFile("two")})
	path := bundleFile(t, one)
	synctest.Test(t, func(t *testing.T) {
		p := watched(t, path)
		defer func() { require.NoError(t, p.gate.Close()) }()
		require.NoError(t, os.WriteFile(path, two[:len(two)/2], 0o644))
		p.rest()
		require.Equal(t, "one", p.decide().Reason)
		require.Error(t, p.gate.Status().LastError)
		require.NoError(t, os.WriteFile(path, two, 0o644))
		p.rest()
		require.Equal(t, "two", p.decide().Reason)
	})
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, files("decision := true"))
	var heard []opa.Activation
	g := opened(t, opa.Config{Path: dir, Timeout: time.Minute, PollInterval: -1, OnActivation: func(a opa.Activation) { heard = append(heard, a) }})
	require.NoError(t, g.Reload(t.Context()))
	require.Len(t, heard, 2, "a reload that was asked for is an activation though nothing changed")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.rego"), []byte("package x\n\n:="), 0o644))
	err := g.Reload(t.Context())
	var load *opa.LoadError
	require.ErrorAs(t, err, &load)
	require.Equal(t, []opa.Problem{{File: "gate.rego", Line: 3, Column: 1, Message: load.Problems[0].Message}}, load.Problems)
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)

	// Nobody waits for it any more: that is no word on the policy.
	gone, cancel := contextGone(t)
	defer cancel()
	before := g.Status().LastError
	require.Error(t, g.Reload(gone))
	require.Equal(t, before, g.Status().LastError)
	require.Len(t, heard, 3)
}

// While policies are swapped every decision is wholly of one of them: its reason and its revision
// belong together, and nobody sees an old one after a new one.
func TestReloadUnderLoad(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) {
		writeFiles(t, dir, files("decision := {\"decision\": \"deny\", \"reason\": sprintf(\"%d %d\", [data.version, own])}\n\nown := "+fmt.Sprint(n),
			"data.json", fmt.Sprintf(`{"version": %d}`, n), ".manifest", fmt.Sprintf(`{"revision": "%d"}`, n)))
	}
	version(0)
	g := opened(t, opa.Config{Path: dir, Timeout: time.Minute, PollInterval: -1})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			last := 0
			for {
				select {
				case <-stop:
					return
				default:
				}
				d := g.Decide(t.Context(), call(nil))
				var data, own int
				if n, err := fmt.Sscanf(d.Reason, "%d %d", &data, &own); n != 2 || err != nil || data != own || d.Revision != fmt.Sprint(own) || own < last {
					t.Errorf("mixed decision after %d: %+v", last, d)
					return
				}
				last = own
			}
		})
	}
	for n := 1; n <= 3; n++ {
		version(n)
		require.NoError(t, g.Reload(t.Context()))
		require.Equal(t, fmt.Sprint(n), g.Decide(t.Context(), call(nil)).Revision)
	}
	close(stop)
	wg.Wait()
}
