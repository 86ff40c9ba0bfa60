package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
)

// The faults below are real ones: nothing stands in for the driver or the file system.

// openAll is what a start does: open, migrate.
func openAll(t *testing.T, path string) error {
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Migrate(t.Context(), "test", schema.Migrations)
}

func TestOpenErrors(t *testing.T) {
	filled := func(t *testing.T, path string) []byte {
		require.NoError(t, openAll(t, path))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return content
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		problem string
	}{
		{"Err garbage", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600))
		}, "not a SQLite database"},
		{"Err a few bytes of garbage", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
		}, "not a SQLite database"},
		{"Err one byte, an empty file to SQLite", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		}, "not a SQLite database"},
		{"Err truncated", func(t *testing.T, path string) {
			content := filled(t, path)
			require.NoError(t, os.WriteFile(path, content[:len(content)/2/4096*4096], 0o600))
		}, "the file is damaged"},
		{"Err first page overwritten", func(t *testing.T, path string) {
			content := filled(t, path)
			require.NoError(t, os.WriteFile(path, append(content[:100], bytes.Repeat([]byte{0xff}, len(content)-100)...), 0o600))
		}, "the file is damaged"},
		{"Err a folder in its place", func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "not a regular file"},
		{"Err a pipe in its place", func(t *testing.T, path string) {
			require.NoError(t, syscall.Mkfifo(path, 0o600))
		}, "not a regular file"},
		{"Err a link to nothing", func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(path), "gone"), path))
		}, "the file cannot be opened"},
		{"Err a file in its folder's place", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Dir(path)))
			require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, "is not a folder"},
		{"Err a folder in the WAL's place", func(t *testing.T, path string) {
			require.NoError(t, os.MkdirAll(path+"-wal/x", 0o700))
		}, "reading or writing it failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "main.db")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			c.prepare(t, path)
			err := openAll(t, path)
			var open *sqlite.OpenError
			require.ErrorAs(t, err, &open)
			require.Equal(t, path, open.Path)
			require.Contains(t, open.Problem, c.problem)
			require.NotEmpty(t, open.Remedy)
			require.ErrorContains(t, err, path)
		})
	}
}

// Permissions do not bind root, so the program under test runs as somebody else.
func TestOpenReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "verbgate-readonly") // t.TempDir's parent is closed to others
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = os.Chmod(dir, 0o700)
		require.NoError(t, os.RemoveAll(dir))
	})
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		path, err := os.Executable()
		require.NoError(t, err)
		self, err = os.ReadFile(path)
		require.NoError(t, err)
	}
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, self, 0o755))

	sealed, open := filepath.Join(dir, "sealed"), filepath.Join(dir, "open")
	for _, folder := range []string{sealed, open} {
		require.NoError(t, os.Mkdir(folder, 0o755))
		require.NoError(t, openAll(t, filepath.Join(folder, "main.db")))
	}
	require.NoError(t, os.Chmod(filepath.Join(sealed, "main.db"), 0o666)) // the file may be written, its folder not
	require.NoError(t, os.Chmod(filepath.Join(open, "main.db"), 0o444))   // the other way round
	require.NoError(t, os.Chmod(sealed, 0o555))
	require.NoError(t, os.Chmod(open, 0o777))
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.Chmod(sealed, 0o700) })

	for _, c := range []struct{ name, path string }{
		{"Err folder", filepath.Join(sealed, "main.db")},
		{"Err file", filepath.Join(open, "main.db")},
		{"Err new file in folder", filepath.Join(sealed, "new.db")},
		{"Err new folder in folder", filepath.Join(sealed, "new", "new.db")},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(program, "-test.run=^TestChild$")
			cmd.Dir = "/"
			cmd.Env = []string{"SQLITE_TEST_CHILD=open", "SQLITE_TEST_PATH=" + c.path}
			if os.Getuid() == 0 {
				const nobody = 65534
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.EPERM) {
				t.Skip("this root may not become another user, and permissions do not bind it")
			}
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "data file "+c.path+": the file or its folder cannot be written; give this user the right to write both")
		})
	}
}

// TestChild is what the test binary does when a test starts it as another process.
func TestChild(t *testing.T) {
	path := os.Getenv("SQLITE_TEST_PATH")
	switch os.Getenv("SQLITE_TEST_CHILD") {
	case "":
		t.Skip("only for child processes")
	case "open":
		fmt.Println(openAll(t, path))
	case "lock": // hold the write lock until stdin ends
		db, err := sqlite.Open(t.Context(), path, nil)
		require.NoError(t, err)
		require.NoError(t, db.Write(t.Context(), func(*sql.Tx) error {
			fmt.Println("locked")
			_, err := os.Stdin.Read(make([]byte, 1))
			_ = err // the end of stdin is what it waits for
			return nil
		}))
		require.NoError(t, db.Close())
	}
}

func TestLockedByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.db")
	db := openAt(t, path)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD=lock", "SQLITE_TEST_PATH="+path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		require.NoError(t, cmd.Wait())
	})
	line := make([]byte, len("locked"))
	_, err = stdout.Read(line)
	require.NoError(t, err)
	require.Equal(t, "locked", string(line))

	require.Equal(t, 0, count(t, db), "readers go on")
	t.Run("write", func(t *testing.T) {
		t.Parallel()
		var unavailable *packs.UnavailableError
		require.ErrorAs(t, db.Write(t.Context(), insert(t.Context(), "x")), &unavailable)
		require.Equal(t, "main", unavailable.Backend)
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		var open *sqlite.OpenError
		require.ErrorAs(t, openAll(t, path), &open)
		require.Equal(t, "locked by another program", open.Problem)
	})
}

func TestFull(t *testing.T) {
	db := open(t)
	// The limit belongs to the connection, and there is one for writing.
	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRow("PRAGMA max_page_count = 1").Scan(new(int)) // it never goes below what is in use
	}))
	var unavailable *packs.UnavailableError
	err := db.Write(t.Context(), insert(t.Context(), strings.Repeat("x", 1<<20)))
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, 0, count(t, db))

	err = db.Migrate(t.Context(), "big", []string{"CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob(1000000))"})
	var open *sqlite.OpenError
	require.ErrorAs(t, err, &open)
	require.Equal(t, "the disk is full", open.Problem)

	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRow("PRAGMA max_page_count = 100000").Scan(new(int))
	}))
	require.NoError(t, db.Write(t.Context(), insert(t.Context(), strings.Repeat("x", 1<<20))), "it goes on once there is room")
}

func TestReadOnlyConnection(t *testing.T) {
	db := open(t)
	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("PRAGMA query_only = 1")
		return err
	}))
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, db.Write(t.Context(), insert(t.Context(), "x")), &unavailable)
}

// Damage behind the first page shows at the call that meets it, not at the start.
func TestDamagedPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.db")
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	require.NoError(t, db.Migrate(t.Context(), "test", schema.Migrations))
	for i := range 200 {
		require.NoError(t, db.Write(t.Context(), insert(t.Context(), fmt.Sprint(i, strings.Repeat("x", 200)))))
	}
	require.NoError(t, db.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 2 * 4096; i < len(content); i++ {
		content[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))

	db, err = sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer db.Close()
	err = db.Read(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT sum(length(name)) FROM t").Scan(new(int)) })
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.ErrorAs(t, db.Write(t.Context(), insert(t.Context(), "x")), &unavailable)
}
