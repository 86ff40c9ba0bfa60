package audit_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	require.NoError(t, os.WriteFile(garbage, []byte(strings.Repeat("garbage ", 1000)), 0o600))
	for name, path := range map[string]string{"a folder": dir, "garbage": garbage, "below a file": filepath.Join(garbage, "audit.db")} {
		store, err := audit.New(audit.Config{Path: path})
		require.NoError(t, err)
		err = store.Open(t.Context())
		var open *sqlite.OpenError
		require.ErrorAs(t, err, &open, name)
		require.ErrorContains(t, err, path)
		require.ErrorIs(t, store.Append(t.Context(), nil), audit.ErrNotOpen)
		require.NoError(t, store.Close())
	}
}

func TestNewerStore(t *testing.T) {
	_, path := open(t)
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO verbgate_migrations VALUES ('audit', 99, '', '')")
		return err
	}))
	require.NoError(t, db.Close())
	store, err := audit.New(audit.Config{Path: path})
	require.NoError(t, err)
	var newer *sqlite.NewerError
	require.ErrorAs(t, store.Open(t.Context()), &newer)
}

// breakStore makes every write to the file fail inside SQLite, by a trigger that another connection
// adds, until mend is called: the only way to make one process's disk fail for the other.
func breakStore(t *testing.T, path, table, event string) (mend func()) {
	t.Helper()
	exec := func(script string) {
		db, err := sqlite.Open(t.Context(), path, nil)
		require.NoError(t, err)
		require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error { _, err := tx.Exec(script); return err }))
		require.NoError(t, db.Close())
	}
	exec("CREATE TRIGGER broken AFTER " + event + " ON " + table + " BEGIN SELECT raise(ABORT, 'broken'); END")
	return func() { exec("DROP TRIGGER broken") }
}

func TestFailureIsNotRemembered(t *testing.T) {
	store, path := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 2)))
	mend := breakStore(t, path, "records", "INSERT")
	require.Error(t, store.Append(t.Context(), records(2, 5)))
	mend()
	mend = breakStore(t, path, "probes", "UPDATE")
	require.Error(t, store.Append(t.Context(), nil), "a probe tells")
	mend()
	require.NoError(t, store.Append(t.Context(), nil))
	require.NoError(t, store.Append(t.Context(), records(5, 7)))
	require.Equal(t, []string{"id-0", "id-1", "id-5", "id-6"}, ids(read(t, store, audit.Filter{})), "nothing half-written")
}

// The last record of a batch fails: the ones before it are not kept.
func TestBatchIsAllOrNothing(t *testing.T) {
	store, path := open(t)
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER broken AFTER INSERT ON records WHEN new.id = 'id-9' BEGIN SELECT raise(ABORT, 'broken'); END")
		return err
	}))
	require.NoError(t, db.Close())
	require.Error(t, store.Append(t.Context(), records(0, 10)))
	require.Empty(t, read(t, store, audit.Filter{}))
	require.NoError(t, store.Append(t.Context(), records(0, 9)))
}

func TestLockedStore(t *testing.T) {
	store, path := open(t)
	release := hold(t, path)
	defer release()
	err := store.Append(t.Context(), records(0, 1)) // waits for sqlite.BusyTimeout
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, "audit", unavailable.Backend)
	release()
	require.NoError(t, store.Append(t.Context(), records(0, 1)))
	require.Len(t, read(t, store, audit.Filter{}), 1)
}

// Damage that shows while reading ends the sequence with an error, after what could be read.
func TestDamagedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store, err := audit.New(audit.Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context()))
	require.NoError(t, store.Append(t.Context(), records(0, 2000)))
	require.NoError(t, store.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := len(content) * 3 / 4; i < len(content); i++ {
		content[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))

	store = openAt(t, path)
	var last error
	for _, err := range store.Records(t.Context(), audit.Filter{}) {
		last = err
	}
	require.Error(t, last)
	require.Error(t, store.Append(t.Context(), records(3000, 3001)))
}

// A disk without room, as a child process meets it whose files may not grow any more: Append fails,
// and goes on once there is room.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	if child := os.Getenv("AUDIT_TEST_FULL"); child != "" {
		fillUp(t, child)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), "AUDIT_TEST_FULL="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestFullDisk")

	got := read(t, openAt(t, path), audit.Filter{})
	require.Equal(t, "id-1000000", got[len(got)-1].ID)
	require.Zero(t, (len(got)-1)%50, "nothing half-written")
}

func fillUp(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	store := openAt(t, path)
	require.NoError(t, store.Append(t.Context(), records(0, 50)))
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	room := limit.Cur
	limit.Cur = 256 << 10
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	stored := 50
	var err error
	for n := 50; err == nil; n += 50 {
		if err = store.Append(t.Context(), records(n, n+50)); err == nil {
			stored += 50
		}
	}
	var unavailable *packs.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	limit.Cur = 1 << 10 // not even the one page of a probe fits
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	require.ErrorAs(t, store.Append(t.Context(), nil), &unavailable, "the probe finds it too")
	require.Len(t, read(t, store, audit.Filter{}), stored)

	limit.Cur = room
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	require.NoError(t, store.Append(t.Context(), nil))
	require.NoError(t, store.Append(t.Context(), records(1_000_000, 1_000_001)))
	require.Len(t, read(t, store, audit.Filter{}), stored+1)
}

// A record that was answered is there after the process was killed in the middle of its work.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	if child := os.Getenv("AUDIT_TEST_CHILD"); child != "" {
		appendForEver(t, child)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "AUDIT_TEST_CHILD="+path)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answered := map[string]bool{}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		answered[lines.Text()] = true
		if len(answered) == 500 {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait())
	require.GreaterOrEqual(t, len(answered), 500)

	store := openAt(t, path)
	stored := map[string]bool{}
	batches := map[string]int{}
	for _, r := range read(t, store, audit.Filter{}) {
		stored[r.RequestID] = true
		batches[r.RequestID]++
		require.True(t, json.Valid(r.Params))
	}
	for id := range answered {
		require.True(t, stored[id], "%s was answered", id)
	}
	for id, n := range batches {
		require.Equal(t, 3, n, "batch %s is whole", id)
	}
	require.NoError(t, store.Append(t.Context(), records(0, 1)), "the store goes on")
}

func appendForEver(t *testing.T, path string) {
	store := openAt(t, path)
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for n := 0; ; n++ {
				batch := records(0, 3)
				for i := range batch {
					batch[i].ID = fmt.Sprintf("%d-%d-%d", w, n, i)
					batch[i].RequestID = fmt.Sprintf("%d-%d", w, n)
				}
				if err := store.Append(t.Context(), batch); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				fmt.Println(batch[0].RequestID)
				mu.Unlock()
			}
		})
	}
	group.Wait()
}
