package audit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

func openKeeping(t testing.TB, path string, keep audit.Retention) *audit.Store {
	t.Helper()
	store, err := audit.New(audit.Config{Path: path, Retention: keep})
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// until waits for something that happens by itself.
func until(t testing.TB, what func() bool) {
	t.Helper()
	for !what() {
		require.NoError(t, t.Context().Err())
		time.Sleep(time.Millisecond)
	}
}

func requireExpired(t *testing.T, store *audit.Store, topic string, after, floor uint64) {
	t.Helper()
	_, err := store.Events(t.Context(), topic, after, 10)
	var expired *audit.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, audit.ExpiredError{Topic: topic, After: after, Floor: floor}, *expired)
	require.ErrorContains(t, err, fmt.Sprintf("complete after cursor %d", floor))
}

func TestRetentionSettings(t *testing.T) {
	for _, keep := range []audit.Retention{{Age: -1}, {Rows: -1}} {
		_, err := audit.New(audit.Config{Path: "x", Retention: keep})
		require.ErrorContains(t, err, "0 keeps everything")
	}
}

func TestKeepRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store := openKeeping(t, path, audit.Retention{Rows: 100})
	// 1000 records, every tenth a refusal; every second emits.
	for n := 0; n < 1000; n += 10 {
		batch := append(records(n, n+5), emitting(n+5, n+10, "kg.created")...)
		batch[9].Kind = policy.KindRefusal
		require.NoError(t, store.Append(t.Context(), batch))
	}
	until(t, func() bool { return store.Stats().PrunedRecords == 900 && store.Stats().PrunedEvents == 400 })
	require.Len(t, read(t, store, audit.Filter{}), 100)
	check := func(store *audit.Store) {
		for topic, bounds := range map[string][2]uint64{"audit.decision": {810, 900}, "audit.refusal": {90, 100}, "kg.created": {400, 500}, "gate.outage": {0, 0}} {
			floor, head := bounds[0], bounds[1]
			requireBounds(t, store, topic, floor, head)
			require.Len(t, all(t, store, topic, floor), int(head-floor), "nothing is missing after the floor")
			if floor > 0 {
				requireExpired(t, store, topic, 0, floor)
				requireExpired(t, store, topic, floor-1, floor)
			}
		}
	}
	check(store)
	require.NoError(t, store.Close())
	store = openAt(t, path) // which keeps all
	check(store)
	require.NoError(t, store.Append(t.Context(), records(2000, 2001)))
	requireBounds(t, store, "audit.decision", 810, 901)
}

// A cursor is not used again, even when nothing is left that had one.
func TestCursorsOutliveEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store := openAt(t, path)
	require.NoError(t, store.Append(t.Context(), emitting(0, 10, "kg.created")))
	require.NoError(t, store.Close())
	store = openKeeping(t, path, audit.Retention{Age: time.Nanosecond})
	until(t, func() bool { return store.Stats().PrunedRecords == 10 && store.Stats().PrunedEvents == 10 })
	require.Empty(t, read(t, store, audit.Filter{}))
	for _, topic := range []string{"kg.created", "audit.decision"} {
		requireBounds(t, store, topic, 10, 10)
		requireExpired(t, store, topic, 9, 10)
		require.Empty(t, all(t, store, topic, 10))
	}
	require.NoError(t, store.Close())
	store = openAt(t, path)
	require.NoError(t, store.Append(t.Context(), emitting(10, 11, "kg.created")))
	require.Len(t, all(t, store, "kg.created", 10), 1)
	require.Len(t, all(t, store, "audit.decision", 10), 1)
	requireBounds(t, store, "kg.created", 10, 11)
}

// Age takes the old ones from the beginning, and stops at the first that must stay.
func TestKeepAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store := openAt(t, path)
	batch := emitting(0, 1000, "kg.created")
	for i := range batch {
		if i >= 600 && i != 700 {
			batch[i].Time = time.Now()
		}
	}
	require.NoError(t, store.Append(t.Context(), batch))
	require.NoError(t, store.Close())
	store = openKeeping(t, path, audit.Retention{Age: time.Hour, Rows: 10_000})
	until(t, func() bool { return store.Stats().PrunedRecords == 600 && store.Stats().PrunedEvents == 600 })
	requireBounds(t, store, "kg.created", 600, 1000)
	require.Len(t, all(t, store, "audit.decision", 600), 400)
	require.NoError(t, store.Close())
	require.Len(t, read(t, openKeeping(t, path, audit.Retention{Age: time.Hour}), audit.Filter{}), 400)
}

// Nobody has to do anything for the old ones to go: somebody looks once a minute. The clock is the test's.
func TestAgeGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openKeeping(t, filepath.Join(t.TempDir(), "audit.db"), audit.Retention{Age: 5 * time.Minute})
		batch := records(0, 3)
		for i := range batch {
			batch[i].Time = time.Now().Add(time.Duration(3*i) * time.Minute)
		}
		require.NoError(t, store.Append(t.Context(), batch))
		for _, c := range []struct {
			wait time.Duration
			left int
		}{{270 * time.Second, 3}, {3 * time.Minute, 2}, {3 * time.Minute, 1}, {3 * time.Minute, 0}} {
			time.Sleep(c.wait)
			synctest.Wait()
			require.Len(t, read(t, store, audit.Filter{}), c.left)
		}
	})
}

// Nor is it waited for the next minute when there may be too many.
func TestRowsGoSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openKeeping(t, filepath.Join(t.TempDir(), "audit.db"), audit.Retention{Rows: 100})
		synctest.Wait()
		require.NoError(t, store.Append(t.Context(), records(0, 105)))
		time.Sleep(time.Second)
		require.Len(t, read(t, store, audit.Filter{}), 100, "the batch was more than a tenth")
		require.NoError(t, store.Append(t.Context(), records(105, 110)))
		time.Sleep(time.Second)
		require.Len(t, read(t, store, audit.Filter{}), 105, "a few may wait")
		require.NoError(t, store.Append(t.Context(), emitting(110, 115, "kg.created")))
		time.Sleep(time.Second)
		require.Len(t, read(t, store, audit.Filter{}), 100)
		require.NoError(t, store.Append(t.Context(), records(115, 116)))
		time.Sleep(2 * time.Minute)
		require.Len(t, read(t, store, audit.Filter{}), 100)
	})
}

// What is sent again is not counted again.
func TestRowsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openKeeping(t, filepath.Join(t.TempDir(), "audit.db"), audit.Retention{Rows: 10})
		for range 5 {
			require.NoError(t, store.Append(t.Context(), emitting(0, 9, "kg.created")))
		}
		require.NoError(t, store.Append(t.Context(), emitting(5, 10, "kg.created")))
		time.Sleep(2 * time.Minute)
		require.Len(t, read(t, store, audit.Filter{}), 10)
		require.Len(t, all(t, store, "kg.created", 0), 10)
		require.NoError(t, store.Append(t.Context(), records(10, 15)))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "id-5", read(t, store, audit.Filter{})[0].ID)
		require.Len(t, all(t, store, "audit.decision", 5), 10)
	})
}

// While a large part of the store is removed, every append goes through after a few rows at most, those
// of another process too.
func TestAppendWhilePruning(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("OK elsewhere %t", elsewhere), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			appending := openAt(t, path)
			const old = 9000
			for n := 0; n < old; n += 3000 {
				require.NoError(t, appending.Append(t.Context(), records(n, n+3000)))
			}
			pruning := openKeeping(t, path, audit.Retention{Age: time.Hour})
			if !elsewhere {
				appending = pruning
			}
			appended, longest, last := 0, int64(0), int64(0)
			for last < old {
				before := pruning.Stats().PrunedRecords
				r := record(old + appended)
				r.Time = time.Now()
				require.NoError(t, appending.Append(t.Context(), []policy.Record{r}))
				appended++
				last = pruning.Stats().PrunedRecords
				longest = max(longest, last-before)
				if elsewhere { // where nobody queues, one who never pauses keeps the others out
					time.Sleep(rand.N(4 * time.Millisecond))
				}
			}
			t.Logf("%d appends meanwhile; at most %d rows were removed during one", appended, longest)
			require.Less(t, longest, int64(old/2), "no append waited for a large part of the removal")
			require.Greater(t, appended, 5)
			require.Len(t, read(t, appending, audit.Filter{}), appended)
			require.Len(t, all(t, appending, "audit.decision", old), appended)
		})
	}
}

// A follower who is overtaken by the removal is told, and misses nothing in silence.
func TestFollowWhilePruning(t *testing.T) {
	store := openKeeping(t, filepath.Join(t.TempDir(), "audit.db"), audit.Retention{Rows: 200})
	const n = 10_000
	ended := make(chan error, 1)
	go func() {
		for i := 0; i < n; i += 250 {
			if err := store.Append(t.Context(), records(i, i+250)); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	after, expired := uint64(0), 0
	until(t, func() bool { return store.Stats().PrunedRecords > 0 }) // so that it is overtaken once at least
	for after < n {
		page, err := store.Events(t.Context(), "audit.decision", after, 20)
		if lost := new(audit.ExpiredError); err != nil {
			require.ErrorAs(t, err, &lost)
			require.Greater(t, lost.Floor, after)
			after = lost.Floor
			expired++
			continue
		}
		for _, e := range page {
			after++
			require.Equal(t, after, e.Cursor)
			require.Equal(t, int(after)-1, parse(t, recordOf(t, e).ID), "whatever was removed, a cursor's event stays the same")
		}
	}
	require.NoError(t, <-ended)
	require.NotZero(t, expired)
	require.EqualValues(t, n, after)
}

// Two processes with retention on one file remove each row once.
func TestTwoPrune(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store := openAt(t, path)
	require.NoError(t, store.Append(t.Context(), emitting(0, 5000, "kg.created")))
	a, b := openKeeping(t, path, audit.Retention{Rows: 10}), openKeeping(t, path, audit.Retention{Rows: 10})
	until(t, func() bool {
		return a.Stats().PrunedRecords+b.Stats().PrunedRecords >= 4990 && a.Stats().PrunedEvents+b.Stats().PrunedEvents >= 4990
	})
	require.EqualValues(t, 4990, a.Stats().PrunedRecords+b.Stats().PrunedRecords)
	require.EqualValues(t, 4990, a.Stats().PrunedEvents+b.Stats().PrunedEvents)
	require.Len(t, all(t, store, "kg.created", 4990), 10)
	requireExpired(t, store, "kg.created", 4989, 4990)
}

// Close does not wait for a large removal to end.
func TestCloseWhilePruning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	store := openAt(t, path)
	for n := 0; n < 8000; n += 4000 {
		require.NoError(t, store.Append(t.Context(), records(n, n+4000)))
	}
	require.NoError(t, store.Close())
	store = openKeeping(t, path, audit.Retention{Rows: 1})
	until(t, func() bool { return store.Stats().PrunedRecords > 0 })
	require.NoError(t, store.Close())
	store = openAt(t, path)
	floor, head, err := store.Bounds(t.Context(), "audit.decision")
	require.NoError(t, err)
	require.Greater(t, head, floor+1, "it was in the middle")
	require.Len(t, all(t, store, "audit.decision", floor), int(head-floor))
	require.Len(t, read(t, store, audit.Filter{Limit: math.MaxInt32}), int(head-floor))
}
