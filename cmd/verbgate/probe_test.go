package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/verbgate/verbgate/packs"
)

// The probe pack exists in test binaries only. It registers itself like any other pack, so the
// program under test has no code path of its own for it.
func init() { packs.Register(probePack{}) }

// probeSecret is in every error text and panic value of the probe pack: it must never reach a caller.
const probeSecret = "hunter2-DSN-postgres://u:p@db"

// probeDir names the environment variable with the folder for probe.sleep's marks.
const probeDir = "PROBE_DIR"

type probePack struct{}

func (probePack) Manifest() packs.Manifest {
	verb := func(name, description string, params ...packs.Param) packs.Verb {
		return packs.Verb{Name: "probe." + name, Description: description, Category: packs.Assertive, Visibility: packs.Public, Params: params}
	}
	inner := verb("inner", "An internal verb.")
	inner.Visibility = packs.Subhandler
	return packs.Manifest{
		Name:        "probe",
		Description: "Faults on demand, for tests.",
		Verbs: []packs.Verb{
			verb("echo", "Answers with its params.",
				packs.Param{Name: "value", Type: packs.Any, Description: "any value"},
				packs.Param{Name: "text", Type: packs.String, MaxLength: 4 << 20, Description: "a text"},
				packs.Param{Name: "n", Type: packs.Integer, Description: "an integer"},
				packs.Param{Name: "items", Type: packs.Array, Description: "a list"},
				packs.Param{Name: "object", Type: packs.Object, Description: "an object"},
				packs.Param{Name: "secret", Type: packs.String, Sensitive: true, Description: "a secret"}),
			verb("sleep", "Waits, or until cancelled, or until <mark>.release exists. Writes <mark>.started and then <mark>.ended (slept, released or cancelled) into $PROBE_DIR.",
				packs.Param{Name: "ms", Type: packs.Integer, Required: true, Min: "0", Description: "how long, in milliseconds"},
				packs.Param{Name: "mark", Type: packs.String, Description: "name of the marks"}),
			verb("panic", "Panics with a secret."),
			verb("fail", "Fails.", packs.Param{Name: "as", Type: packs.String, Default: "plain", Description: "which error",
				Enum: []string{"plain", "not_found", "conflict", "invalid", "unavailable"}}),
			verb("nest", "Invokes a verb.",
				packs.Param{Name: "verb", Type: packs.String, Required: true, Description: "which"},
				packs.Param{Name: "params", Type: packs.Object, Description: "its params"}),
			verb("big", "Answers with a long string.",
				packs.Param{Name: "bytes", Type: packs.Integer, Required: true, Min: "0", Max: "67108864", Description: "how long"}),
			inner,
		},
	}
}

func (probePack) Open(context.Context, packs.Env) (packs.Instance, error) {
	return probeInstance{}, nil
}

type probeInstance struct{}

func (probeInstance) Close() error { return nil }

func (probeInstance) Handlers() map[string]packs.Handler {
	return map[string]packs.Handler{
		"probe.echo":  func(_ context.Context, c *packs.Call) (any, error) { return maps.Clone(c.Params), nil },
		"probe.sleep": probeSleep,
		"probe.panic": func(context.Context, *packs.Call) (any, error) { panic(probeSecret) },
		"probe.fail":  probeFail,
		"probe.nest":  probeNest,
		"probe.big": func(_ context.Context, c *packs.Call) (any, error) {
			return strings.Repeat("x", int(c.Params.Int("bytes"))), nil
		},
		"probe.inner": func(context.Context, *packs.Call) (any, error) { return map[string]any{"inner": true}, nil },
	}
}

func probeSleep(ctx context.Context, c *packs.Call) (any, error) {
	mark := filepath.Base(c.Params.String("mark"))
	note := func(suffix, text string) error {
		if dir := os.Getenv(probeDir); dir != "" && c.Params.Has("mark") {
			// Renamed into place, so that nobody reads half a mark.
			path := filepath.Join(dir, mark+suffix)
			if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".tmp", path)
		}
		return nil
	}
	if err := note(".started", ""); err != nil {
		return nil, err
	}
	end := time.NewTimer(time.Duration(c.Params.Int("ms")) * time.Millisecond)
	defer end.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, errors.Join(note(".ended", "cancelled"), ctx.Err())
		case <-end.C:
			return map[string]any{"ended": "slept"}, note(".ended", "slept")
		case <-look.C:
			if dir := os.Getenv(probeDir); dir != "" && c.Params.Has("mark") {
				if _, err := os.Stat(filepath.Join(dir, mark+".release")); err == nil {
					return map[string]any{"ended": "released"}, note(".ended", "released")
				}
			}
		}
	}
}

func probeFail(_ context.Context, c *packs.Call) (any, error) {
	switch c.Params.String("as") {
	case "not_found":
		return nil, &packs.NotFoundError{Kind: "record", ID: "r1"}
	case "conflict":
		return nil, &packs.ConflictError{Message: "it is there already"}
	case "invalid":
		return nil, &packs.InvalidError{Param: "as", Message: "not like this"}
	case "unavailable":
		return nil, &packs.UnavailableError{Backend: "main", Err: errors.New(probeSecret)}
	default:
		return nil, errors.New(probeSecret)
	}
}

func probeNest(ctx context.Context, c *packs.Call) (any, error) {
	out, err := c.Invoke(ctx, c.Params.String("verb"), packs.Params(c.Params.Object("params")))
	if err != nil {
		return nil, err
	}
	return map[string]any{"nested": json.RawMessage(out)}, nil
}
