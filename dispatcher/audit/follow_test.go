package audit_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
)

// follow reads a topic as a subscriber does, from its beginning until it has seen the event with the
// cursor last. It fails on the first cursor that is not the next one. One who is restless looks again and
// again instead of waiting for a change.
func follow(ctx context.Context, store *audit.Store, topic string, last uint64, restless bool, see func(audit.Event)) error {
	for after := uint64(0); after < last; {
		changed := store.Changed()
		_, head, err := store.Bounds(ctx, topic)
		if err != nil {
			return err
		}
		page, err := store.Events(ctx, topic, after, 100)
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.Cursor != after+1 {
				return fmt.Errorf("%s: cursor %d came after %d", topic, e.Cursor, after)
			}
			after = e.Cursor
			see(e)
		}
		switch {
		case after < head && len(page) == 0: // whoever began at the head would never see them
			return fmt.Errorf("%s: the head is %d, and after %d there is nothing", topic, head, after)
		case len(page) > 0:
			continue
		}
		look := (<-chan time.Time)(nil)
		if restless {
			look = time.After(time.Millisecond)
		}
		select {
		case <-changed:
		case <-look:
		case <-ctx.Done():
			return fmt.Errorf("%s: no event after %d: %w", topic, after, ctx.Err())
		}
	}
	return nil
}

// appendMany appends so many batches from so many goroutines, and fills name into the ids. The
// pauses let other processes in, who do not queue for SQLite's lock but look for it now and then: without
// them one process would be through before the next begins.
func appendMany(t *testing.T, store *audit.Store, name string, writers, batches int) {
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range batches {
				batch := emitting(0, 2, "kg.created", "kg.linked")
				for i := range batch {
					batch[i].ID = fmt.Sprintf("%s-%d-%d-%d", name, w, n, i)
					for k := range batch[i].Events {
						batch[i].Events[k].Payload = json.RawMessage(`"` + batch[i].ID + `"`)
					}
				}
				batch[1].Kind = policy.KindRefusal
				if err := store.Append(t.Context(), batch); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(rand.N(5 * time.Millisecond))
			}
		})
	}
	group.Wait()
}

// Three processes store at once, one of them through several open stores, while followers read behind
// them: each sees every event of its topic once and in order, and the events of one batch together. Numbers
// taken in one transaction and used in the next, as sequences do it, make this test fail.
func TestFollowersSeeEverything(t *testing.T) {
	const processes, handles, writers, batches = 3, 4, 4, 25
	path := filepath.Join(t.TempDir(), "audit.db")
	if child := os.Getenv("AUDIT_TEST_FOLLOW"); child != "" {
		store := openAt(t, child)
		fmt.Println("ready")
		_, err := os.Stdin.Read(make([]byte, 1)) // until all are
		require.ErrorIs(t, err, io.EOF)
		appendMany(t, store, os.Getenv("AUDIT_TEST_NAME"), writers, batches)
		return
	}
	store := openAt(t, path)
	const records = (processes - 1 + handles) * writers * batches
	ctx, fail := context.WithCancel(t.Context())
	defer fail()
	var group sync.WaitGroup
	seen := map[string][]audit.Event{}
	var mu sync.Mutex
	for topic, count := range map[string]uint64{"audit.decision": records, "audit.refusal": records, "kg.created": 2 * records, "kg.linked": 2 * records} {
		for _, restless := range []bool{false, true} {
			group.Go(func() {
				var mine []audit.Event
				if err := follow(ctx, store, topic, count, restless, func(e audit.Event) { mine = append(mine, e) }); err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[topic] = mine
				mu.Unlock()
			})
		}
	}
	starts := []io.Closer{}
	for p := 1; p < processes; p++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFollowersSeeEverything$", "-test.v")
		cmd.Env = append(os.Environ(), "AUDIT_TEST_FOLLOW="+path, fmt.Sprintf("AUDIT_TEST_NAME=p%d", p))
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		starts = append(starts, stdin)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && lines.Text() != "ready" {
		}
		group.Go(func() {
			out := ""
			for lines.Scan() {
				out += lines.Text() + "\n"
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(out, "--- PASS: TestFollowersSeeEverything") {
				t.Errorf("%v: %s", err, out)
				fail() // or the others would wait for ever
			}
		})
	}
	for _, start := range starts {
		require.NoError(t, start.Close())
	}
	var mine sync.WaitGroup
	for h := range handles {
		one := store
		if h > 0 {
			one = openAt(t, path) // to the file's locks as good as another process
		}
		mine.Go(func() { appendMany(t, one, fmt.Sprint("h", h), writers, batches) })
	}
	mine.Wait()
	if t.Failed() {
		fail()
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for topic, events := range seen {
		requireBounds(t, store, topic, 0, uint64(len(events)))
		payloads := map[string]bool{}
		for i, e := range events {
			payloads[string(e.Payload)] = true
			if strings.HasPrefix(topic, "kg.") && i%2 == 1 {
				require.Equal(t, strings.TrimSuffix(string(events[i-1].Payload), `0"`)+`1"`, string(e.Payload))
			}
		}
		require.Len(t, payloads, len(events), "%s: each once", topic)
	}
}

// rawAppend is another process in the middle of an append: it has taken the lock, and does what
// an append does to a topic, when commit is called.
func rawAppend(t *testing.T, path, topic string) (commit func()) {
	t.Helper()
	other, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	held, let, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(context.Background(), func(tx *sql.Tx) error {
			close(held)
			<-let
			_, err := tx.Exec(`UPDATE topics SET head = head + 1 WHERE name = ?1;
				INSERT INTO events (topic, event, time, namespace, payload) SELECT id, head, '2026-03-01T12:00:00.000000000Z', 'far', '{}' FROM topics WHERE name = ?1`, topic)
			return err
		})
	}()
	<-held
	return func() {
		close(let)
		require.NoError(t, <-done)
		require.NoError(t, other.Close())
	}
}

// The classic gap: one who numbers his events early and commits late is passed over by those who read in
// between. Here the number is taken under the lock: the append that had to wait comes second.
func TestLateCommit(t *testing.T) {
	store, path := open(t)
	require.NoError(t, store.Append(t.Context(), emitting(0, 1, "kg.created")))
	commit := rawAppend(t, path, "kg.created")
	answers := queue(t.Context(), store, [][]policy.Record{emitting(1, 2, "kg.created"), emitting(2, 3, "kg.created")})
	require.Empty(t, all(t, store, "kg.created", 1), "nothing is seen before it is durable")
	requireBounds(t, store, "kg.created", 0, 1)
	commit()
	for range 2 {
		require.NoError(t, <-answers)
	}
	namespaces := []string{}
	for _, e := range all(t, store, "kg.created", 1) {
		namespaces = append(namespaces, e.Namespace)
	}
	require.Equal(t, []string{"far", "local", "local"}, namespaces)
}

// Nobody sleeps through a change.
func TestChanged(t *testing.T) {
	store, path := open(t)
	first := store.Changed()
	require.Equal(t, first, store.Changed(), "all wait for one")
	select {
	case <-first:
		t.Fatal("nothing was stored")
	default:
	}
	require.NoError(t, store.Append(t.Context(), records(0, 1)))
	select {
	case <-first:
	default:
		t.Fatal("one's own appends wake at once")
	}
	<-store.Changed() // the first look finds what was there before it

	// A probe stores no event, and wakes nobody.
	second := store.Changed()
	require.NotEqual(t, first, second)
	require.NoError(t, store.Append(t.Context(), nil))
	select {
	case <-second:
		t.Fatal("nothing was stored")
	default:
	}

	// What another process stores is found by looking.
	other := openAt(t, path)
	require.NoError(t, other.Append(t.Context(), records(1, 2)))
	<-second
	require.Len(t, all(t, store, "audit.decision", 1), 1)
	third := store.Changed()
	require.NoError(t, other.Append(t.Context(), emitting(2, 3, "kg.created")))
	<-third
}

// A file of the first version: its records become events, in the order in which they were stored.
func TestOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	script, err := os.ReadFile(filepath.Join("testdata", "version1.sql"))
	require.NoError(t, err)
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	require.NoError(t, db.Migrate(t.Context(), "audit", []string{string(script)}))
	kinds := []policy.RecordKind{
		policy.KindDecision, policy.KindRefusal, policy.KindOutcome, policy.KindPlan, policy.KindGateActivation, policy.KindGateOutage,
		policy.KindLateDecision, "unheard of",
	}
	const n = 800
	require.NoError(t, db.Write(t.Context(), func(tx *sql.Tx) error {
		for i := range n {
			_, err := tx.Exec(`INSERT INTO records VALUES (NULL, ?, ?, ?, 'q', '', 0, 1, 'cli', '', 'user:bob', 'ns', 'get', 'kg', 'allow', 'allowed',
				'', '', '[]', 'success', '', 0, '', '', NULL)`, fmt.Sprint("old-", i), string(kinds[i%len(kinds)]), "2026-03-01T12:00:00.000000000Z")
			if err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())

	store := openAt(t, path)
	require.Len(t, read(t, store, audit.Filter{}), n)
	want := map[string][]string{}
	for i := range n {
		topic := []string{"audit.decision", "audit.refusal", "audit.decision", "audit.decision", "gate.activation", "gate.outage", "gate.late_decision", ""}[i%len(kinds)]
		want[topic] = append(want[topic], fmt.Sprint("old-", i))
	}
	delete(want, "")
	require.NoError(t, store.Append(t.Context(), emitting(0, 1, "kg.created")))
	want["audit.decision"] = append(want["audit.decision"], "id-0")
	for topic, ids := range want {
		requireBounds(t, store, topic, 0, uint64(len(ids)))
		got := []string{}
		for _, e := range all(t, store, topic, 0) {
			got = append(got, recordOf(t, e).ID)
		}
		require.Equal(t, ids, got, topic)
	}
}
