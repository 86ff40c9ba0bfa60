package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// shaky is a store that fails at random, also after it has written, and ignores records that it has. It
// knows what it owes: the records it refused and was not given again.
type shaky struct {
	mu      sync.Mutex
	random  *rand.Rand
	sound   bool
	asked   int
	failed  int
	after   int // failures after the batch was written
	records []policy.Record
	has     map[string]bool
	owed    map[string]bool
	since   time.Time // when it began to owe
}

func (s *shaky) Append(ctx context.Context, batch []policy.Record) error {
	s.mu.Lock()
	takes := time.Duration(s.random.IntN(300)) * time.Millisecond
	fails, writes := !s.sound && s.random.IntN(3) == 0, s.random.IntN(2) == 0
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if !fails || writes {
		for _, rec := range batch {
			if !s.has[rec.ID] {
				s.has[rec.ID] = true
				s.records = append(s.records, rec)
			}
		}
	}
	if !fails {
		for _, rec := range batch {
			delete(s.owed, rec.ID)
		}
		return nil
	}
	s.failed++
	if writes {
		s.after++
	}
	if len(s.owed) == 0 {
		s.since = time.Now()
	}
	for _, rec := range batch {
		s.owed[rec.ID] = true
	}
	return errors.New("not now")
}

// known reports whether the dispatcher has known since before an instant that the store is down.
func (s *shaky) known(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owed) > 0 && s.since.Before(at)
}

// Many requests, and a store that fails at random and then recovers: every operation has its record, once,
// and none begins while the store is known to be down.
func TestNoRecordIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &shaky{random: rand.New(rand.NewPCG(seed, 0)), has: map[string]bool{}, owed: map[string]bool{}}
				h := newHouse(t, func(c *dispatcher.Config) { c.Audit = store })
				var mu sync.Mutex
				ran, began := map[string]int{}, map[string]time.Time{} // by request id or the mark of the operation
				h.check = func(_ context.Context, in *policy.Input) error {
					mu.Lock()
					defer mu.Unlock()
					if at := began[in.Token.Namespace]; store.known(at) {
						t.Errorf("%s was judged although the store has been down since before %v", in.Token.Namespace, at)
					}
					return nil
				}
				h.do = func(_ context.Context, call *packs.Call) (any, error) {
					mu.Lock()
					defer mu.Unlock()
					ran[call.DecisionID]++
					return nil, nil
				}
				var clients sync.WaitGroup
				answered := map[string]bool{} // refusals whose entry says nothing of the store
				for c := range 12 {
					random := rand.New(rand.NewPCG(seed, uint64(c)+1))
					clients.Go(func() {
						for i := range 30 {
							time.Sleep(time.Duration(random.IntN(700_000)+1) * time.Microsecond)
							mark := fmt.Sprintf("c%d.%d", c, i)
							mu.Lock()
							began[mark] = time.Now()
							mu.Unlock()
							env := h.run(`[probe.do(namespace="` + mark + `"), probe.do(namespace="` + mark + `", x=1), probe.do(namespace=1)]`)
							for _, e := range env.Results {
								if e.Code != dispatcher.CodeAuditUnavailable && len(e.Advisories) == 0 && e.DecisionID != "" {
									store.mu.Lock()
									if !strings.Contains(fmt.Sprint(decisions(store.records)), e.DecisionID) {
										t.Errorf("the answer to %s left before its record was stored", mark)
									}
									store.mu.Unlock()
									mu.Lock()
									answered[e.DecisionID] = true
									mu.Unlock()
								}
							}
						}
					})
				}
				clients.Wait()
				require.NotZero(t, store.failed)
				require.NotZero(t, store.after)
				require.NotZero(t, h.Stats().AuditUnavailable)

				store.mu.Lock()
				store.sound = true
				store.mu.Unlock()
				time.Sleep(1100 * time.Millisecond)
				require.True(t, h.one(`probe.do(namespace="last")`).OK, "it is up again")
				require.NoError(t, h.Close())

				require.Empty(t, store.owed)
				require.Zero(t, h.Stats().RecordsLost)
				times := decisions(store.records)
				require.NotEmpty(t, ran)
				for id, n := range ran {
					require.Equal(t, 1, n)
					require.Equal(t, 1, times[id], "each operation that ran is on record once")
				}
				for id := range answered {
					require.Equal(t, 1, times[id])
				}
			})
		})
	}
}

// decisions counts the records by decision.
func decisions(records []policy.Record) map[string]int {
	times := map[string]int{}
	for _, rec := range records {
		times[rec.DecisionID]++
	}
	return times
}

// gated is a store whose Appends answer when a test says so, in any order.
type gated struct {
	asked  chan chan error
	batch  chan []policy.Record
	stored []policy.Record
}

func (g *gated) Append(_ context.Context, batch []policy.Record) error {
	answer := make(chan error)
	g.batch <- batch
	g.asked <- answer
	err := <-answer
	if err == nil {
		g.stored = append(g.stored, batch...)
	}
	return err
}

func (g *gated) next() (answer chan error, batch []policy.Record) {
	batch = <-g.batch
	return <-g.asked, batch
}

// A success that says nothing about the records that were refused is not the end of an outage.
func TestOnlyWhatWasRefusedEndsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gated{asked: make(chan chan error, 10), batch: make(chan []policy.Record, 10)}
		h := newHouse(t, func(c *dispatcher.Config) { c.Audit = store })
		send := func(ops string) <-chan dispatcher.Entry {
			done := make(chan dispatcher.Entry, 1)
			go func() { done <- h.one(ops) }()
			synctest.Wait()
			return done
		}
		ids := func(batch []policy.Record) (out []string) {
			for _, rec := range batch {
				out = append(out, string(rec.Params))
			}
			return out
		}
		refused := func(why string) {
			t.Helper()
			require.Equal(t, dispatcher.CodeAuditUnavailable, (<-send(`probe.do()`)).Code, why)
		}
		first, a1 := send(`probe.do(value=1)`), (chan error)(nil)
		a1, _ = store.next()
		second := send(`probe.do(value=2)`)
		a2, _ := store.next()
		a1 <- errors.New("full")
		require.NotEmpty(t, (<-first).Advisories)
		a2 <- nil
		require.Empty(t, (<-second).Advisories, "it is on record")
		refused("the second one began before the first was refused")

		time.Sleep(1100 * time.Millisecond)
		probe := send(`probe.do(value=3)`) // takes the turn
		a3, batch := store.next()
		require.Equal(t, []string{`{"value":1}`}, ids(batch))
		<-send(`probe.do(namespace=1)`) // its record waits: the store is being asked
		refused("while the store is being asked")
		a3 <- errors.New("still full")
		require.Equal(t, dispatcher.CodeAuditUnavailable, (<-probe).Code)

		time.Sleep(1100 * time.Millisecond)
		probe = send(`probe.do(value=4)`)
		a4, batch := store.next()
		require.Len(t, batch, 2, "with what came meanwhile, oldest first")
		require.Equal(t, `{"value":1}`, ids(batch)[0])
		<-send(`probe.do(namespace=2)`)
		a4 <- nil
		a5, batch := store.next()
		require.Len(t, batch, 1, "what came to wait meanwhile does not wait for the next operation")
		a5 <- nil
		synctest.Wait()
		a6, batch := store.next()
		require.Equal(t, []string{`{"value":4}`}, ids(batch))
		a6 <- nil
		require.True(t, (<-probe).OK)
		require.Len(t, store.stored, 5)
	})
}

// Operations that began before the outage end in the middle of it, while the store is being asked.
func TestWhatEndsDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gated{asked: make(chan chan error, 10), batch: make(chan []policy.Record, 10)}
		h := newHouse(t, func(c *dispatcher.Config) { c.Audit = store })
		release := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
		h.do = func(_ context.Context, call *packs.Call) (any, error) {
			if wait := release[call.Params.String("value")]; wait != nil {
				<-wait
			}
			return nil, nil
		}
		send := func(ops string) <-chan dispatcher.Entry {
			done := make(chan dispatcher.Entry, 1)
			go func() { done <- h.one(ops) }()
			synctest.Wait()
			return done
		}
		params := func(batch []policy.Record) (out []string) {
			for _, rec := range batch {
				out = append(out, string(rec.Params))
			}
			return out
		}
		a, b := send(`probe.do(value="a")`), send(`probe.do(value="b")`)
		first := send(`probe.do(value="first")`)
		answer, _ := store.next()
		answer <- errors.New("full")
		<-first
		time.Sleep(1100 * time.Millisecond)

		probe := send(`probe.do()`)
		probed, _ := store.next()
		close(release["a"])
		answer, batch := store.next()
		require.Equal(t, []string{`{"value":"a"}`}, params(batch), "the others are being asked about")
		answer <- errors.New("full")
		require.NotEmpty(t, (<-a).Advisories)
		probed <- nil
		require.Equal(t, dispatcher.CodeAuditUnavailable, (<-probe).Code, "something was refused meanwhile")

		close(release["b"])
		answer, batch = store.next()
		require.Equal(t, []string{`{"value":"a"}`, `{"value":"b"}`}, params(batch), "oldest first")
		answer <- nil
		require.Empty(t, (<-b).Advisories)
		up := send(`probe.do()`)
		answer, _ = store.next()
		answer <- nil
		require.True(t, (<-up).OK)
	})
}

// What comes while the records that wait are tried again takes no room of theirs.
func TestRefusalsDoNotDriveOutRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.setStoreErr(errors.New("full"))
		require.True(t, h.one(`probe.do()`).OK)
		time.Sleep(1100 * time.Millisecond)
		answer := make(chan error)
		h.append = func(context.Context, []policy.Record) error { return <-answer }
		go h.run(`probe.do()`)
		synctest.Wait()
		big := strings.Repeat("x", 60<<10)
		for h.Stats().RecordsLost == 0 {
			h.run(`probe.echo(namespace=1, id="` + big + `")`)
		}
		answer <- errors.New("still full")
		synctest.Wait()
		h.append = nil
		h.setStoreErr(nil)
		require.NoError(t, h.Close())
		require.Equal(t, []string{"probe.do", "success"}, []string{h.records[0].Verb, h.records[0].Outcome})
	})
}

// The room of what was stored is free again.
func TestAnOutageLeavesNoRoomTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		big := strings.Repeat("x", 60<<10)
		for range 4 {
			h.setStoreErr(errors.New("full"))
			require.True(t, h.one(`probe.do()`).OK)
			for range 100 {
				h.run(`probe.echo(namespace=1, id="` + big + `")`)
			}
			h.setStoreErr(nil)
			time.Sleep(1100 * time.Millisecond)
			require.True(t, h.one(`probe.do()`).OK)
		}
		require.Len(t, h.records, 4*102)
		for _, rec := range h.records {
			require.NotContains(t, string(rec.Params), "$withheld")
		}
	})
}

// A caller that is gone does not make the store look down.
func TestAttemptsDoNotDependOnTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.setStoreErr(errors.New("full"))
		h.run(`probe.do()`)
		h.setStoreErr(nil)
		time.Sleep(1100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		env := h.Run(ctx, caller, parse(t, `probe.do()`))
		require.Equal(t, dispatcher.CodeCancelled, env.Results[0].Code, "not that the store is down")
		require.Len(t, h.records, 2)
	})
}

// What is told to the recorder when nobody will try again is counted as lost.
func TestRecordsAfterCloseAreCounted(t *testing.T) {
	h := newHouse(t)
	require.NoError(t, h.Close())
	h.setStoreErr(errors.New("closed"))
	require.False(t, h.Record(t.Context(), policy.Record{ID: "a", Kind: policy.KindGateActivation}))
	require.EqualValues(t, 1, h.Stats().RecordsLost)
}
