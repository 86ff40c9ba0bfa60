package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

const (
	groupRows   = 512  // rows after which a commit takes no further batch
	queueLength = 1024 // batches that wait for the writer before Append has to wait itself
)

// job is one batch on its way to the writer.
type job struct {
	batch []policy.Record
	taken atomic.Bool // by the writer, or by the caller to withdraw it; whoever is first owns it
	done  chan error  // room for the one answer, so the writer never waits for a caller
}

func (l *live) append(ctx context.Context, batch []policy.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{batch: batch, done: make(chan error, 1)}
	select {
	case l.jobs <- j:
		l.batches.Add(1)
	case <-l.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		j.taken.Store(true) // still queued: it will not be stored
		return ctx.Err()
	case <-l.stopped:
		// The writer ended: with this job answered just now, or left in the queue.
		select {
		case err := <-j.done:
			return err
		default:
			return ErrClosed
		}
	}
}

// write is the writer's goroutine. It ends when Close closes l.stop, after what was queued by then.
func (l *live) write() {
	defer close(l.stopped)
	for {
		select {
		case j := <-l.jobs:
			l.commit(l.group(j))
		case <-l.stop:
			for {
				select {
				case j := <-l.jobs:
					l.commit(l.group(j))
				default:
					return
				}
			}
		}
	}
}

// group returns first and the batches queued behind it, as far as they fit one commit. Nobody waits
// for company: while one commit is under way, the next group gathers by itself.
func (l *live) group(first *job) []*job {
	var jobs []*job
	rows := 0
	for j := first; ; {
		if !j.taken.Swap(true) {
			jobs = append(jobs, j)
			rows += len(j.batch)
		}
		if rows >= groupRows {
			return jobs
		}
		select {
		case j = <-l.jobs:
		default:
			return jobs
		}
	}
}

// commit stores the jobs in one transaction and answers them. When a record itself is at fault and
// not the store, every job gets a transaction of its own, so that none fails for its neighbour.
func (l *live) commit(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	err := l.store(jobs)
	var unavailable *packs.UnavailableError
	if err != nil && len(jobs) > 1 && !errors.As(err, &unavailable) {
		for _, j := range jobs {
			j.done <- l.store([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		j.done <- err
	}
}

func (l *live) store(jobs []*job) error {
	rows, events := 0, 0
	for _, j := range jobs {
		rows += len(j.batch)
		for i := range j.batch {
			events += len(j.batch[i].Events)
		}
	}
	// Not the callers' contexts: one that goes away must not take the others' records with it. The
	// wait for a lock is bounded by sqlite.BusyTimeout.
	ctx := context.Background()
	err := l.db.Write(ctx, func(tx *sql.Tx) error {
		if rows == 0 {
			return probe(ctx, tx)
		}
		return insert(ctx, tx, jobs)
	})
	if err != nil {
		return fmt.Errorf("store %d audit records: %w", rows, err)
	}
	l.commits.Add(1)
	l.records.Add(int64(rows))
	l.events.Add(int64(events))
	if rows > 0 {
		l.changes.announce()
		l.grown(int64(rows + events))
	}
	return nil
}
