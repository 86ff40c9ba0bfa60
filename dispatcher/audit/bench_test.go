package audit_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

// BenchmarkAppend stores one record a call, from so many goroutines at a time.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			store, _ := open(b)
			var next atomic.Int64
			work := make(chan struct{})
			ended := make(chan error, callers)
			for range callers {
				go func() {
					r := record(1)
					batch := []policy.Record{r}
					for range work {
						batch[0].ID = strconv.FormatInt(next.Add(1), 10)
						if err := store.Append(b.Context(), batch); err != nil {
							ended <- err
							return
						}
					}
					ended <- nil
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			for range callers {
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
			}
			stats := store.Stats()
			b.ReportMetric(float64(stats.Records)/float64(stats.Commits), "records/commit")
		})
	}
}

func BenchmarkAppendBatch(b *testing.B) {
	store, _ := open(b)
	batch := records(0, 100)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			n++
			batch[i].ID = strconv.Itoa(n)
		}
		if err := store.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	store, _ := open(b)
	if err := store.Append(b.Context(), records(0, 10_000)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range store.Records(b.Context(), audit.Filter{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	key := newKey(b)
	value := map[string]any{"token": "a secret of some length", "n": number("12.50"), "list": []any{"a", nil, true}}
	b.ReportAllocs()
	for b.Loop() {
		key.Seal("params.x", value)
	}
}

func BenchmarkLine(b *testing.B) {
	r := record(1)
	b.ReportAllocs()
	for b.Loop() {
		audit.Line(r)
	}
}

// BenchmarkAppendEvents is BenchmarkAppend for records that carry one event of a pack each.
func BenchmarkAppendEvents(b *testing.B) {
	store, _ := open(b)
	batch := emitting(0, 100, "kg.created")
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			n++
			batch[i].ID = strconv.Itoa(n)
		}
		if err := store.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFollow reads 10 000 events, as a follower who is behind does.
func BenchmarkFollow(b *testing.B) {
	store, _ := open(b)
	if err := store.Append(b.Context(), emitting(0, 10_000, "kg.created")); err != nil {
		b.Fatal(err)
	}
	for _, topic := range []string{"audit.decision", "kg.created"} {
		b.Run(topic, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				after := uint64(0)
				for after < 10_000 {
					page, err := store.Events(b.Context(), topic, after, 1000)
					if err != nil {
						b.Fatal(err)
					}
					after += uint64(len(page))
				}
			}
		})
	}
}

// BenchmarkWake is one append and one follower who waits for it.
func BenchmarkWake(b *testing.B) {
	store, _ := open(b)
	r := []policy.Record{record(0)}
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		changed := store.Changed()
		r[0].ID = strconv.FormatUint(n, 10)
		if err := store.Append(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		<-changed
		if page, err := store.Events(b.Context(), "audit.decision", n, 10); err != nil || len(page) != 1 {
			b.Fatal(len(page), err)
		}
		n++
	}
}

func BenchmarkPrune(b *testing.B) {
	store := openKeeping(b, filepath.Join(b.TempDir(), "audit.db"), audit.Retention{Rows: 1000})
	batch := records(0, 1000)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			n++
			batch[i].ID = strconv.Itoa(n)
		}
		if err := store.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		until(b, func() bool { return store.Stats().PrunedRecords >= int64(n-1000) })
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
