package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs/sqlite"
)

func TestMigrate(t *testing.T) {
	scripts := []string{createT, "ALTER TABLE t ADD COLUMN more TEXT", "INSERT INTO t (name) VALUES ('third')"}
	for _, c := range []struct {
		name     string
		first    []string
		second   []string
		want     any // of require.ErrorAs; nil for none
		contains string
		rows     int
	}{
		{name: "OK from nothing", second: scripts, rows: 1},
		{name: "OK in steps", first: scripts[:1], second: scripts, rows: 1},
		{name: "OK nothing to do", first: scripts, second: scripts, rows: 1},
		{name: "Err newer file", first: scripts, second: scripts[:2], want: new(*sqlite.NewerError), contains: "newer version of test (schema 3, this program knows 2)", rows: 1},
		{name: "Err newer file, program knows none", first: scripts, want: new(*sqlite.NewerError), contains: "this program knows 0", rows: 1},
		{name: "Err edited", first: scripts[:2], second: []string{createT, "ALTER TABLE t ADD COLUMN other TEXT", scripts[2]}, want: new(*sqlite.EditedError), contains: "migration 2 of test"},
		{name: "Err edited, nothing new", first: scripts[:1], second: []string{createT + " "}, want: new(*sqlite.EditedError), contains: "migration 1 of test"},
		{name: "Err script fails, all of it undone", first: scripts[:1], second: []string{createT, "INSERT INTO t (name) VALUES ('a'); INSERT INTO nosuch VALUES (1)"}, want: new(*sqlite.MigrationError), contains: "migration 2 of test failed"},
		{name: "Err script breaks a constraint", first: scripts[:1], second: []string{createT, "INSERT INTO t (name) VALUES ('a'), ('a')"}, want: new(*sqlite.MigrationError), contains: "migration 2"},
		{name: "Err earlier scripts stay", second: []string{createT, "INSERT INTO t (name) VALUES ('a')", "nonsense"}, want: new(*sqlite.MigrationError), contains: "migration 3", rows: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "main.db")
			db, err := sqlite.Open(t.Context(), path, nil)
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, db.Migrate(t.Context(), "test", c.first))
			err = db.Migrate(t.Context(), "test", c.second)
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorAs(t, err, c.want)
				require.ErrorContains(t, err, c.contains)
				require.ErrorContains(t, err, path)
			}
			require.Equal(t, c.rows, count(t, db))
		})
	}
}

func TestMigrateOwnersAreApart(t *testing.T) {
	db := open(t)
	require.NoError(t, db.Migrate(t.Context(), "other", []string{"CREATE TABLE u (x)", "CREATE TABLE v (x)"}))
	require.NoError(t, db.Migrate(t.Context(), "test", schema.Migrations))
	require.NoError(t, db.Migrate(t.Context(), "third", nil))
}

// Every script runs once, however many start at the same time.
func TestMigrateAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.db")
	scripts := []string{createT}
	for i := range 5 {
		scripts = append(scripts, "INSERT INTO t (name) VALUES ('"+strconv.Itoa(i)+"')")
	}
	var dbs []*sqlite.DB
	for range 5 {
		db, err := sqlite.Open(t.Context(), path, nil)
		require.NoError(t, err)
		defer db.Close()
		dbs = append(dbs, db)
	}
	var group sync.WaitGroup
	require.NoError(t, dbs[0].Write(t.Context(), func(*sql.Tx) error {
		for _, db := range dbs[1:] {
			group.Go(func() {
				if err := db.Migrate(t.Context(), "test", scripts); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(20 * time.Millisecond) // so that each finds an empty file, and then waits for its turn
		return nil
	}))
	group.Wait()
	require.Equal(t, 5, count(t, dbs[0]))
}

// Programs that start at the same time on no file at all.
func TestOpenAtTheSameTime(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "data", "main.db")
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				db, err := sqlite.Open(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if err := db.Migrate(t.Context(), "test", schema.Migrations); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

func TestMigrateRefusesForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.db")
	raw, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = raw.Exec("CREATE TABLE theirs (x)")
	require.NoError(t, err)
	require.NoError(t, raw.Close())

	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer db.Close()
	err = db.Migrate(t.Context(), "test", schema.Migrations)
	var open *sqlite.OpenError
	require.ErrorAs(t, err, &open)
	require.ErrorContains(t, err, "it belongs to another program")
}
