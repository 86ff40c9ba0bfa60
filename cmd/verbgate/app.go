package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
	"github.com/verbgate/verbgate/policy/opa"
	"github.com/verbgate/verbgate/policytests"
)

// Names in the data folder.
const (
	auditFile    = "audit.db"
	auditKeyFile = "audit.key"
	tokenFile    = "http.token"
)

// app is the house with everything wired: what a command needs to run requests.
type app struct {
	cfg        *config
	log        *slog.Logger
	files      *sqlite.Files
	store      *audit.Store
	gate       *opa.Gate
	dispatcher *dispatcher.Dispatcher
	close      []func() error // in the order of opening
}

// openApp wires the house for cfg and opens it. The policy has been activated when it returns. Every
// error is a *startError, and nothing is left open behind it.
func openApp(ctx context.Context, cfg *config, log *slog.Logger) (*app, error) {
	a := &app{cfg: cfg, log: log}
	if err := a.wire(); err != nil {
		return nil, &startError{err}
	}
	if err := a.open(ctx); err != nil {
		return nil, &startError{errors.Join(err, a.Close())}
	}
	return a, nil
}

// wire makes the parts and starts none of them.
func (a *app) wire() error {
	if err := os.MkdirAll(a.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w; give this user the right to write there, or choose another one with data_dir or --data-dir", err)
	}
	var err error
	if a.store, err = audit.New(audit.Config{Path: filepath.Join(a.cfg.DataDir, auditFile), Log: a.log}); err != nil {
		return err
	}
	key, err := audit.LoadKey(filepath.Join(a.cfg.DataDir, auditKeyFile))
	if err != nil {
		return err
	}
	if a.gate, err = newGate(a.cfg, a.recordActivation, a.log); err != nil {
		return err
	}
	a.files = sqlite.New(a.cfg.DataDir, a.log)
	a.dispatcher, err = dispatcher.New(dispatcher.Config{
		Packs:        a.cfg.packs(),
		Gate:         a.gate,
		FailOpen:     a.cfg.Gate.OnError == onErrorOpen,
		Checks:       checks{},
		Backends:     a.files,
		BackendOf:    a.cfg.Backends,
		Audit:        a.store,
		RecordParams: a.cfg.Audit.Params == paramsRecord,
		Sealer:       key,
		Limits:       dispatcher.Limits{RequestTimeout: a.cfg.Limits.RequestTimeout},
		Log:          a.log,
	})
	return err
}

// open opens the parts, those that others stand on first.
func (a *app) open(ctx context.Context) error {
	parts := []struct {
		open  func(context.Context) error
		close func() error
	}{
		{a.store.Open, a.store.Close},
		{a.gate.Open, a.gate.Close},
		{func(context.Context) error { return nil }, a.files.Close}, // opens when a pack asks
		{a.dispatcher.Open, a.dispatcher.Close},
	}
	for _, part := range parts {
		if err := part.open(ctx); err != nil {
			return err
		}
		a.close = append(a.close, part.close)
	}
	return nil
}

// Close waits for running requests to end and closes the parts, last opened first.
func (a *app) Close() error {
	var errs []error
	for _, closePart := range slices.Backward(a.close) {
		errs = append(errs, closePart())
	}
	return errors.Join(errs...)
}

// logCounters tells what has been counted since the start, a line for each part that counts.
func (a *app) logCounters() {
	d := a.dispatcher.Stats()
	a.log.Info("counted by the dispatcher", "ran_without_a_decision", d.GateUnavailableAllowed, "refused_without_audit", d.AuditUnavailable,
		"parse_errors_not_recorded", d.ParseErrorsDropped, "hook_errors", d.HookErrors)
	g := a.gate.Status()
	attrs := []any{"revision", g.Revision, "activated", g.ActivatedAt, "decisions", g.Decisions, "given_up", g.Abandoned, "still_running", g.Running}
	if g.LastError != nil {
		attrs = append(attrs, "last_activation", g.LastError)
	}
	a.log.Info("counted by the gate", attrs...)
	s := a.store.Stats()
	a.log.Info("counted by the audit store", "batches", s.Batches, "records", s.Records, "commits", s.Commits, "waiting", s.Queued)
}

// newGate makes the gate of the configured policy, or of the starter policy.
func newGate(cfg *config, onActivation func(opa.Activation), log *slog.Logger) (*opa.Gate, error) {
	gate := opa.Config{
		Path:          cfg.Gate.Policy,
		Entrypoint:    cfg.Gate.Entrypoint,
		Timeout:       cfg.Gate.Timeout,
		AllowBuiltins: cfg.Gate.AllowBuiltins,
		AllowHosts:    cfg.Gate.AllowHosts,
		OnActivation:  onActivation,
		Log:           log,
	}
	if gate.Path == "" {
		starter, err := fs.Sub(policytests.Starter, "starter")
		if err != nil {
			return nil, err
		}
		gate.FS = starter
	}
	return opa.New(gate)
}

// checks compiles the packs' checks with CEL.
type checks struct{}

func (checks) Compile(manifests []packs.Manifest) (dispatcher.Checker, error) {
	set, err := cel.Compile(manifests, cel.Config{})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// packs lists the packs to load.
func (c *config) packs() []packs.Pack {
	all := packs.Registered()
	if len(c.Packs) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(p packs.Pack) bool { return !slices.Contains(c.Packs, p.Manifest().Name) })
}

// activationTimeout bounds the writing of the record of an activation.
const activationTimeout = 10 * time.Second

// recordActivation writes down that a policy was put to use, or was not.
func (a *app) recordActivation(act opa.Activation) {
	record := policy.Record{
		ID: uuid.NewString(), Kind: policy.KindGateActivation, Time: act.Time.UTC(), RequestID: uuid.NewString(),
		Source: string(dispatcher.CLI), Actor: login().String(), Decision: policy.Allow.String(), Effect: "allowed", Outcome: "success",
		Obligations: []string{}, Duration: act.Duration, Gate: opa.Name, Revision: act.Revision,
	}
	if act.Err != nil {
		record.Decision, record.Effect, record.Outcome, record.Reason = "refused", "denied", "error", act.Err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), activationTimeout)
	defer cancel()
	if err := a.store.Append(ctx, []policy.Record{record}); err != nil {
		a.log.Error("the activation of the policy could not be recorded", "revision", act.Revision, "error", err)
	}
}

// caller is whoever runs this program.
func (c *config) caller(source dispatcher.Source, transport string) dispatcher.Caller {
	return dispatcher.Caller{
		Source: source, Transport: transport, SessionID: uuid.NewString(),
		Actor: login(), Namespace: c.Namespace, Visible: c.Visible,
	}
}

// login is the user who runs this program, as the system knows him: user:<login>.
func login() policy.Actor {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if name == "" {
		name = "uid" + strconv.Itoa(os.Getuid())
	}
	return policy.Actor{Kind: "user", ID: name}
}
