// Package sqlite keeps Verbgate's records in SQLite files: it opens them, migrates them, and runs
// transactions on them. The packs' backends and the audit store all go through it, so there is one
// way a file is opened.
//
// Files is a folder with one file a backend; packs that name the same backend share its file. DB is
// one open file. Both speak the language of package packs: DB is a packs.Backend.
//
// What the package does not do: it knows no table but its own list of migrations, builds no SQL for
// anybody, and takes no backups.
//
// Invariants. Every connection runs in WAL mode with synchronous=FULL, so a committed transaction
// survives a power cut. There is one write connection a DB, and its transactions take the write lock
// when they begin, so none can fail half-way for want of it. Reads have connections of their own
// that cannot write. A failure is told by the driver's result code, never by its text. Several
// processes may have one file open.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/verbgate/verbgate/packs"
)

// Files is a folder of SQLite files, one a backend. It is safe for concurrent use.
type Files struct {
	dir string
	log *slog.Logger

	mu     sync.Mutex
	closed bool
	open   map[string]*DB
	order  []string // the backends in the order they were opened
}

// New returns the backends kept in the folder dir. It touches nothing: the folder is made when the
// first backend is opened. A nil log discards.
func New(dir string, log *slog.Logger) *Files {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Files{dir: dir, log: log, open: map[string]*DB{}}
}

// A backend's name becomes a file name, so it can hold neither a separator nor a dot.
var backendName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// OpenBackend opens dir/backend.db, once for all packs that name it, and brings pack's tables to
// schema. The backend stays open until Close. Errors are those of Open and DB.Migrate.
func (f *Files) OpenBackend(ctx context.Context, backend, pack string, schema packs.Schema) (packs.Backend, error) {
	db, err := f.db(ctx, backend)
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, pack, schema.Migrations); err != nil {
		return nil, err
	}
	return db, nil
}

func (f *Files) db(ctx context.Context, backend string) (*DB, error) {
	if !backendName.MatchString(backend) {
		return nil, fmt.Errorf("backend name %q: write a lower-case letter, then up to 63 lower-case letters, digits or underscores", backend)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("open backend %s: %w", backend, ErrClosed)
	}
	if db, ok := f.open[backend]; ok {
		return db, nil
	}
	db, err := Open(ctx, filepath.Join(f.dir, backend+".db"), f.log)
	if err != nil {
		return nil, err
	}
	f.open[backend] = db
	f.order = append(f.order, backend)
	return db, nil
}

// Close closes the backends in the order they were opened and joins their errors. Every further
// OpenBackend fails with ErrClosed; a second Close does nothing.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var errs []error
	for _, name := range f.order {
		errs = append(errs, f.open[name].Close())
	}
	f.open, f.order = nil, nil
	return errors.Join(errs...)
}
