package session_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// heap is how much memory objects take now, dead ones not yet collected included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap samples the heap until stopped, and then tells the largest it saw.
func watchHeap() (stop func() uint64) {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var largest uint64
		for {
			largest = max(largest, heap())
			select {
			case <-time.After(time.Millisecond):
			case <-done:
				most <- largest
				return
			}
		}
	}()
	return func() uint64 { close(done); return <-most }
}

// echo answers a request with what it asked.
func echo(_ context.Context, _ session.Peer, r session.Request, _, _ int) ([]byte, bool) {
	return []byte(`"` + r.Ops + `"`), true
}

// mixed sends requests of all sizes through a client until their payloads and those of their answers
// come to total bytes, with subscriptions that come and go between them.
func mixed(tb testing.TB, c *session.Client, total int) {
	tb.Helper()
	sizes := []int{40, 300, 300, 1000, 300, 8 << 10, 300, 40, 64 << 10, 300, 512 << 10, 40, 300, 1 << 20}
	texts := map[int]string{}
	for _, n := range sizes {
		texts[n] = strings.Repeat("x", n)
	}
	ctx := context.Background()
	const workers = 4
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			topic := fmt.Sprintf("t%d", w)
			for i, sent := w, 0; sent < total/workers; i++ {
				text := texts[sizes[i%len(sizes)]]
				answer, err := c.Request(ctx, session.ClientRequest{Ops: text})
				if err != nil || len(answer) != len(text)+2 {
					tb.Errorf("%d bytes of %d, %v", len(answer), len(text), err)
					return
				}
				sent += 2 * len(text)
				if i%7 == 0 {
					sub, err := c.Subscribe(ctx, topic, wire.Optional[wire.Cursor]{})
					if err != nil {
						tb.Errorf("subscribe: %v", err)
						return
					}
					_ = sub.Close()
				}
			}
		})
	}
	all.Wait()
}

// 64 MiB of mixed frames through one session keep nothing behind.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 64 MiB")
	}
	noLeak(t)
	path := onUnix(t, newServer(t, session.Config{Handler: &handler{request: echo}, Events: newStore("t0", "t1", "t2", "t3")}))
	c := newClient(t, session.ClientConfig{Dial: session.DialUnix(path)})
	settled := func() uint64 {
		for range 3 { // what is pooled goes in the second collection after its last use
			runtime.GC()
		}
		return heap()
	}
	mixed(t, c, 1<<20)
	before := settled()
	mixed(t, c, 64<<20)
	require.Less(t, settled(), before+1<<20)
}

func BenchmarkSession64MiB(b *testing.B) {
	const total = 64 << 20
	path := onUnix(b, newServer(b, session.Config{Handler: &handler{request: echo}, Events: newStore("t0", "t1", "t2", "t3")}))
	c := newClient(b, session.ClientConfig{Dial: session.DialUnix(path)})
	mixed(b, c, 1<<20)
	stop := watchHeap()
	b.ReportAllocs()
	b.SetBytes(total)
	for b.Loop() {
		mixed(b, c, total)
	}
	b.ReportMetric(float64(stop())/(1<<20), "max-heap-MiB")
}

func BenchmarkRequestUnix(b *testing.B) {
	request := session.ClientRequest{Ops: strings.Repeat("x", 200)}
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("in flight %d", workers), func(b *testing.B) {
			path := onUnix(b, newServer(b, session.Config{Handler: &handler{request: echo}}))
			c := newClient(b, session.ClientConfig{Dial: session.DialUnix(path)})
			b.ReportAllocs()
			b.SetParallelism(workers)
			if workers == 1 {
				for b.Loop() {
					if _, err := c.Request(context.Background(), request); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
				return
			}
			b.SetParallelism((workers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Request(context.Background(), request); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// BenchmarkEvents is events from the store to a subscriber that takes them as they come.
func BenchmarkEvents(b *testing.B) {
	st := newStore("t")
	path := onUnix(b, newServer(b, session.Config{Events: benchStore{st}}))
	c := newClient(b, session.ClientConfig{Dial: session.DialUnix(path), EventQueue: 4096})
	sub, err := c.Subscribe(context.Background(), "t", wire.Some(wire.Cursor(0)))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sub.Next(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// benchStore has events without end.
type benchStore struct{ *store }

func (benchStore) Bounds(context.Context, string) (floor, head uint64, err error) {
	return 0, 1 << 62, nil
}

func (benchStore) Read(_ context.Context, topic string, after uint64, limit int) ([]session.Event, error) {
	page := make([]session.Event, limit)
	for i := range page {
		after++
		page[i] = session.Event{
			Topic: topic, Cursor: after, OccurredAt: "2026-01-02T03:04:05Z", Namespace: "local",
			Payload: []byte(`{"decision":"allow","verb":"memory.recall","namespace":"local"}`),
		}
	}
	return page, nil
}
