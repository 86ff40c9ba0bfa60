package opa

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/verbgate/verbgate/policy"
)

// maxAbandoned is how many given-up evaluations may still run before the gate refuses to start more.
const maxAbandoned = 4

// maxKeptItems bounds the scratch space that a job keeps for its next evaluation.
const maxKeptItems = 1024

// pool runs evaluations on goroutines of its own, because a built-in function cannot be interrupted:
// whoever waits for one must be able to walk away. The goroutines are kept, with the stacks that
// evaluations need; a new one is started only while all are busy and there are fewer than limit.
type pool struct {
	queue chan *job     // unbuffered: a job that was sent has a goroutine
	stop  chan struct{} // closed by close; ends the goroutines
	jobs  sync.Pool     // of *job, none of them abandoned

	mu     sync.Mutex // guards live, closed, and the start of goroutines against wait
	live   int        // goroutines, without those whose evaluation was abandoned
	limit  int
	closed bool

	running       sync.WaitGroup
	abandoned     atomic.Int64 // given up and still running
	everAbandoned atomic.Uint64
}

func (p *pool) init(limit int) {
	p.queue = make(chan *job)
	p.stop = make(chan struct{})
	p.limit = limit
	p.jobs.New = func() any { return newJob() }
}

// job is one evaluation. It is reused, unless it was abandoned.
type job struct {
	builder builder
	gate    *Gate
	ctx     context.Context
	input   ast.Value

	done  chan struct{} // buffered; one signal an evaluation
	state atomic.Uint32 // jobRunning, then one of the others, whoever is first
	timer *time.Timer   // of the waiting side

	cancel  cancelFlag
	errs    []topdown.Error
	options []rego.EvalOption // [0] is the input
	made    *snapshot         // whose options these are

	snap *snapshot // that judged
	out  outcome
}

const (
	jobRunning uint32 = iota
	jobFinished
	jobAbandoned
)

// cancelFlag is a topdown.Cancel that can be used again.
type cancelFlag struct{ atomic.Bool }

func (c *cancelFlag) Cancel()         { c.Store(true) }
func (c *cancelFlag) Cancelled() bool { return c.Load() }

func newJob() *job {
	j := &job{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	j.timer.Stop()
	return j
}

func (p *pool) get() *job { return p.jobs.Get().(*job) }

// put takes back a job that nobody evaluates any more.
func (p *pool) put(j *job) {
	j.timer.Stop()
	j.cancel.Store(false)
	j.state.Store(jobRunning)
	j.errs, j.builder.slab = nil, nil
	if cap(j.builder.items) > maxKeptItems {
		j.builder.items = nil
	}
	j.gate, j.ctx, j.input, j.snap, j.out = nil, nil, nil, nil, outcome{}
	if len(j.options) > 0 {
		j.options[0] = nil
	}
	p.jobs.Put(j)
}

// optionsFor are the options of an evaluation under snap, made anew only when the snapshot changed.
func (j *job) optionsFor(snap *snapshot) []rego.EvalOption {
	if j.made != snap {
		j.made = snap
		j.options = append(j.options[:0], nil,
			rego.EvalTransaction(snap.txn),
			rego.EvalMetrics(metrics.NoOp()),
			rego.EvalExternalCancel(&j.cancel),
			rego.EvalBuiltinErrorList(&j.errs))
	}
	j.options[0] = rego.EvalParsedInput(j.input)
	return j.options
}

// start hands the job to a goroutine. The error is the reason why none took it: a cause of
// policy.Stopped, or errBusy when none became free within patience.
func (p *pool) start(ctx context.Context, j *job, patience time.Duration) error {
	select {
	case p.queue <- j:
		return nil
	default:
	}
	p.mu.Lock()
	if !p.closed && p.live < p.limit {
		p.live++
		p.running.Add(1)
		p.mu.Unlock()
		go p.work(j) // ends when the pool is closed, or when its evaluation was abandoned and returns
		return nil
	}
	p.mu.Unlock()
	j.timer.Reset(patience)
	defer j.timer.Stop()
	select {
	case p.queue <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.stop:
		return policy.ErrGateClosed
	case <-j.timer.C:
		return errBusy
	}
}

func (p *pool) work(j *job) {
	defer p.running.Done()
	for {
		j.evaluate()
		if !j.state.CompareAndSwap(jobRunning, jobFinished) {
			p.abandoned.Add(-1)
			return // its place has been given to another
		}
		j.done <- struct{}{}
		select {
		case j = <-p.queue:
		case <-p.stop:
			return
		}
	}
}

// abandon gives up the wait for j and makes room for another goroutine. It reports false when the
// evaluation ended just now.
func (p *pool) abandon(j *job) bool {
	p.abandoned.Add(1)
	if !j.state.CompareAndSwap(jobRunning, jobAbandoned) {
		p.abandoned.Add(-1)
		return false
	}
	p.everAbandoned.Add(1)
	p.mu.Lock()
	p.live--
	p.mu.Unlock()
	return true
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	close(p.stop)
}

// wait waits for all goroutines to end, though not longer than patience, and returns how many
// evaluations still run then.
func (p *pool) wait(patience time.Duration) int64 {
	ended := make(chan struct{})
	go func() { // ends with the last evaluation, so at the latest when that can be stopped
		p.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return 0
	case <-timer.C:
		return max(1, p.abandoned.Load())
	}
}
