package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/policy"
)

// The bounds of parse errors on record (dispatch.md 7).
const (
	parseErrorsPerSecond = 100 // and actor
	parseErrorQueue      = 1024
	parseErrorActors     = 4096
)

// refusals counts the parse errors of the current second.
type refusals struct {
	second int64
	of     map[string]int
}

// start begins to take parse errors.
func (r *recorder) start() {
	r.queue, r.done = make(chan policy.Record, parseErrorQueue), make(chan struct{})
	go func() { // ends when stop closes the queue
		defer close(r.done)
		for rec := range r.queue {
			batch := []policy.Record{rec}
			for len(batch) < parseErrorQueue {
				select {
				case next, more := <-r.queue:
					if more {
						batch = append(batch, next)
						continue
					}
				default:
				}
				break
			}
			r.append(context.Background(), batch)
		}
	}()
}

// RecordParseError records a text that was no request. It does not wait for the store: at most 100 a
// second and actor are recorded, the rest are counted (dispatch.md 7). It may be called at any time.
func (d *Dispatcher) RecordParseError(_ context.Context, caller Caller, err *request.Error) {
	if !d.enter() {
		return
	}
	defer d.running.Done()
	r := &d.record
	now := time.Now().UTC()
	actor := caller.Actor.String()
	if r.store == nil || !r.recent.allow(&r.mu, now.Unix(), actor) {
		d.stats.parseErrorsDropped.Add(1)
		return
	}
	rec := policy.Record{
		ID: uuid.NewString(), Kind: policy.KindRefusal, Time: now, RequestID: uuid.NewString(), Source: string(caller.Source),
		SessionID: caller.SessionID, Actor: actor, Decision: "refused", Effect: "denied", Reason: "parse error: " + string(err.Kind),
		Obligations: []string{}, Outcome: notRun, ErrorCode: string(CodeInvalidParams),
	}
	select {
	case r.queue <- rec:
	default:
		d.stats.parseErrorsDropped.Add(1)
	}
}

func (f *refusals) allow(mu *sync.Mutex, second int64, actor string) bool {
	mu.Lock()
	defer mu.Unlock()
	if f.second != second || f.of == nil {
		f.second, f.of = second, make(map[string]int)
	}
	if n, known := f.of[actor]; n >= parseErrorsPerSecond || (!known && len(f.of) >= parseErrorActors) {
		return false
	}
	f.of[actor]++
	return true
}
