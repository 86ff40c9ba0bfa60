package dispatcher

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/policy"
)

// recorder stands between the pipeline and the audit store: it seals params, knows whether the store
// is down, and keeps parse errors from holding anybody up.
type recorder struct {
	store   Recorder // nil keeps no records
	sealer  Sealer
	params  bool
	timeout time.Duration
	log     *slog.Logger
	lost    *atomic.Int64 // records that could not be stored
	dropped *atomic.Int64 // parse errors too many to record

	mu      sync.Mutex
	down    bool
	tried   time.Time       // the last attempt since it went down
	waiting []policy.Record // what could not be stored yet, oldest first; the next attempt is made with it
	weight  int             // its size, as weigh counts
	recent  refusals

	queue chan policy.Record
	done  chan struct{}
}

// probeEvery is how often a store that is down is tried again.
const probeEvery = time.Second

// maxWaiting bounds the records that wait for a store that is down. Records beyond it are lost, and
// counted.
const maxWaiting = 16 << 20

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

// admit reports whether an operation can be recorded. A store that is down is tried again by one
// operation a second, with the very records that it refused: that some small thing fits on a full disk
// says nothing of the next record. The other operations are told no at once.
func (r *recorder) admit(ctx context.Context) bool {
	return !r.isDown() || (r.probe() && r.write(ctx, nil))
}

// append makes a batch durable and reports whether it is. What cannot be stored waits for the store, as
// far as there is room. Refusals alone are no reason to try a store that is down more often than once a
// second.
func (r *recorder) append(ctx context.Context, batch []policy.Record) bool {
	if r.store == nil || len(batch) == 0 {
		return true
	}
	ran := slices.ContainsFunc(batch, func(rec policy.Record) bool { return rec.Outcome != notRun })
	if !ran && r.isDown() && !r.probe() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepWaiting(batch)
		return false
	}
	return r.write(ctx, batch)
}

func (r *recorder) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// probe reports whether it is time to try a store that is down, and takes the turn.
func (r *recorder) probe() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.tried) < probeEvery {
		return false
	}
	r.tried = time.Now()
	return true
}

// write asks the store, whoever still waits for the answer, and takes down whether it is up. What waits
// goes first and with the batch: they are stored together or not at all.
func (r *recorder) write(ctx context.Context, batch []policy.Record) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	r.mu.Lock()
	late := r.waiting
	r.waiting, r.weight = nil, 0
	r.mu.Unlock()
	all := batch
	if len(late) > 0 {
		all = append(slices.Clone(late), batch...)
	}
	err := r.store.Append(ctx, all)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.keepWaiting(all)
	}
	switch {
	case err != nil && !r.down:
		r.log.Error("the audit store is down; operations are refused until it takes records again", "records_waiting", len(r.waiting),
			"records_lost", r.lost.Load(), "error", err)
	case err == nil && r.down:
		r.log.Warn("the audit store takes records again", "records_late", len(late), "records_lost", r.lost.Load())
	}
	if r.down = err != nil; r.down {
		r.tried = time.Now()
	}
	return err == nil
}

// keepWaiting keeps a batch for the next attempt. r.mu is held. Params go before records do: that
// something was done is worth more than with what.
func (r *recorder) keepWaiting(batch []policy.Record) {
	for _, rec := range batch {
		if r.weight+weigh(&rec) > maxWaiting && rec.Params != nil {
			rec.Params = json.RawMessage(`{"$withheld":"the audit store was down"}`)
		}
		if r.weight+weigh(&rec) > maxWaiting {
			r.lost.Add(1)
			continue
		}
		r.weight += weigh(&rec)
		r.waiting = append(r.waiting, rec)
	}
}

// weigh is about how much memory a record takes.
func weigh(rec *policy.Record) int {
	n := 1024 + len(rec.Params)
	for _, e := range rec.Events {
		n += len(e.Payload)
	}
	return n
}

// seal gives the params as the record may hold them; nil when params are not recorded.
func (r *recorder) seal(v *verb, params map[string]any) json.RawMessage {
	if r.store == nil || !r.params || params == nil {
		return nil
	}
	sealed := v.declaration().Seal(params, r.sealer.Seal)
	out, err := encode(sealed)
	if err != nil { // plain values always encode; should one not, nothing of it may be kept
		r.log.Error("params could not be recorded", "error", err)
		return json.RawMessage(`{"$withheld":"not encodable"}`)
	}
	return out
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

// stop stores what is queued and what waits, and ends.
func (r *recorder) stop() {
	close(r.queue)
	<-r.done
	if r.store == nil || !r.isDown() || r.write(context.Background(), nil) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost.Add(int64(len(r.waiting)))
	r.log.Error("audit records are lost: the store did not come back", "records_lost", r.lost.Load())
}

// Record stores a record of something that no operation did, such as the activation of a policy. When
// it reports false the store is down, and operations are refused until it is up again; the record waits
// for that.
func (d *Dispatcher) Record(ctx context.Context, rec policy.Record) bool {
	return d.record.append(ctx, []policy.Record{rec})
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
