package opa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbgate/verbgate/policy"
)

// Open activates the policy for the first time and starts watching it. A policy that is not
// activated is a *LoadError; Open may then be called again. ctx bounds the activation only.
func (g *Gate) Open(ctx context.Context) error {
	if err := g.must(unopened); err != nil {
		return fmt.Errorf("open policy gate: %w", err)
	}
	if err := g.activateNow(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life != unopened {
		return fmt.Errorf("open policy gate: %w", notIn(unopened, g.life))
	}
	g.life = open
	if g.cfg.FS == nil && g.cfg.PollInterval > 0 {
		var watchCtx context.Context
		watchCtx, g.stopWatch = context.WithCancel(context.Background())
		g.watching.Go(func() { g.watch(watchCtx) }) // ends when Close cancels it
	}
	return nil
}

// Reload activates the policy as it is now. When that fails the one in use stays, and the error is a
// *LoadError.
func (g *Gate) Reload(ctx context.Context) error {
	if err := g.must(open); err != nil {
		return fmt.Errorf("reload policy: %w", err)
	}
	return g.activateNow(ctx)
}

func (g *Gate) activateNow(ctx context.Context) error {
	if err := g.lock(ctx); err != nil {
		return err
	}
	defer g.unlock()
	return g.activate(ctx, always)
}

// must reports as an error that the gate is not in the stage wanted.
func (g *Gate) must(want life) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return notIn(want, g.life)
}

func notIn(want, is life) error {
	switch {
	case is == want:
		return nil
	case is == closed:
		return policy.ErrGateClosed
	case is == open:
		return errors.New("it was opened before")
	}
	return errors.New("it is not open")
}

// Close stops the gate. Decisions that run, and all later ones, end as policy.Stopped with
// policy.ErrGateClosed. It returns when every goroutine of the gate has ended, or with an error that
// counts the evaluations that can no longer be stopped.
func (g *Gate) Close() error {
	g.mu.Lock()
	first := g.life != closed
	g.life = closed
	if g.stopWatch != nil {
		g.stopWatch()
	}
	g.mu.Unlock()
	if first {
		g.pool.close()
	}
	g.watching.Wait()
	if n := g.pool.wait(g.cfg.Timeout + g.cfg.Grace); n > 0 {
		return fmt.Errorf("close policy gate: %d evaluations did not stop", n)
	}
	return nil
}

// watch looks for changes until ctx ends.
func (g *Gate) watch(ctx context.Context) {
	tick := time.NewTicker(g.cfg.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := g.look(ctx); err != nil && !errors.Is(err, context.Canceled) {
			g.cfg.Log.Error("policy not activated; the one in use stays", "error", err)
		}
	}
}

// look activates the policy when its place looks different from what was tried last. What was wrong
// with the files is not tried again until they change; what could not be read is tried at every look.
func (g *Gate) look(ctx context.Context) error {
	if err := g.lock(ctx); err != nil {
		return err
	}
	defer g.unlock()
	if src, err := g.newSource(); err == nil {
		if now, err := src.list(); err == nil && now.same(g.tried) {
			return nil
		}
	}
	return g.activate(ctx, ifChanged) // which finds and reports what cannot be looked at
}

// lock waits until nobody activates a policy.
func (g *Gate) lock(ctx context.Context) error {
	select {
	case g.activating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("activate policy: %w", ctx.Err())
	}
}

func (g *Gate) unlock() { <-g.activating }

func (g *Gate) place() string {
	if g.cfg.FS != nil {
		return fsSource{}.name()
	}
	return g.cfg.Path
}

type when bool

const (
	always    when = true
	ifChanged when = false // do nothing when the files turn out to be those in use, and say nothing twice
)

// activate reads, compiles and checks the policy and then swaps one pointer. All of it or nothing. The
// caller holds activating.
func (g *Gate) activate(ctx context.Context, w when) error {
	start := time.Now()
	next, seen, err := g.load(ctx, w)
	if err != nil && ctx.Err() != nil {
		// Nobody waits for it any more; that says nothing about the policy.
		return fmt.Errorf("activate policy: %w", ctx.Err())
	}
	g.tried = seen
	if err != nil {
		failed := loadError(g.place(), g.caps, err)
		said := g.problem == failed.Error()
		g.problem = failed.Error()
		if said && seen == nil && w == ifChanged {
			return nil
		}
		return g.report(start, failed)
	}
	g.problem = ""
	if next == nil {
		g.mu.Lock()
		g.lastError = nil
		g.mu.Unlock()
		return nil
	}
	next.at = time.Now()
	g.mu.Lock()
	if g.life == closed {
		g.mu.Unlock()
		return fmt.Errorf("activate policy: %w", policy.ErrGateClosed)
	}
	g.current.Store(next)
	g.mu.Unlock()
	g.cfg.Log.Info("policy activated", "policy", g.place(), "revision", next.revision, "took", time.Since(start))
	return g.report(start, nil)
}

// load returns no snapshot when there is nothing to do. seen is what the place looked like, and nil
// unless the outcome, good or bad, is about what is in the files. The caller holds activating.
func (g *Gate) load(ctx context.Context, w when) (snap *snapshot, seen *listing, err error) {
	// The engine is not trusted to survive every policy.
	defer func() {
		if p := recover(); p != nil {
			snap, err = nil, fmt.Errorf("the engine failed on this policy: %w", panicError(p))
		}
	}()
	src, err := g.newSource()
	if err != nil {
		return nil, nil, err
	}
	read, seen, err := src.read(ctx, limits{bytes: g.cfg.MaxBytes, files: g.cfg.MaxFiles, tests: g.cfg.RunTests})
	if err != nil {
		return nil, seen, err
	}
	if current := g.current.Load(); w == ifChanged && current != nil && current.content == read.content {
		return nil, seen, nil
	}
	if len(read.ignored) > 0 {
		g.cfg.Log.Warn("files of the policy folder are not read; data belongs into data.json or data.yaml", "files", enumerate(read.ignored))
	}
	snap, err = newSnapshot(ctx, read, g)
	return snap, seen, err
}

// report tells everybody how an activation ended. The caller holds activating.
func (g *Gate) report(start time.Time, failed *LoadError) error {
	var err error // not a nil *LoadError in an interface
	if failed != nil {
		err = failed
	}
	g.mu.Lock()
	g.lastError = err
	g.mu.Unlock()
	if g.cfg.OnActivation != nil {
		now := time.Now()
		a := Activation{Err: err, Time: now, Duration: now.Sub(start)}
		if snap := g.current.Load(); snap != nil {
			a.Revision = snap.revision
		}
		g.cfg.OnActivation(a)
	}
	return err
}
