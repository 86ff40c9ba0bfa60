// Package audit is the event store: it makes the records of what was asked, decided and done durable
// in a SQLite file of its own, reads them back, writes them as text, and seals sensitive values
// before they get here (dispatch.md 7).
//
// Store is a dispatcher.Recorder in mode sync: when Append returns nil, the whole batch survives a
// power cut. Appends that wait at the same time share one commit. Key is a dispatcher.Sealer.
//
// Every record is an event of its kind's topic, and so is what a pack emitted while the operation ran; it
// is stored with the record, in one transaction. Bounds, Events and Changed let somebody follow a topic from
// any cursor on, across restarts and whichever process stored the events. Retention, if it is configured,
// removes the oldest rows in the background.
//
// What the package does not do: it decides nothing, refuses no operation (the dispatcher does, while
// the store is down), does not know who follows nor what they may see, and never sees a value that should
// have been sealed.
//
// Invariants. A batch is stored whole or not at all. Records get a cursor without gaps that rises in
// the order of the commits, and so do the events of each topic: both are numbered under the file's one
// write lock, which a transaction takes before it looks for the next number and keeps until it has
// committed, so no number appears after a higher one, not even from another process; and numbers are never
// used twice, even when what had them was removed. One goroutine stores; a second one removes, a little at
// a time; a third looks for what other processes stored; Close ends them. Memory is bounded: when the queue is
// full, Append waits until its context ends. A failure is not remembered: the next call tries again.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
)

// Errors of a Store that is not open.
var (
	ErrNotOpen = errors.New("the audit store was not opened")
	ErrClosed  = errors.New("the audit store was closed")
)

// Config configures a Store.
type Config struct {
	Path      string       // of the SQLite file; made when it is not there
	Log       *slog.Logger // nil discards
	Retention Retention    // zero keeps everything
}

// Store keeps audit records. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu    sync.Mutex  // serialises Open and Close
	ended atomic.Bool // Close was called
	live  atomic.Pointer[live]
}

// live is what an open store runs on.
type live struct {
	db      *sqlite.DB
	jobs    chan *job
	stop    chan struct{} // closed by Close: no new jobs, the writer finishes and ends
	stopped chan struct{} // closed by the writer when it has ended

	log     *slog.Logger
	changes changes
	keep    Retention
	fresh   int64         // rows stored since the remover was last told; the writer's
	due     chan struct{} // room for one: there may be rows to remove

	halt       context.CancelFunc // ends those in background
	background sync.WaitGroup     // the remover and the poller

	batches, commits, records, events, prunedRecords, prunedEvents atomic.Int64
}

// New checks cfg and returns a store that is not open yet.
func New(cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("audit store: no path of a file")
	}
	if cfg.Retention.Age < 0 || cfg.Retention.Rows < 0 {
		return nil, errors.New("audit store: a retention below zero; 0 keeps everything")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{cfg: cfg}, nil
}

// Open opens and migrates the file and starts the writer. ctx bounds the opening only. The errors
// are those of sqlite.Open and sqlite.DB.Migrate, for the person who runs the program.
func (s *Store) Open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return ErrClosed
	}
	if s.live.Load() != nil {
		return errors.New("the audit store is open already")
	}
	db, err := sqlite.Open(ctx, s.cfg.Path, s.cfg.Log)
	if err != nil {
		return fmt.Errorf("open audit store: %w", err)
	}
	if err := db.Migrate(ctx, "audit", migrations); err != nil {
		return errors.Join(fmt.Errorf("open audit store: %w", err), db.Close())
	}
	l := &live{
		db: db, jobs: make(chan *job, queueLength), stop: make(chan struct{}), stopped: make(chan struct{}),
		log: s.cfg.Log, keep: s.cfg.Retention, due: make(chan struct{}, 1), changes: changes{asked: make(chan struct{}, 1)},
	}
	var running context.Context // of the background, which outlives ctx
	running, l.halt = context.WithCancel(context.WithoutCancel(ctx))
	go l.write() // ended by Close
	l.background.Go(func() { l.poll(running) })
	if l.keep != (Retention{}) {
		l.background.Go(func() { l.retain(running) })
	}
	s.live.Store(l)
	return nil
}

// Append stores the batch, all of it or nothing; when it returns nil the records are on disk. An
// empty batch asks whether the store can commit, by really committing something. When ctx ends first,
// Append returns its error at once and the batch is stored whole or not at all, nobody knows which.
// Any other error means that the batch was not stored. A record whose id is there already is left as it is,
// with its events, so a batch may be sent again. The batch must not change until Append
// returns, nor after it returned because ctx ended.
func (s *Store) Append(ctx context.Context, batch []policy.Record) error {
	l := s.live.Load()
	if l == nil {
		return s.absence()
	}
	return l.append(ctx, batch)
}

func (s *Store) absence() error {
	if s.ended.Load() {
		return ErrClosed
	}
	return ErrNotOpen
}

// Stats counts what an open store did since Open.
type Stats struct {
	Batches int64 // taken in, stored or not
	Records int64 // stored
	Commits int64 // that stored them, or answered an empty batch
	Queued  int   // batches waiting for the writer
	Events  int64 // that packs emitted, stored with their records

	PrunedRecords, PrunedEvents int64 // removed by this process
}

// Stats returns the counters; zero for a store that is not open.
func (s *Store) Stats() Stats {
	l := s.live.Load()
	if l == nil {
		return Stats{}
	}
	return Stats{
		Batches: l.batches.Load(), Records: l.records.Load(), Commits: l.commits.Load(), Queued: len(l.jobs), Events: l.events.Load(),
		PrunedRecords: l.prunedRecords.Load(), PrunedEvents: l.prunedEvents.Load(),
	}
}

// Close stores what is queued, ends the store's goroutines and closes the file. Whoever waits for a change
// wakes; further calls that read or store fail with ErrClosed; a second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended.Store(true)
	l := s.live.Swap(nil)
	if l == nil {
		return nil
	}
	l.halt()
	close(l.stop)
	<-l.stopped
	l.background.Wait()
	l.changes.end()
	return l.db.Close()
}
