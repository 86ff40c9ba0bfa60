package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/verbgate/verbgate/packs"
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

	mu      sync.Mutex
	down    bool
	trying  bool            // an attempt that tells whether the store is up again is under way
	tried   time.Time       // the last such attempt, or the failure that took the store down
	refused int             // attempts that failed, ever
	waiting []policy.Record // what is not stored yet, oldest first; stays here until it is
	weight  int             // its size, as weigh counts
	stopped bool            // nobody will try again

	recent refusals
	queue  chan policy.Record
	done   chan struct{}
}

// probeEvery is how often a store that is down is tried again.
const probeEvery = time.Second

// maxWaiting bounds the records that wait for a store that is down. Records beyond it are lost, and
// counted.
const maxWaiting = 16 << 20

// admit reports whether an operation can be recorded. A store that is down is tried again by one
// operation a second, with the very records that it refused: that some small thing fits on a full disk
// says nothing of the next record. The other operations are told no at once.
func (r *recorder) admit(ctx context.Context) bool {
	if !r.isDown() {
		return true
	}
	if !r.probe() {
		return false
	}
	r.write(ctx, nil)
	return !r.isDown()
}

// append makes a batch durable and reports whether it is. What cannot be stored waits for the store, as
// far as there is room. Refusals alone are no reason to try a store that is down more often than once a
// second.
func (r *recorder) append(ctx context.Context, batch []policy.Record) bool {
	if r.store == nil || len(batch) == 0 {
		return true
	}
	ran := slices.ContainsFunc(batch, func(rec policy.Record) bool { return rec.Outcome != notRun })
	if !ran && r.putOff(batch) {
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
	return r.turn()
}

// turn is probe with r.mu held.
func (r *recorder) turn() bool {
	if r.trying || time.Since(r.tried) < probeEvery {
		return false
	}
	r.tried = time.Now()
	return true
}

// putOff lets a batch wait when the store is down and it is not the time to try it.
func (r *recorder) putOff(batch []policy.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down || r.turn() {
		return false
	}
	r.keepWaiting(batch)
	return true
}

// ask is Append. A store that panics has not stored anything.
func (r *recorder) ask(ctx context.Context, batch []policy.Record) error {
	_, err := guard(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.store.Append(ctx, batch) })
	return err
}

// attempt is one Append.
type attempt struct {
	own     []policy.Record // the caller's batch
	late    int             // how many of those that wait go before it
	leads   bool            // its success ends an outage
	refused int             // recorder.refused when it began
}

// write asks the store, whoever still waits for the answer, takes down whether it is up, and reports
// whether the batch is stored. What waits goes first and with the batch: they are stored together or not
// at all.
func (r *recorder) write(ctx context.Context, batch []policy.Record) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	a, all := r.begin(batch)
	if !r.end(a, r.ask(ctx, all)) {
		return false
	}
	// What came to wait in the meantime would have to wait for the next operation.
	if r.leftOver() {
		a, all := r.begin(nil)
		r.end(a, r.ask(ctx, all))
	}
	return true
}

// begin takes the records that wait along, unless another attempt has them. They stay where they are
// until they are stored, so nothing that comes meanwhile gets ahead of them or takes their room.
func (r *recorder) begin(batch []policy.Record) (a attempt, all []policy.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a = attempt{own: batch, refused: r.refused}
	if r.trying || (!r.down && len(r.waiting) == 0) {
		return a, batch
	}
	r.trying, a.leads, a.late = true, true, len(r.waiting)
	return a, slices.Concat(r.waiting, batch)
}

// end takes down what came of an attempt. A store that is down is up again when it has taken all that it
// refused: a success beside the attempt that leads, or one during which something else was refused,
// does not tell that.
func (r *recorder) end(a attempt, err error) (stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.leads {
		r.trying = false
	}
	if err != nil {
		r.keepWaiting(a.own)
		r.refused++
		if !r.down {
			r.log.Error("the audit store is down; operations are refused until it takes records again", "records_waiting", len(r.waiting),
				"records_lost", r.lost.Load(), "error", err)
		}
		r.down, r.tried = true, time.Now()
		return false
	}
	for i := range r.waiting[:a.late] {
		r.weight -= weigh(&r.waiting[i])
	}
	r.waiting = slices.Delete(r.waiting, 0, a.late)
	if len(r.waiting) == 0 {
		r.waiting = nil // an outage may have made it large
	}
	if r.down && a.leads && a.refused == r.refused {
		r.down = false
		r.log.Warn("the audit store takes records again", "records_late", a.late, "records_lost", r.lost.Load())
	}
	return true
}

// leftOver reports whether records wait for a store that is up.
func (r *recorder) leftOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.down && !r.trying && len(r.waiting) > 0
}

// keepWaiting keeps a batch for the next attempt. r.mu is held. Params go before records do: that
// something was done is worth more than with what.
func (r *recorder) keepWaiting(batch []policy.Record) {
	for _, rec := range batch {
		if r.stopped {
			r.lost.Add(1)
			continue
		}
		if r.weight+weigh(&rec) > maxWaiting && rec.Params != nil {
			rec.Params = withheld("the audit store was down")
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

// withheld stands for params that cannot be recorded.
func withheld(why string) json.RawMessage {
	return json.RawMessage(`{"$withheld":"` + why + `"}`)
}

// seal gives the params as the record may hold them; nil when params are not recorded.
func (r *recorder) seal(v *packs.Verb, params map[string]any) (sealed json.RawMessage) {
	if r.store == nil || !r.params || params == nil {
		return nil
	}
	defer func() { // whatever happens to the operation, it has a record
		if p := recover(); p != nil {
			r.log.Error("params could not be recorded", "panic_type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			sealed = withheld("not sealable")
		}
	}()
	out, err := encode(v.Seal(params, r.sealer.Seal))
	if err != nil { // plain values always encode; should one not, nothing of it may be kept
		r.log.Error("params could not be recorded", "error_type", fmt.Sprintf("%T", err))
		return withheld("not encodable")
	}
	return out
}

// stop stores what is queued and what waits, and ends.
func (r *recorder) stop() {
	close(r.queue)
	<-r.done
	if r.pending() {
		r.write(context.Background(), nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if len(r.waiting) > 0 {
		r.lost.Add(int64(len(r.waiting)))
		r.log.Error("audit records are lost: the store did not come back", "records_lost", r.lost.Load())
	}
}

// pending reports whether records wait.
func (r *recorder) pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

// Record stores a record of something that no operation did, such as the activation of a policy. When
// it reports false the store is down, and operations are refused until it is up again; the record waits
// for that.
func (d *Dispatcher) Record(ctx context.Context, rec policy.Record) bool {
	return d.record.append(ctx, []policy.Record{rec})
}
