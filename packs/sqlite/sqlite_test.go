package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const createT = `CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER CHECK (size > 0)) STRICT;
CREATE VIRTUAL TABLE t_text USING fts5(name, content='t', content_rowid='id', tokenize='trigram');
CREATE TRIGGER t_insert AFTER INSERT ON t BEGIN INSERT INTO t_text(rowid, name) VALUES (new.id, new.name); END;
CREATE TABLE child (t INTEGER NOT NULL REFERENCES t(id)) STRICT;`

var schema = packs.Schema{Tables: []string{"t", "child"}, Migrations: []string{createT}}

// open returns a migrated file in a folder of its own.
func open(t testing.TB) *sqlite.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "main.db"))
}

func openAt(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, db.Migrate(t.Context(), "test", schema.Migrations))
	return db
}

func insert(ctx context.Context, name string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO t (name) VALUES (?)", name)
		return err
	}
}

func count(t testing.TB, b packs.Backend) (n int) {
	t.Helper()
	require.NoError(t, b.Read(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM t").Scan(&n)
	}))
	return n
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "data")
	files := sqlite.New(dir, nil)
	require.NoDirExists(t, dir, "New touches nothing")

	one, err := files.OpenBackend(t.Context(), "main", "one", schema)
	require.NoError(t, err)
	two, err := files.OpenBackend(t.Context(), "main", "two", packs.Schema{Migrations: []string{"CREATE TABLE u (x)"}})
	require.NoError(t, err)
	require.Same(t, one, two, "packs on one backend share its file")
	three, err := files.OpenBackend(t.Context(), "other", "one", schema)
	require.NoError(t, err)
	require.NotSame(t, one, three)
	require.NoError(t, one.Write(t.Context(), insert(t.Context(), "a")))
	require.Equal(t, 1, count(t, two))
	require.Equal(t, 0, count(t, three))

	for name, mode := range map[string]os.FileMode{".": 0o700 | os.ModeDir, "main.db": 0o600, "main.db-wal": 0o600, "main.db-shm": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}

	require.NoError(t, files.Close())
	require.NoError(t, files.Close())
	require.NoFileExists(t, filepath.Join(dir, "main.db-wal"), "closing moves the WAL into the file")
	_, err = files.OpenBackend(t.Context(), "main", "one", schema)
	require.ErrorIs(t, err, sqlite.ErrClosed)
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, one.Read(t.Context(), nil), &unavailable)
	require.Equal(t, "main", unavailable.Backend)
	require.ErrorIs(t, unavailable, sqlite.ErrClosed)

	files = sqlite.New(dir, nil)
	again, err := files.OpenBackend(t.Context(), "main", "one", schema)
	require.NoError(t, err)
	require.Equal(t, 1, count(t, again))
	require.NoError(t, files.Close())
}

func TestBackendNames(t *testing.T) {
	parent := t.TempDir()
	files := sqlite.New(filepath.Join(parent, "data"), nil)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "A", "1a", "a.b", "a-b", "a\x00", "a\n", "kg?mode=memory", "ä", ":memory:"} {
		_, err := files.OpenBackend(t.Context(), name, "p", schema)
		require.ErrorContains(t, err, "backend name", "%q", name)
	}
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestPathsAreNotURLs(t *testing.T) {
	for _, name := range []string{"a?mode=memory&x.db", "50% #1.db", "ü 'quoted'.db", "%41.db"} {
		path := filepath.Join(t.TempDir(), name)
		db := openAt(t, path)
		require.NoError(t, db.Write(t.Context(), insert(t.Context(), "a")))
		require.FileExists(t, path)
		require.Equal(t, path, db.Path())
	}
}

func TestSettings(t *testing.T) {
	db := open(t)
	for _, c := range []struct{ pragma, read, write string }{
		{"journal_mode", "wal", "wal"},
		{"synchronous", "2", "2"},
		{"foreign_keys", "1", "1"},
		{"busy_timeout", "5000", "5000"},
		{"query_only", "1", "0"},
		{"trusted_schema", "0", "0"},
		{"temp_store", "2", "2"},
	} {
		var read, write string
		require.NoError(t, db.Read(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("PRAGMA " + c.pragma).Scan(&read) }))
		require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("PRAGMA " + c.pragma).Scan(&write) }))
		require.Equal(t, c.read, read, c.pragma)
		require.Equal(t, c.write, write, c.pragma)
	}
}

func TestWriteRollsBack(t *testing.T) {
	db := open(t)
	mine := errors.New("mine")
	insertThen := func(then func() error) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			if err := insert(t.Context(), "x")(tx); err != nil {
				return err
			}
			return then()
		}
	}

	require.Same(t, mine, db.Write(t.Context(), insertThen(func() error { return mine })), "fn's own error comes back as it is")
	require.PanicsWithValue(t, "boom", func() {
		_ = db.Write(t.Context(), insertThen(func() error { panic("boom") }))
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.Write(t.Context(), insertThen(func() error { runtime.Goexit(); return nil }))
	}()
	<-ended
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.ErrorIs(t, db.Write(ctx, insertThen(func() error { cancel(); return nil })), context.Canceled)
	require.ErrorIs(t, db.Write(ctx, insertThen(func() error { return nil })), context.Canceled)

	require.Equal(t, 0, count(t, db))
	require.NoError(t, db.Write(t.Context(), insertThen(func() error { return nil })), "the write connection is free again")
	require.Equal(t, 1, count(t, db))
}

func TestContextEndsRunningStatement(t *testing.T) {
	db := open(t)
	for _, run := range []func(context.Context, func(*sql.Tx) error) error{db.Read, db.Write} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := run(ctx, func(tx *sql.Tx) error {
			cancel()
			var n int
			return tx.QueryRowContext(ctx, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c").Scan(&n)
		})
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestReadCannotWrite(t *testing.T) {
	db := open(t)
	err := db.Read(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.Exec("PRAGMA query_only = 0"); err != nil {
			return err
		}
		return insert(t.Context(), "x")(tx)
	})
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, 0, count(t, db))
}

func TestReadIsOneView(t *testing.T) {
	db := open(t)
	require.NoError(t, db.Read(t.Context(), func(tx *sql.Tx) error {
		var before, after int
		require.NoError(t, tx.QueryRow("SELECT count(*) FROM t").Scan(&before))
		require.NoError(t, db.Write(t.Context(), insert(t.Context(), "x")), "a reader does not hold up the writer")
		require.NoError(t, tx.QueryRow("SELECT count(*) FROM t").Scan(&after))
		require.Equal(t, before, after)
		return nil
	}))
	require.Equal(t, 1, count(t, db))
}

func TestConstraints(t *testing.T) {
	db := open(t)
	require.NoError(t, db.Write(t.Context(), insert(t.Context(), "x")))
	exec := func(q string) error {
		return db.Write(t.Context(), func(tx *sql.Tx) error { _, err := tx.Exec(q); return err })
	}
	var conflict *packs.ConflictError
	require.ErrorAs(t, exec("INSERT INTO t (name) VALUES ('x')"), &conflict)
	require.ErrorAs(t, exec("INSERT INTO t (id, name) VALUES (1, 'y')"), &conflict)
	require.NotContains(t, conflict.Error(), "t.id", "no internals")
	for _, q := range []string{
		"INSERT INTO t (name) VALUES (NULL)",
		"INSERT INTO t (name, size) VALUES ('z', 0)",
		"INSERT INTO child VALUES (99)",
		"INSERT INTO nosuch VALUES (1)",
		`SELECT "nosuch" FROM t`, // not the string 'nosuch'
	} {
		err := exec(q)
		require.Error(t, err, q)
		require.NotErrorAs(t, err, &conflict, q)
		var unavailable *packs.UnavailableError
		require.NotErrorAs(t, err, &unavailable, q)
	}
}

func TestConcurrentUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.db")
	dbs := []*sqlite.DB{openAt(t, path), openAt(t, path)} // as two processes would
	const writers, each = 8, 10
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			db := dbs[w%2]
			for range each {
				if err := db.Write(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.Exec("INSERT INTO t (name) SELECT 'n' || (count(*) + 1) FROM t")
					return err
				}); err != nil {
					t.Error(err)
				}
				if err := db.Read(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT 1 FROM t").Scan(new(int)) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, writers*each, count(t, dbs[0]))
}

func TestCloseWaitsForTransactions(t *testing.T) {
	for name, begin := range map[string]func(*sqlite.DB) func(context.Context, func(*sql.Tx) error) error{
		"read":  func(db *sqlite.DB) func(context.Context, func(*sql.Tx) error) error { return db.Read },
		"write": func(db *sqlite.DB) func(context.Context, func(*sql.Tx) error) error { return db.Write },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "main.db")
			db, err := sqlite.Open(t.Context(), path, nil)
			require.NoError(t, err)
			require.NoError(t, db.Migrate(t.Context(), "test", schema.Migrations))
			inside, closing, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- begin(db)(context.Background(), func(tx *sql.Tx) error {
					close(inside)
					<-closing
					return tx.QueryRow("SELECT count(*) FROM t").Scan(new(int))
				})
			}()
			<-inside
			closed := make(chan error, 1)
			go func() { closed <- db.Close() }()
			for !errors.Is(db.Read(t.Context(), func(*sql.Tx) error { return nil }), sqlite.ErrClosed) {
				runtime.Gosched()
			}
			for range 20 {
				time.Sleep(time.Millisecond)
				require.Empty(t, closed, "a transaction is under way")
			}
			close(closing)
			require.NoError(t, <-ended)
			require.NoError(t, <-closed)
			require.NoFileExists(t, path+"-wal")
		})
	}
}
