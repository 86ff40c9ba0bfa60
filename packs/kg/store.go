package kg

import (
	"context"
	"database/sql"
	"time"
)

// insert stores new records, in order.
func insert(ctx context.Context, tx *sql.Tx, records []*record) error {
	w, err := newIndexWriter(ctx, tx)
	if err != nil {
		return err
	}
	defer w.close()
	stmt, err := tx.PrepareContext(ctx, `
		INSERT INTO kg_records (id, kind, sub_kind, namespace, created_at, updated_at, name, name_fold, tags, properties, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, r := range records {
		tags, err := encode(r.Tags)
		if err != nil {
			return err
		}
		res, err := stmt.ExecContext(ctx, r.ID, r.Kind, *r.subKind(), r.Namespace, r.CreatedAt, r.UpdatedAt,
			*r.name(), r.foldedName(), tags, string(r.Properties), *r.body())
		if err != nil {
			return err
		}
		if r.seq, err = res.LastInsertId(); err != nil {
			return err
		}
		if err := w.add(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// save stores a changed record and its index entries. The kind, the namespace and the id never change.
func save(ctx context.Context, tx *sql.Tx, r *record, now time.Time) error {
	r.UpdatedAt = stamp(now)
	tags, err := encode(r.Tags)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `
		UPDATE kg_records SET sub_kind = ?, updated_at = ?, name = ?, name_fold = ?, tags = ?, properties = ?, body = ? WHERE seq = ?`,
		*r.subKind(), r.UpdatedAt, *r.name(), r.foldedName(), tags, string(r.Properties), *r.body(), r.seq); err != nil {
		return err
	}
	if err := removeFromIndex(ctx, tx, r.seq); err != nil {
		return err
	}
	w, err := newIndexWriter(ctx, tx)
	if err != nil {
		return err
	}
	defer w.close()
	return w.add(ctx, r)
}

// indexWriter adds records to the tag and full text indexes.
type indexWriter struct{ tag, fts *sql.Stmt }

func newIndexWriter(ctx context.Context, tx *sql.Tx) (*indexWriter, error) {
	tag, err := tx.PrepareContext(ctx, `INSERT INTO kg_tags (record, tag) VALUES (?, ?)`)
	if err != nil {
		return nil, err
	}
	fts, err := tx.PrepareContext(ctx, `INSERT INTO kg_fts (rowid, name, body, tags) VALUES (?, ?, ?, ?)`)
	if err != nil {
		_ = tag.Close()
		return nil, err
	}
	return &indexWriter{tag: tag, fts: fts}, nil
}

func (w *indexWriter) close() {
	// They end with the transaction anyway; its commit reports what matters.
	_ = w.tag.Close()
	_ = w.fts.Close()
}

func (w *indexWriter) add(ctx context.Context, r *record) error {
	var tags []byte
	for _, t := range r.Tags {
		if _, err := w.tag.ExecContext(ctx, r.seq, t); err != nil {
			return err
		}
		tags = appendIndexed(tags, t)
	}
	_, err := w.fts.ExecContext(ctx, r.seq, indexed(*r.name()), indexed(*r.body()), string(tags))
	return err
}

func removeFromIndex(ctx context.Context, tx *sql.Tx, seq int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM kg_tags WHERE record = ?`, seq); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM kg_fts WHERE rowid = ?`, seq)
	return err
}

// load reads a record that was found in the same transaction.
func load(ctx context.Context, tx *sql.Tx, seq int64) (*record, error) {
	return scanRecord(tx.QueryRowContext(ctx, `SELECT `+recordColumns+` FROM kg_records r WHERE r.seq = ?`, seq).Scan)
}

// remove takes a record without edges out of the store and the indexes.
func remove(ctx context.Context, tx *sql.Tx, seq int64) error {
	if err := removeFromIndex(ctx, tx, seq); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM kg_records WHERE seq = ?`, seq)
	return err
}
