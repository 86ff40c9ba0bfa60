package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
)

// What is written to a file that was moved away is durable, and nobody finds it. Such a store is away.
func TestFileTakenAway(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, path string) (back func()){
		"moved": func(t *testing.T, path string) func() {
			require.NoError(t, os.Rename(path, path+".moved"))
			return func() { require.NoError(t, os.Rename(path+".moved", path)) }
		},
		"replaced": func(t *testing.T, path string) func() {
			require.NoError(t, os.Rename(path, path+".moved"))
			text, err := os.ReadFile(path + ".moved")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, text, 0o600))
			return func() { require.NoError(t, os.Rename(path+".moved", path)) }
		},
		"WAL moved": func(t *testing.T, path string) func() {
			require.NoError(t, os.Rename(path+"-wal", path+".moved"))
			return func() { require.NoError(t, os.Rename(path+".moved", path+"-wal")) }
		},
		"folder moved": func(t *testing.T, path string) func() {
			dir := filepath.Dir(path)
			require.NoError(t, os.Rename(dir, dir+".moved"))
			return func() { require.NoError(t, os.Rename(dir+".moved", dir)) }
		},
	} {
		t.Run("Err "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "main.db")
			db, err := sqlite.Open(t.Context(), path, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			require.NoError(t, db.Migrate(t.Context(), "test", []string{"CREATE TABLE t (x INTEGER)"}))
			insert := func() error {
				return db.Write(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
					return err
				})
			}
			count := func() (n int, err error) {
				err = db.Read(t.Context(), func(tx *sql.Tx) error {
					return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n)
				})
				return n, err
			}
			require.NoError(t, insert())
			back := take(t, path)
			var unavailable *packs.UnavailableError
			require.ErrorAs(t, insert(), &unavailable)
			_, err = count()
			require.ErrorAs(t, err, &unavailable)
			back()
			require.NoError(t, insert(), "put back, it is there again")
			n, err := count()
			require.NoError(t, err)
			require.Equal(t, 2, n, "nothing was half-written")
		})
	}
	t.Run("Err taken in the middle of a transaction", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "main.db")
		db, err := sqlite.Open(t.Context(), path, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		err = db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "CREATE TABLE t (x INTEGER)")
			require.NoError(t, os.Rename(path+"-wal", path+".moved"))
			return err
		})
		var unavailable *packs.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.NoError(t, os.Rename(path+".moved", path+"-wal"))
	})
}
