package audit_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
)

var (
	_ dispatcher.Recorder = (*audit.Store)(nil)
	_ dispatcher.Sealer   = (*audit.Key)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// record returns a record that has every field, different for each n.
func record(n int) policy.Record {
	return policy.Record{
		ID: fmt.Sprintf("id-%d", n), Kind: policy.KindDecision, Time: start.Add(time.Duration(n) * time.Second),
		RequestID: fmt.Sprintf("request-%d", n/10), DecisionID: fmt.Sprintf("decision-%d", n), Index: n % 10, Count: 10,
		Source: "mcp", SessionID: "s1", Actor: "user:bob", Namespace: "local", Verb: []string{"get", "create"}[n%2], Pack: "kg",
		Decision: "allow", Effect: "allowed", Reason: "because", Code: "ok.fine", Obligations: []string{"audit:pii"},
		Outcome: "success", ErrorCode: "none", Duration: time.Duration(n) * time.Microsecond, Gate: "opa", Revision: "r1",
		Params: json.RawMessage(`{"id":"x","n":9007199254740993}`),
	}
}

func records(from, to int) (batch []policy.Record) {
	for n := from; n < to; n++ {
		batch = append(batch, record(n))
	}
	return batch
}

func open(t testing.TB) (*audit.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	return openAt(t, path), path
}

func openAt(t testing.TB, path string) *audit.Store {
	t.Helper()
	store, err := audit.New(audit.Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func read(t testing.TB, store *audit.Store, f audit.Filter) []policy.Record {
	t.Helper()
	got := []policy.Record{}
	for r, err := range store.Records(t.Context(), f) {
		require.NoError(t, err)
		got = append(got, r)
	}
	return got
}

func ids(batch []policy.Record) []string {
	out := []string{}
	for _, r := range batch {
		out = append(out, r.ID)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	store, path := open(t)
	bare := policy.Record{ID: "bare", Kind: policy.KindRefusal, Time: start}
	odd := record(7)
	odd.ID, odd.Verb, odd.Reason = "odd\x00\xff", "x\u2028{\"ok\":true}\r\n", strings.Repeat("long ", 100_000)
	odd.Time = time.Date(1, 1, 1, 0, 0, 0, 1, time.FixedZone("", 3600)).AddDate(5, 0, 0)
	batch := []policy.Record{record(1), bare, odd}
	require.NoError(t, store.Append(t.Context(), batch))

	batch[1].Obligations = []string{}
	batch[2].Time = batch[2].Time.UTC()
	require.Equal(t, batch, read(t, store, audit.Filter{}))

	require.NoError(t, store.Close())
	require.Equal(t, batch, read(t, openAt(t, path), audit.Filter{}), "after a restart")
}

func TestLifeCycle(t *testing.T) {
	_, err := audit.New(audit.Config{})
	require.ErrorContains(t, err, "no path")

	path := filepath.Join(t.TempDir(), "audit.db")
	store, err := audit.New(audit.Config{Path: path})
	require.NoError(t, err)
	require.NoFileExists(t, path, "New starts nothing")
	require.ErrorIs(t, store.Append(t.Context(), records(0, 1)), audit.ErrNotOpen)
	require.Zero(t, store.Stats())
	for _, err := range store.Records(t.Context(), audit.Filter{}) {
		require.ErrorIs(t, err, audit.ErrNotOpen)
	}
	require.NoError(t, store.Open(t.Context()))
	require.ErrorContains(t, store.Open(t.Context()), "open already")
	require.NoError(t, store.Append(t.Context(), records(0, 1)))
	require.NoError(t, store.Close())
	require.NoError(t, store.Close())
	require.ErrorIs(t, store.Append(t.Context(), records(1, 2)), audit.ErrClosed)
	require.ErrorIs(t, store.Open(t.Context()), audit.ErrClosed)
	for _, err := range store.Records(t.Context(), audit.Filter{}) {
		require.ErrorIs(t, err, audit.ErrClosed)
	}
}

func TestProbeCommits(t *testing.T) {
	store, path := open(t)
	// Another connection sees only what was committed.
	other, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer other.Close()
	probes := func() (n int) {
		require.NoError(t, other.Read(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT count FROM probes").Scan(&n) }))
		return n
	}
	require.Equal(t, 0, probes())
	require.NoError(t, store.Append(t.Context(), nil))
	require.Equal(t, 1, probes())
	require.Equal(t, audit.Stats{Batches: 1, Commits: 1}, store.Stats())
	require.Empty(t, read(t, store, audit.Filter{}))
}

// hold takes the write lock of the file as another process would, until release is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	other, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	held, let, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(context.Background(), func(*sql.Tx) error {
			close(held)
			<-let
			return nil
		})
	}()
	<-held
	return sync.OnceFunc(func() {
		close(let)
		require.NoError(t, <-done)
		require.NoError(t, other.Close())
	})
}

// queue appends the batches at the same time, while the writer is busy with the first of them and waits
// for the lock that hold took. It returns once all the others are queued.
func queue(ctx context.Context, store *audit.Store, batches [][]policy.Record) (answers chan error) {
	answers = make(chan error, len(batches))
	before := store.Stats().Batches
	for i, batch := range batches {
		go func() { answers <- store.Append(ctx, batch) }()
		for i == 0 && (store.Stats().Batches == before || store.Stats().Queued > 0) {
			time.Sleep(time.Millisecond)
		}
	}
	for store.Stats().Batches < before+int64(len(batches)) {
		time.Sleep(time.Millisecond)
	}
	return answers
}

// each makes n batches of so many records.
func each(n, size int) (batches [][]policy.Record) {
	for i := range n {
		batches = append(batches, records(i*size, (i+1)*size))
	}
	return batches
}

func TestGroupCommit(t *testing.T) {
	store, path := open(t)
	release := hold(t, path)
	defer release()
	const callers = 100
	answers := queue(t.Context(), store, each(callers, 3))
	release()
	for range callers {
		require.NoError(t, <-answers)
	}
	require.Len(t, read(t, store, audit.Filter{}), 3*callers)
	require.EqualValues(t, 3*callers, store.Stats().Records)
	require.EqualValues(t, 2, store.Stats().Commits, "the first alone, then all the others")
}

func TestGroupIsBounded(t *testing.T) {
	store, path := open(t)
	release := hold(t, path)
	defer release()
	const callers = 21
	answers := queue(t.Context(), store, each(callers, 100))
	release()
	for range callers {
		require.NoError(t, <-answers)
	}
	require.EqualValues(t, 5, store.Stats().Commits, "one, then six at a time: 512 rows and what the last batch adds")
	// Batches are not torn, whatever group they went in.
	got := read(t, store, audit.Filter{})
	require.Len(t, got, 100*callers)
	for i := 0; i < len(got); i += 100 {
		require.Equal(t, fmt.Sprint("request-", parse(t, got[i].ID)/10), got[i].RequestID)
		for k := range 100 {
			require.Equal(t, parse(t, got[i].ID)+k, parse(t, got[i+k].ID))
		}
	}
}

func parse(t *testing.T, id string) (n int) {
	t.Helper()
	_, err := fmt.Sscanf(id, "id-%d", &n)
	require.NoError(t, err)
	return n
}

func TestHugeBatchIsOneCommit(t *testing.T) {
	store, _ := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 3000)))
	require.Equal(t, audit.Stats{Batches: 1, Records: 3000, Commits: 1}, store.Stats())
}

// A record that cannot be stored fails its own batch, all of it, and nobody else's.
func TestBadBatchAmongOthers(t *testing.T) {
	store, path := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 1)))
	notJSON := records(20, 23)
	notJSON[2].Params = json.RawMessage(`{"half":`)
	bad := map[string][]policy.Record{
		"params are not JSON": notJSON,
		"year out of range":   {record(30), {ID: "far", Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	}
	release := hold(t, path)
	defer release()
	good := [][]policy.Record{}
	for n := 100; n < 200; n += 10 {
		good = append(good, records(n, n+10))
	}
	batches, want := [][]policy.Record{good[0]}, 0
	for _, batch := range bad {
		batches = append(batches, batch)
		want++
	}
	answers := queue(t.Context(), store, append(batches, good[1:]...))
	release()
	failed := 0
	for range len(bad) + len(good) {
		if err := <-answers; err != nil {
			var unavailable *packs.UnavailableError
			require.NotErrorAs(t, err, &unavailable)
			failed++
		}
	}
	require.Equal(t, want, failed)
	for _, r := range read(t, store, audit.Filter{})[1:] {
		require.GreaterOrEqual(t, parse(t, r.ID), 100)
	}
	require.Len(t, read(t, store, audit.Filter{}), 101)
}

// Whoever had no answer sends the batch again: what is there already stays as it is, once.
func TestSameBatchAgain(t *testing.T) {
	store, _ := open(t)
	batch := records(0, 3)
	batch[1].Events = []policy.Event{{Topic: "kg.created", Payload: json.RawMessage(`{}`)}}
	require.NoError(t, store.Append(t.Context(), batch))
	again := append(slices.Clone(batch), record(3))
	again[0].Reason = "another"
	require.NoError(t, store.Append(t.Context(), again))
	require.NoError(t, store.Append(t.Context(), append(records(4, 6), record(4))), "twice in one batch")
	stored := read(t, store, audit.Filter{})
	require.Len(t, stored, 6)
	require.NotEqual(t, "another", stored[0].Reason)
	for topic, want := range map[string]int{"audit.decision": 6, "kg.created": 1} {
		events, err := store.Events(t.Context(), topic, 0, 100)
		require.NoError(t, err)
		require.Len(t, events, want, topic)
		for i, e := range events {
			require.EqualValues(t, i+1, e.Cursor, "no cursor is lost")
		}
	}
}

func TestContextEndsWhileQueued(t *testing.T) {
	store, path := open(t)
	release := hold(t, path)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	const callers = 20
	answers := queue(ctx, store, each(callers, 2))
	cancel()
	for range callers {
		require.ErrorIs(t, <-answers, context.Canceled, "before the lock is free: nobody hangs")
	}
	require.ErrorIs(t, store.Append(ctx, records(90, 91)), context.Canceled)
	release()
	require.NoError(t, store.Append(t.Context(), records(100, 102)))
	got := read(t, store, audit.Filter{})
	require.Contains(t, ids(got), "id-100")
	require.LessOrEqual(t, len(got), 4, "at most the batch that was being written, whole, and the last")
	require.Zero(t, len(got)%2)
}

// A writer that cannot keep up slows its callers down and does not fill the memory.
func TestQueueIsBounded(t *testing.T) {
	store, path := open(t)
	release := hold(t, path)
	defer release()
	const most = 1024
	answers := queue(t.Context(), store, each(1+most, 1))
	full := store.Stats()
	require.Equal(t, most, full.Queued)
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() { refused <- store.Append(ctx, records(9000, 9001)) }()
	go func() { answers <- store.Append(t.Context(), records(9001, 9002)) }()
	cancel()
	require.ErrorIs(t, <-refused, context.Canceled)
	require.Equal(t, full, store.Stats())
	release()
	for range 1 + most + 1 {
		require.NoError(t, <-answers)
	}
	require.Len(t, read(t, store, audit.Filter{}), 1+most+1)
}

func TestCloseStoresWhatIsQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store, err := audit.New(audit.Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context()))
	release := hold(t, path)
	defer release()
	const callers = 10
	answers := queue(t.Context(), store, each(callers, 1))
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	release()
	require.NoError(t, <-closed)
	for range callers {
		require.NoError(t, <-answers)
	}
	require.Len(t, read(t, openAt(t, path), audit.Filter{}), callers)
}

// Close and Append at the same time: every answer is true.
func TestCloseAmongAppends(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "audit.db")
		store, err := audit.New(audit.Config{Path: path})
		require.NoError(t, err)
		require.NoError(t, store.Open(t.Context()))
		const callers = 16
		answers := make([]error, callers)
		var group sync.WaitGroup
		for n := range callers {
			group.Go(func() { answers[n] = store.Append(t.Context(), records(n, n+1)) })
		}
		group.Go(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
		want := []string{}
		for n, err := range answers {
			if err == nil {
				want = append(want, record(n).ID)
			} else {
				require.ErrorIs(t, err, audit.ErrClosed)
			}
		}
		require.ElementsMatch(t, want, ids(read(t, openAt(t, path), audit.Filter{})))
	}
}
