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
	"sync/atomic"
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
	"github.com/verbgate/verbgate/wire/session"
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

	sessions atomic.Pointer[session.Server] // of the sockets; nil without any

	activated  bool  // the first activation has been tried; read and written in the gate's order of activations
	unrecorded error // why the first activation is not on record
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
	keep := audit.Retention{Age: time.Duration(a.cfg.Audit.Retention.Age), Rows: int64(a.cfg.Audit.Retention.Rows)}
	if a.store, err = audit.New(audit.Config{Path: filepath.Join(a.cfg.DataDir, auditFile), Log: a.log, Retention: keep}); err != nil {
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
	cfg := dispatcherConfig(a.cfg)
	cfg.Gate, cfg.Backends, cfg.Audit, cfg.Sealer, cfg.Log = a.gate, a.files, a.store, key, a.log
	a.dispatcher, err = dispatcher.New(cfg)
	return err
}

// dispatcherConfig is what cfg alone says of the dispatcher; the parts it stands on are added to it.
func dispatcherConfig(cfg *config) dispatcher.Config {
	return dispatcher.Config{
		Packs:        cfg.packs(),
		FailOpen:     cfg.Gate.OnError == onErrorOpen,
		Checks:       checks{},
		BackendOf:    cfg.Backends,
		RecordParams: cfg.Audit.Params == paramsRecord,
		Limits:       dispatcher.Limits{RequestTimeout: cfg.Limits.RequestTimeout},
	}
}

// open opens the parts, those that others stand on first: the store before the gate, whose activation
// it records, and both before the dispatcher, which runs nothing until it is open.
func (a *app) open(ctx context.Context) error {
	parts := []struct {
		open  func(context.Context) error
		close func() error
	}{
		{a.store.Open, a.store.Close},
		{a.openGate, a.closeGate},
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

// openGate activates the policy for the first time. Nothing runs under a policy that nobody can see was
// put to use: an activation that cannot be recorded is no activation.
func (a *app) openGate(ctx context.Context) error {
	err := a.gate.Open(ctx)
	if a.unrecorded == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("the activation of the policy could not be recorded in %s: %w; make room there, or choose another folder with data_dir or --data-dir",
		filepath.Join(a.cfg.DataDir, auditFile), a.unrecorded), a.closeGate())
}

// closeGate closes the gate. Evaluations that were given up and cannot be stopped end with the process;
// the calls they were for have been refused, so that they are worth a warning and no failure.
func (a *app) closeGate() error {
	err := a.gate.Close()
	if n := a.gate.Status().Running; err != nil && n > 0 {
		a.log.Warn("evaluations of the policy that took longer than gate.timeout cannot be interrupted and end with the process; their calls were refused", "evaluations", n)
		return nil
	}
	return err
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
		"records_lost", d.RecordsLost, "parse_errors_not_recorded", d.ParseErrorsDropped, "hook_errors", d.HookErrors)
	g := a.gate.Status()
	attrs := []any{"revision", g.Revision, "activated", g.ActivatedAt, "decisions", g.Decisions, "given_up", g.Abandoned, "still_running", g.Running}
	if g.LastError != nil {
		attrs = append(attrs, "last_activation", g.LastError)
	}
	a.log.Info("counted by the gate", attrs...)
	s := a.store.Stats()
	a.log.Info("counted by the audit store", "batches", s.Batches, "records", s.Records, "commits", s.Commits, "waiting", s.Queued)
	if server := a.sessions.Load(); server != nil {
		f := server.Stats()
		a.log.Info("counted by the framed protocol", "connections", f.Open, "running", f.Working, "accepted", f.Accepted, "turned_away", f.Refused)
	}
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

// activationTimeout bounds the writing of the record of the first activation.
const activationTimeout = 10 * time.Second

// recordActivation writes down that a policy was put to use, or was not. The gate calls it once at a
// time. The first call comes while the house is being opened, and openGate refuses to go on when its
// record is not stored. The later ones go the way of the operations' records: when one cannot be stored,
// operations are refused until it is.
func (a *app) recordActivation(act opa.Activation) {
	if server := a.sessions.Load(); server != nil && act.Err == nil {
		server.Recheck()
	}
	record := activationRecord(act)
	if a.activated {
		a.dispatcher.Record(context.Background(), record) // the dispatcher says in the log that the store is down
		return
	}
	a.activated = true
	ctx, cancel := context.WithTimeout(context.Background(), activationTimeout)
	defer cancel()
	a.unrecorded = a.store.Append(ctx, []policy.Record{record})
}

func activationRecord(act opa.Activation) policy.Record {
	record := policy.Record{
		ID: uuid.NewString(), Kind: policy.KindGateActivation, Time: act.Time.UTC(), RequestID: uuid.NewString(),
		Source: string(dispatcher.CLI), Actor: login().String(), Decision: policy.Allow.String(), Effect: "allowed", Outcome: "success",
		Obligations: []string{}, Duration: act.Duration, Gate: opa.Name, Revision: act.Revision,
	}
	if act.Err != nil {
		record.Decision, record.Effect, record.Outcome, record.Reason = "refused", "denied", "error", act.Err.Error()
	}
	return record
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
