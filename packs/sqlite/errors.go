package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/verbgate/verbgate/packs"
)

// ErrClosed is the cause of calls on a DB or Files that was closed.
var ErrClosed = errors.New("it was closed")

var (
	errNotRegular = errors.New("not a regular file")
	errMoved      = errors.New("its file was moved, removed or replaced while it was open")
	errTooShort   = errors.New("too short for a database")
	errNoWAL      = errors.New("the file system does not support write-ahead logging")
	errForeign    = errors.New("made by another program")
)

// OpenError says why a file cannot be used. Its text names the file, what is wrong and the way out,
// for the person who runs the program.
type OpenError struct {
	Path    string
	Problem string // what is wrong with the file
	Remedy  string // what to do about it
	Err     error  // the system's or the driver's error
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("data file %s: %s; %s", e.Path, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// NewerError says that a file's tables were made by a newer version of their owner.
type NewerError struct {
	Path  string
	Owner string // a pack's name, or another user of the file
	Have  int    // the version in the file
	Known int    // the newest this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("data file %s: written by a newer version of %s (schema %d, this program knows %d); run the newer program, or choose another data folder",
		e.Path, e.Owner, e.Have, e.Known)
}

// EditedError says that a migration that a file went through is not the one the program has.
type EditedError struct {
	Path    string
	Owner   string
	Version int // of the migration, from 1
}

func (e *EditedError) Error() string {
	return fmt.Sprintf("data file %s: migration %d of %s is not the one the file went through; migrations are appended, never edited: run the program that wrote the file, or choose another data folder",
		e.Path, e.Version, e.Owner)
}

// MigrationError says that a migration failed. The file is as it was before that migration.
type MigrationError struct {
	Path    string
	Owner   string
	Version int // of the migration, from 1
	Err     error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf("data file %s: migration %d of %s failed, nothing of it was kept: %v", e.Path, e.Version, e.Owner, e.Err)
}

// Unwrap returns the cause.
func (e *MigrationError) Unwrap() error { return e.Err }

// failure is the kind of a driver's error that matters to callers. The zero value is any other.
type failure uint8

const (
	other failure = iota
	locked
	full
	readOnly
	damaged
	notDatabase
	cannotOpen
	inputOutput
	noMemory
	duplicate
	interrupted
)

// resultCode is SQLite's extended result code in err's chain, or SQLITE_OK.
func resultCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return codes.SQLITE_OK
}

func classify(err error) failure {
	code := resultCode(err)
	switch code {
	case codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_PRIMARYKEY, codes.SQLITE_CONSTRAINT_ROWID:
		return duplicate
	}
	switch code & 0xff {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_PROTOCOL:
		return locked
	case codes.SQLITE_FULL:
		return full
	case codes.SQLITE_READONLY, codes.SQLITE_PERM:
		return readOnly
	case codes.SQLITE_CORRUPT:
		return damaged
	case codes.SQLITE_NOTADB:
		return notDatabase
	case codes.SQLITE_CANTOPEN:
		return cannotOpen
	case codes.SQLITE_IOERR:
		return inputOutput
	case codes.SQLITE_NOMEM:
		return noMemory
	case codes.SQLITE_INTERRUPT:
		return interrupted
	}
	return other
}

// translate turns a driver's error into the one of package packs that says what it means to a
// caller. Errors without a driver's in their chain come back as they are.
func (db *DB) translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*packs.UnavailableError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*MigrationError](err); ok {
		return err
	}
	kind := classify(err)
	if ctx.Err() != nil && (kind == interrupted || errors.Is(err, sql.ErrTxDone)) {
		return ctx.Err()
	}
	switch kind {
	case duplicate:
		return &packs.ConflictError{Message: "a record with the same key exists already"}
	case locked, full, readOnly, damaged, notDatabase, cannotOpen, inputOutput, noMemory:
		return &packs.UnavailableError{Backend: db.name, Err: err}
	case other, interrupted:
	}
	return err
}

// openError says what is wrong with the file at path and what to do.
func openError(path string, err error) error {
	e := &OpenError{Path: path, Err: err}
	const elsewhere = "or choose another data folder"
	switch kind := classify(err); {
	case kind == locked:
		e.Problem, e.Remedy = "locked by another program", "wait until that program is done with it, or end it"
	case kind == full || errors.Is(err, syscall.ENOSPC):
		e.Problem, e.Remedy = "the disk is full", "free some space, "+elsewhere
	case kind == readOnly || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		e.Problem, e.Remedy = "the file or its folder cannot be written", "give this user the right to write both, "+elsewhere
	case kind == damaged:
		e.Problem, e.Remedy = "the file is damaged", "restore it from a backup, or move it away to start with an empty one"
	case kind == notDatabase || errors.Is(err, errTooShort):
		e.Problem, e.Remedy = "not a SQLite database", "move the file away, "+elsewhere
	case kind == inputOutput:
		e.Problem, e.Remedy = "reading or writing it failed", "check the disk, and the files beside it with -wal and -shm behind its name, "+elsewhere
	case errors.Is(err, errNotRegular):
		e.Problem, e.Remedy = "not a regular file", "move away what has its name, "+elsewhere
	case errors.Is(err, errNoWAL):
		e.Problem, e.Remedy = "its file system has no shared memory for SQLite's write-ahead log", "choose a data folder on a local disk"
	case errors.Is(err, errForeign):
		e.Problem, e.Remedy = "it belongs to another program", "move the file away, "+elsewhere
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EEXIST):
		e.Problem, e.Remedy = "something on the way to it is not a folder", "move that file away, "+elsewhere
	case kind == cannotOpen || errors.Is(err, fs.ErrNotExist):
		e.Problem, e.Remedy = "the file cannot be opened", "check that its folder can be read and written and holds no folder in the place of this file or of the ones with -wal and -shm behind its name"
	default:
		e.Problem, e.Remedy = "it cannot be used", "see the cause: "+err.Error()
	}
	return e
}
