package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/verbgate/verbgate/packs"
)

// BusyTimeout is how long a transaction waits for a lock that another process holds.
const BusyTimeout = 5 * time.Second

const (
	walLimit        = 64 << 20 // bytes the WAL file may keep after a checkpoint emptied it
	readerIdleTime  = 5 * time.Minute
	openRetryDelay  = 20 * time.Millisecond
	fileMode        = 0o600
	folderMode      = 0o700
	minimumReaders  = 4
	smallestPage    = 512 // bytes
	databaseFileExt = ".db"
)

// DB is one open SQLite file. It is safe for concurrent use.
type DB struct {
	path string
	file os.FileInfo // what path named when it was opened
	wal  os.FileInfo // and the WAL beside it
	name string      // the backend's, for errors
	log  *slog.Logger

	read, write *sql.DB
	held        *sql.Conn // of read; see hold

	mu      sync.Mutex // guards closed, and orders running.Add before running.Wait
	closed  bool
	running sync.WaitGroup // the transactions under way
}

var _ packs.Backend = (*DB)(nil)

// Open opens the SQLite file at path, made with mode 0600 if it is not there, its folder with 0700.
// The backend's name in errors is the file's name without extension. A nil log discards. An error
// names the file and the way out; it is an *OpenError unless ctx ended.
func Open(ctx context.Context, path string, log *slog.Logger) (*DB, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if err := prepareFile(abs); err != nil {
		return nil, openError(abs, err)
	}
	file, err := os.Stat(abs)
	if err != nil {
		return nil, openError(abs, err)
	}
	db := &DB{path: abs, file: file, name: strings.TrimSuffix(filepath.Base(abs), databaseFileExt), log: log}
	if db.write, err = pool(abs, false, 1); err == nil {
		db.read, err = pool(abs, true, 1+max(minimumReaders, runtime.NumCPU())) // one is held
	}
	if err == nil {
		err = db.connect(ctx)
	}
	if err == nil {
		err = db.hold(ctx)
	}
	if err != nil {
		db.closePools()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open %s: %w", abs, ctx.Err())
		}
		return nil, openError(abs, err)
	}
	return db, nil
}

// prepareFile makes the folder and an empty file, so that both have their modes from the start;
// SQLite gives its side files the mode of the main one.
func prepareFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// An existing file is never opened here: closing a descriptor of it drops the POSIX locks that
	// SQLite may hold on it elsewhere in this process.
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errNotRegular
	}
	// SQLite would take a file of one byte for an empty one, and write over it.
	if info.Size() > 0 && info.Size() < smallestPage {
		return errTooShort
	}
	return nil
}

// pool returns a pool of connections, none of them opened yet.
func pool(path string, readOnly bool, size int) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed
	}
	query := url.Values{
		"_busy_timeout": {strconv.FormatInt(BusyTimeout.Milliseconds(), 10)},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
		"_defensive":    {"1"},
		"_dqs":          {"0"}, // a misspelt column in double quotes is an error, not a string
		"_error_rc":     {"1"},
		"_pragma": {
			"trusted_schema(0)",
			"temp_store(MEMORY)", // records never reach the system's folder for temporary files
			"journal_size_limit(" + strconv.Itoa(walLimit) + ")",
		},
	}
	if readOnly {
		query.Set("mode", "ro")
		query.Set("_query_only", "1")
	} else {
		query.Set("mode", "rw")
		query.Set("_journal_mode", "WAL")
		query.Set("_txlock", "immediate")
	}
	connector, err := driver.NewConnector((&url.URL{Scheme: "file", Path: slashed, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	p := sql.OpenDB(connector)
	p.SetMaxOpenConns(size)
	p.SetMaxIdleConns(size)
	if readOnly {
		p.SetConnMaxIdleTime(readerIdleTime)
	}
	return p, nil
}

// connect opens the first connection of each pool. Turning a new file to WAL mode needs a lock that
// SQLite does not wait for when two connections want it at once, hence the repetition.
func (db *DB) connect(ctx context.Context) error {
	deadline := time.Now().Add(BusyTimeout)
	for {
		err := db.check(ctx)
		if code := resultCode(err); code&0xff != codes.SQLITE_BUSY || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(openRetryDelay):
		}
	}
}

// check reads the first page through both pools and takes the write lock for a moment, which finds
// a damaged header, a foreign file and a folder that cannot be written at once, not at the first call.
func (db *DB) check(ctx context.Context) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	var mode string
	if err := tx.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return errNoWAL
	}
	var tables int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	// On a file that may only be read, SQLite lets a write transaction begin, so write something.
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = 1"); err != nil {
		return err
	}
	return db.read.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
}

// Path is the absolute path of the file.
func (db *DB) Path() string { return db.path }

// Read runs fn in a read-only transaction: fn sees the file as it was at fn's first query. See
// packs.Backend for the errors.
func (db *DB) Read(ctx context.Context, fn func(*sql.Tx) error) error {
	return db.run(ctx, db.read, &sql.TxOptions{ReadOnly: true}, fn)
}

// Write runs fn in the file's single write transaction and commits it; when it returns nil, what fn
// wrote is on disk. An error or a panic of fn, and the end of ctx, roll back. fn must not call Write
// again, nor wait for anybody who does: the second would wait for the first. See packs.Backend for
// the errors.
func (db *DB) Write(ctx context.Context, fn func(*sql.Tx) error) error {
	return db.run(ctx, db.write, nil, fn)
}

func (db *DB) run(ctx context.Context, p *sql.DB, opts *sql.TxOptions, fn func(*sql.Tx) error) error {
	if !db.enter() {
		return &packs.UnavailableError{Backend: db.name, Err: ErrClosed}
	}
	defer db.running.Done()
	if err := db.inPlace(); err != nil {
		return err
	}
	tx, err := p.BeginTx(ctx, opts)
	if err != nil {
		return db.translate(ctx, err)
	}
	// Also on a panic and on runtime.Goexit; after a commit it does nothing.
	defer tx.Rollback() //nolint:errcheck // the first error says more
	if err := fn(tx); err != nil {
		return db.translate(ctx, err)
	}
	if opts != nil && opts.ReadOnly {
		return nil
	}
	if err := db.inPlace(); err != nil {
		return err
	}
	return db.translate(ctx, tx.Commit())
}

// hold keeps one connection for good, which keeps SQLite from ever removing the WAL: that the WAL is
// another one, or gone, is then somebody else's doing.
func (db *DB) hold(ctx context.Context) error {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return err
	}
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return errors.Join(err, conn.Close())
	}
	db.held = conn
	db.wal, err = os.Stat(db.path + walExt)
	return err
}

// inPlace finds a file, or its WAL, that was removed, moved or replaced: what is written to it would be
// durable and found by nobody.
func (db *DB) inPlace() error {
	err := same(db.path, db.file)
	if err == nil {
		err = same(db.path+walExt, db.wal)
	}
	if err == nil {
		return nil
	}
	return &packs.UnavailableError{Backend: db.name, Err: err}
}

func same(path string, was os.FileInfo) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && os.SameFile(info, was):
		return nil
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return errMoved
	}
	return err
}

// walExt is what the name of a file's WAL ends in.
const walExt = "-wal"

func (db *DB) enter() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return false
	}
	db.running.Add(1)
	return true
}

// Close waits for the transactions under way, moves the WAL into the file and closes it. What was
// committed is safe even when Close fails. Every further call fails with ErrClosed as its cause; a
// second Close does nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	closed := db.closed
	db.closed = true
	db.mu.Unlock()
	if closed {
		return nil
	}
	db.running.Wait()
	// Readers first: the last connection to go empties and removes the WAL, and only the writer can.
	// When another process has the file open it will do so; PASSIVE does not wait for it.
	_, err := db.write.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	if err = errors.Join(err, db.closePools()); err != nil {
		return fmt.Errorf("close %s: %w", db.path, err)
	}
	return nil
}

func (db *DB) closePools() error {
	var errs []error
	if db.held != nil {
		errs = append(errs, db.held.Close())
	}
	for _, p := range []*sql.DB{db.read, db.write} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
