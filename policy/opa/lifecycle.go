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
	if err := g.activate(ctx, always); err != nil {
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

// watch looks for changes. A policy that failed is not tried again until it changes.
func (g *Gate) watch(ctx context.Context) {
	tick := time.NewTicker(g.cfg.PollInterval)
	defer tick.Stop()
	var lastProblem string
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		src, err := g.newSource()
		var now *listing
		if err == nil {
			now, err = src.list()
		}
		if err != nil {
			// The place itself cannot be looked at: say so once, not at every look.
			if err.Error() != lastProblem {
				lastProblem = err.Error()
				g.logFailure(g.fail(ctx, err))
			}
			continue
		}
		back := lastProblem != "" // even unchanged it is news that the place can be looked at again
		lastProblem = ""
		if changed, err := g.changed(ctx, now); err == nil && (changed || back) {
			g.logFailure(g.activate(ctx, ifChanged))
		}
	}
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

// changed reports whether the place looks different from what was tried last.
func (g *Gate) changed(ctx context.Context, now *listing) (bool, error) {
	if err := g.lock(ctx); err != nil {
		return false, err
	}
	defer g.unlock()
	return !now.same(g.tried), nil
}

func (g *Gate) logFailure(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		g.cfg.Log.Error("policy not activated; the one in use stays", "error", err)
	}
}

// fail reports an activation that did not get as far as reading anything.
func (g *Gate) fail(ctx context.Context, err error) error {
	if err := g.lock(ctx); err != nil {
		return err
	}
	defer g.unlock()
	return g.report(time.Now(), loadError(g.place(), g.caps, err))
}

func (g *Gate) place() string {
	if g.cfg.FS != nil {
		return fsSource{}.name()
	}
	return g.cfg.Path
}

type when bool

const (
	always    when = true
	ifChanged when = false // do nothing when the files turn out to be those in use
)

// activate reads, compiles and checks the policy and then swaps one pointer. All of it or nothing.
func (g *Gate) activate(ctx context.Context, w when) error {
	if err := g.lock(ctx); err != nil {
		return err
	}
	defer g.unlock()
	start := time.Now()
	next, err := g.load(ctx, w)
	switch {
	case err != nil && ctx.Err() != nil:
		// Nobody waits for it any more; that says nothing about the policy.
		return fmt.Errorf("activate policy: %w", ctx.Err())
	case err != nil:
		return g.report(start, loadError(g.place(), g.caps, err))
	case next == nil:
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

// load returns nil when there is nothing to do. The caller holds activating.
func (g *Gate) load(ctx context.Context, w when) (snap *snapshot, err error) {
	// The engine is not trusted to survive every policy.
	defer func() {
		if p := recover(); p != nil {
			snap, err = nil, fmt.Errorf("the engine failed on this policy: %w", panicError(p))
		}
	}()
	src, err := g.newSource()
	if err != nil {
		return nil, err
	}
	read, seen, err := src.read(ctx, limits{bytes: g.cfg.MaxBytes, files: g.cfg.MaxFiles, tests: g.cfg.RunTests})
	if seen != nil {
		g.tried = seen
	}
	if err != nil {
		return nil, err
	}
	if current := g.current.Load(); w == ifChanged && current != nil && current.content == read.content {
		return nil, nil
	}
	if len(read.ignored) > 0 {
		g.cfg.Log.Warn("files of the policy folder are not read; data belongs into data.json or data.yaml", "files", enumerate(read.ignored))
	}
	return newSnapshot(ctx, read, g)
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
