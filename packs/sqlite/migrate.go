package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"
)

// The list of what was done to a file. Its name keeps clear of any pack's tables.
const createMigrations = `CREATE TABLE IF NOT EXISTS verbgate_migrations (
	owner      TEXT    NOT NULL,
	version    INTEGER NOT NULL,
	checksum   TEXT    NOT NULL,
	applied_at TEXT    NOT NULL,
	PRIMARY KEY (owner, version)
) STRICT, WITHOUT ROWID`

// Migrate brings owner's tables to the newest version: it runs the scripts of migrations that the
// file has not been through, each in a transaction of its own, and notes a checksum of each.
// Script i makes version i+1. Another process may migrate the same file at the same time.
//
// A file that owner's newer version wrote is a *NewerError, one that went through another script of
// the same version an *EditedError, a script that fails a *MigrationError; a file with tables that
// no migration of ours made is an *OpenError. The other errors are Write's.
func (db *DB) Migrate(ctx context.Context, owner string, migrations []string) error {
	// Most starts find nothing to do, and should not have to wait for the write lock.
	var version int
	err := db.Read(ctx, func(tx *sql.Tx) (err error) {
		version, err = db.version(ctx, tx, owner, migrations)
		return err
	})
	for err == nil && version < len(migrations) {
		err = db.Write(ctx, func(tx *sql.Tx) (err error) {
			if version, err = db.version(ctx, tx, owner, migrations); err != nil || version == len(migrations) {
				return err
			}
			version++
			return db.apply(ctx, tx, owner, version, migrations[version-1])
		})
	}
	if _, ok := errors.AsType[*OpenError](err); err == nil || ok {
		return err
	}
	if kind := classify(err); kind != other && kind != duplicate && kind != interrupted && ctx.Err() == nil {
		return openError(db.path, err)
	}
	return err
}

// version is the version of owner's tables in the file, after a check that the file's past is the
// one the program knows.
func (db *DB) version(ctx context.Context, tx *sql.Tx, owner string, migrations []string) (int, error) {
	var ours, tables int
	err := tx.QueryRowContext(ctx,
		"SELECT count(*) FILTER (WHERE name = 'verbgate_migrations'), count(*) FROM sqlite_schema").Scan(&ours, &tables)
	if err != nil {
		return 0, err
	}
	if ours == 0 {
		if tables > 0 {
			return 0, openError(db.path, errForeign)
		}
		return 0, nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT version, checksum FROM verbgate_migrations WHERE owner = ? ORDER BY version", owner)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	have, edited := 0, 0
	for rows.Next() {
		var sum string
		if err := rows.Scan(&have, &sum); err != nil {
			return 0, err
		}
		if edited == 0 && have <= len(migrations) && sum != checksum(migrations[have-1]) {
			edited = have
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return 0, err
	case have > len(migrations):
		return 0, &NewerError{Path: db.path, Owner: owner, Have: have, Known: len(migrations)}
	case edited > 0:
		return 0, &EditedError{Path: db.path, Owner: owner, Version: edited}
	}
	return have, nil
}

func (db *DB) apply(ctx context.Context, tx *sql.Tx, owner string, version int, script string) error {
	if _, err := tx.ExecContext(ctx, createMigrations); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return &MigrationError{Path: db.path, Owner: owner, Version: version, Err: err}
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO verbgate_migrations (owner, version, checksum, applied_at) VALUES (?, ?, ?, ?)",
		owner, version, checksum(script), time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	db.log.InfoContext(ctx, "migrated", "backend", db.name, "owner", owner, "version", version)
	return nil
}

func checksum(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:])
}
