// Package dispatcher runs requests: it takes parsed operations and a caller, leads every operation
// through the pipeline of dispatch.md 1, and answers with one envelope (request.md 8).
//
// The pipeline is one function, operate in pipeline.go, read from top to bottom: internal
// verbs, help, $prev, namespace, audit store, params and checks, gate, obligations, handler, record.
// Its order is a security property, so there is no chain of decorators and no second way in: single
// operations, parallel ones, steps of a chain and verbs called by verbs all go through it.
//
// What the package does not do: it parses no text (dispatcher/request), knows no OPA, CEL, SQL or
// MCP type (it declares the small interfaces it needs, cmd/verbgate wires them), and opens no
// listener.
//
// Invariants. Nothing reaches a handler that the gate has not allowed, but for the configured
// fail-open on infrastructure errors, which leaves its mark in the entry, the audit record, a counter
// and the log. A Token is made here and nowhere else, after the namespace has been judged. A result
// is encoded once, when the handler returns, and is immutable from then on. The verb table never
// changes after Open, so reading it takes no lock.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// Dispatcher runs requests. Make one with New, then Open it; it is safe for concurrent use.
type Dispatcher struct {
	gate     policy.Gate
	failOpen bool
	checks   Checker
	backends BackendOpener
	record   recorder
	hooks    []Hook
	limits   Limits
	log      *slog.Logger

	order     []*pack // in the order of opening: requirements first
	verbs     map[string]*verb
	catalogue []packs.Listing // public verbs, sorted by name
	available string          // their names, for the unknown-verb message

	outage  outage
	closing context.Context // done when Close begins; ends every running request
	close   context.CancelFunc
	mu      sync.RWMutex // guards life, and running.Add against Close
	life    life
	running sync.WaitGroup
	located atomic.Int64 // look-ups of records that are under way, given up ones included
	stats   stats
}

// life is the stage a dispatcher is in; it only goes forward. The zero value runs nothing.
type life uint8

const (
	unopened life = iota
	open
	closed
)

// pack is one pack with what it was opened into.
type pack struct {
	pack     packs.Pack
	manifest packs.Manifest
	backend  string
	instance packs.Instance
}

// verb is one row of the verb table.
type verb struct {
	packs.Verb
	pack              *pack
	handler           packs.Handler
	locator           packs.Locator // nil unless the manifest names a resource
	declaresNamespace bool
}

// Stats counts what an operator should know of.
type Stats struct {
	GateUnavailableAllowed int64 // operations that ran although the gate could not decide
	AuditUnavailable       int64 // operations refused because the audit store was down
	RecordsLost            int64 // audit records that could not be stored
	ParseErrorsDropped     int64 // parse errors too many to record one by one
	HookErrors             int64
}

type stats struct {
	gateUnavailableAllowed, auditUnavailable, recordsLost, parseErrorsDropped, hookErrors atomic.Int64
}

// New checks the configuration and every pack's manifest. It starts nothing. The error joins all
// problems found (dispatch.md 9).
func New(cfg Config) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	table, err := boot(cfg)
	if err != nil {
		return nil, fmt.Errorf("the packs and the configuration do not fit together:\n%w", err)
	}
	d := &Dispatcher{
		gate: cfg.Gate, failOpen: cfg.FailOpen, checks: table.checks, backends: cfg.Backends, hooks: cfg.Hooks,
		limits: cfg.Limits, log: cfg.Log,
		order: table.order, verbs: table.verbs, catalogue: table.catalogue, available: table.available,
	}
	d.record = recorder{
		store: cfg.Audit, sealer: cfg.Sealer, params: cfg.RecordParams, timeout: cfg.Limits.AuditTimeout, log: cfg.Log,
		lost: &d.stats.recordsLost,
	}
	d.outage.log = cfg.Log
	d.closing, d.close = context.WithCancel(context.Background())
	return d, nil
}

// Open opens the packs, requirements first. When one does not open, those before it are closed again
// and Open may be called once more. A dispatcher opens once and does not open again after Close.
func (d *Dispatcher) Open(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life != unopened {
		return errors.New("the dispatcher is open or was closed; make a new one")
	}
	for i, p := range d.order {
		if err := d.openPack(ctx, p); err != nil {
			return errors.Join(fmt.Errorf("open pack %s: %w", p.manifest.Name, err), closePacks(d.order[:i]))
		}
	}
	d.record.start()
	d.life = open
	return nil
}

func (d *Dispatcher) openPack(ctx context.Context, p *pack) error {
	env := packs.Env{Log: d.log.With("pack", p.manifest.Name)}
	if len(p.manifest.Schema.Migrations) > 0 {
		if d.backends == nil {
			return fmt.Errorf("it keeps records in backend %q, and no backends are configured", p.backend)
		}
		backend, err := d.backends.OpenBackend(ctx, p.backend, p.manifest.Name, p.manifest.Schema)
		if err != nil {
			return err
		}
		env.Backend = backend
	}
	instance, err := p.pack.Open(ctx, env)
	if err != nil {
		return err
	}
	if err := d.bind(p, instance); err != nil {
		return errors.Join(err, instance.Close())
	}
	p.instance = instance
	return nil
}

// bind gives every verb of a pack its handler, and finds what is missing or too much.
func (d *Dispatcher) bind(p *pack, instance packs.Instance) error {
	handlers := instance.Handlers()
	locator, _ := instance.(packs.Locator)
	var problems []error
	for _, v := range p.manifest.Verbs {
		row := d.verbs[v.Name]
		row.handler = handlers[v.Name]
		if row.handler == nil {
			problems = append(problems, fmt.Errorf("verb %s has no handler", v.Name))
		}
		if v.Resource != "" {
			if locator == nil {
				problems = append(problems, fmt.Errorf("verb %s names a resource, and the pack cannot locate records", v.Name))
			}
			row.locator = locator
		}
	}
	for name := range handlers {
		if row := d.verbs[name]; row == nil || row.pack != p {
			problems = append(problems, fmt.Errorf("it has a handler for %s, a verb its manifest does not declare", name))
		}
	}
	return errors.Join(problems...)
}

// Close ends every running request, waits for it, and closes the packs in reverse order. Requests that
// come later are refused. It is safe to call more than once.
func (d *Dispatcher) Close() error {
	d.close()
	d.mu.Lock()
	wasOpen := d.life == open
	d.life = closed
	d.mu.Unlock()
	d.running.Wait()
	if !wasOpen {
		return nil
	}
	d.record.stop()
	return closePacks(d.order)
}

func closePacks(order []*pack) error {
	var problems []error
	for i := len(order) - 1; i >= 0; i-- {
		if err := order[i].instance.Close(); err != nil {
			problems = append(problems, fmt.Errorf("close pack %s: %w", order[i].manifest.Name, err))
		}
	}
	return errors.Join(problems...)
}

// Stats returns the counters so far.
func (d *Dispatcher) Stats() Stats {
	return Stats{
		GateUnavailableAllowed: d.stats.gateUnavailableAllowed.Load(),
		AuditUnavailable:       d.stats.auditUnavailable.Load(),
		RecordsLost:            d.stats.recordsLost.Load(),
		ParseErrorsDropped:     d.stats.parseErrorsDropped.Load(),
		HookErrors:             d.stats.hookErrors.Load(),
	}
}
