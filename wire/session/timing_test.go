package session_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

const hello = "\x00\x00\x00\x20" + `{"kind":"handshake","version":1}`

// slowly writes one byte a second until all are written or the connection is closed.
func slowly(w io.Writer, bytes string) (wait func()) {
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range len(bytes) {
			if _, err := io.WriteString(w, bytes[i:i+1]); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	})
	return writing.Wait
}

func TestHandshakeTimeout(t *testing.T) {
	for name, bytes := range map[string]string{"ErrSilent": "", "ErrByteASecond": hello} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, session.Config{})
				other := connect(t, s)
				start := time.Now()
				p, stop := pipe(t, s, alice)
				defer stop()
				wait := slowly(p.conn, bytes)
				defer wait()
				p.getsError("", wire.MalformedFrame, "the handshake must be whole within 10s")
				p.closed()
				require.Equal(t, 10*time.Second, time.Since(start))
				other.lives("1")
			})
		})
	}
	t.Run("OKLate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, stop := pipe(t, newServer(t, session.Config{}), alice)
			defer stop()
			time.Sleep(10*time.Second - time.Nanosecond)
			p.shake()
			time.Sleep(24 * time.Hour) // a silent connection stays
			p.lives("1")
		})
	})
}

func TestFrameTimeout(t *testing.T) {
	request := `{"kind":"request","id":"1","ops":"ping()"}`
	framed := "\x00\x00\x00" + string(rune(len(request))) + request
	for name, bytes := range map[string]string{
		"ErrOneByte":     "\x00",
		"ErrPrefix":      "\x00\x00\x00",
		"ErrAllButOne":   framed[:len(framed)-1],
		"ErrLarge":       "\x00\x40\x00\x00" + strings.Repeat(" ", 100_000),
		"ErrSlowly":      "",
		"ErrSecondFrame": framed + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, session.Config{})
				p, other := connect(t, s), connect(t, s)
				start := time.Now()
				if bytes == "" {
					wait := slowly(p.conn, framed)
					defer wait()
				} else {
					p.raw(bytes)
				}
				if name == "ErrSecondFrame" {
					require.Contains(t, p.next(), "response")
				}
				p.getsError("", wire.MalformedFrame, "a frame that has begun must be whole within 30s")
				p.closed()
				require.Equal(t, 30*time.Second, time.Since(start))
				other.lives("1")
			})
		})
	}
	t.Run("OKJustInTime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, newServer(t, session.Config{}))
			for i := range 3 { // the time is each frame's own
				f := strings.Replace(framed, `"1"`, fmt.Sprintf(`"%d"`, i), 1)
				p.raw(f[:3])
				time.Sleep(30*time.Second - time.Nanosecond)
				p.raw(f[3:])
				p.gets(fmt.Sprintf(`{"kind":"response","id":"%d","result":{"echo":"ping()"}}`, i))
			}
			time.Sleep(time.Hour)
			p.lives("x")
		})
	})
	// What arrives after the time was up is not acted on.
	t.Run("ErrTooLate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, newServer(t, session.Config{Handler: &handler{request: func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
				t.Error("a request was answered")
				return nil, false
			}}}))
			p.raw(framed[:10])
			time.Sleep(30 * time.Second)
			synctest.Wait()
			p.raw(framed[10:])
			synctest.Wait()
			p.getsError("", wire.MalformedFrame, "whole within 30s")
			p.closed()
		})
	})
}

func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, session.Config{})
		p, other := connect(t, s), connect(t, s)
		p.send(`{"kind":"request","id":"1","ops":""}`) // the answer is not read
		time.Sleep(30*time.Second - time.Nanosecond)
		require.Equal(t, 2, s.Stats().Open)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Open)
		p.closed()
		other.lives("1")
	})
}

// A peer that sends a million tiny frames and reads no answer is not read from once the queue is full,
// and is closed when a write has taken too long.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int32
		s := newServer(t, session.Config{Handler: &handler{request: func(_ context.Context, _ session.Peer, r session.Request, _, _ int) ([]byte, bool) {
			if r.Ops == "flood" {
				handled.Add(1)
			}
			return []byte("1"), true
		}}})
		p, other := connect(t, s), connect(t, s)
		written, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			for i := range 1_000_000 {
				payload := fmt.Sprintf(`{"kind":"request","id":"%d","ops":"flood"}`, i)
				if _, err := io.WriteString(p.conn, "\x00\x00\x00"+string(rune(len(payload)))+payload); err != nil {
					return
				}
				written++
			}
		}()
		start := time.Now()
		synctest.Wait()
		other.answers()
		<-done
		require.Equal(t, 30*time.Second, time.Since(start))
		require.Less(t, written, 1000)
		// The queue, what the writer had taken before it, and what was in flight.
		require.LessOrEqual(t, handled.Load(), int32(128+128+64))
	})
}

// Nor is it when the answers are large: what waits in memory is bounded too.
func TestUnreadLargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int32
		s := newServer(t, session.Config{MaxPayload: 64 << 10, Handler: &handler{request: func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
			handled.Add(1)
			return []byte(`"` + strings.Repeat("x", 60<<10) + `"`), true
		}}})
		p := connect(t, s)
		go func() {
			for i := range 100 {
				payload := fmt.Sprintf(`{"kind":"request","id":"%d","ops":""}`, i)
				if _, err := io.WriteString(p.conn, "\x00\x00\x00"+string(rune(len(payload)))+payload); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(time.Second)
		require.LessOrEqual(t, handled.Load(), int32(4))
		require.NoError(t, p.conn.Close())
	})
}

// A peer that reads a large answer slowly is not one that does not read.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		p := connect(t, newServer(t, session.Config{Handler: &handler{request: func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
			return []byte(`"` + strings.Repeat("x", size-2) + `"`), true
		}}}))
		p.send(`{"kind":"request","id":"1","ops":""}`)
		buf, left := make([]byte, 64<<10), 4+len(`{"kind":"response","id":"1","result":}`)+size
		for left > 0 {
			time.Sleep(5 * time.Second)
			n, err := io.ReadFull(p.conn, buf[:min(left, len(buf))])
			require.NoError(t, err)
			left -= n
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 8)
		p := connect(t, newServer(t, session.Config{Handler: &handler{request: func(ctx context.Context, _ session.Peer, r session.Request, _, _ int) ([]byte, bool) {
			if r.Ops == "deaf" {
				time.Sleep(time.Hour)
				return []byte("1"), true
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return []byte("1"), true
		}}}))
		start := time.Now()
		p.send(`{"kind":"request","id":"0","ops":"","deadline_ms":0}`)
		p.getsError("0", wire.DeadlineExceeded, "the deadline has passed")
		require.Zero(t, time.Since(start))
		require.Empty(t, ended) // it never started

		p.send(`{"kind":"request","id":"1","ops":"","deadline_ms":1500}`)
		p.getsError("1", wire.DeadlineExceeded, "the deadline has passed")
		require.Equal(t, 1500*time.Millisecond, time.Since(start))
		require.Equal(t, context.DeadlineExceeded, <-ended)

		p.send(`{"kind":"request","id":"2","ops":"deaf","deadline_ms":500}`) // an answer after all is not sent
		p.getsError("2", wire.DeadlineExceeded, "")
		require.Equal(t, 2*time.Second, time.Since(start))
		time.Sleep(time.Hour)

		p.send(`{"kind":"request","id":"3","ops":"","deadline_ms":86400000}`) // a day is the longest
		p.getsError("3", wire.DeadlineExceeded, "")
		require.Equal(t, context.DeadlineExceeded, <-ended)

		for i, ms := range []string{"86400001", "18446744073709551615"} {
			id := fmt.Sprint(4 + i)
			p.send(`{"kind":"request","id":"` + id + `","ops":"","deadline_ms":` + ms + `}`)
			time.Sleep(1000 * time.Hour)
			p.send(`{"kind":"cancel","id":"` + id + `"}`)
			p.getsError(id, wire.Cancelled, "cancelled by the client")
			require.Equal(t, context.Canceled, <-ended)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		p := connect(t, newServer(t, session.Config{Handler: &handler{request: func(ctx context.Context, _ session.Peer, r session.Request, _, _ int) ([]byte, bool) {
			if r.Ops == "wait" {
				<-ctx.Done()
				time.Sleep(time.Second) // it has something to finish
				ended <- ctx.Err()
			}
			return []byte("1"), true
		}}}))
		p.send(`{"kind":"cancel","id":"never"}`)
		p.send(`{"kind":"request","id":"a","ops":"wait"}`)
		synctest.Wait() // or it might never start
		p.send(`{"kind":"cancel","id":"a"}`)
		p.getsError("a", wire.Cancelled, "")
		require.Equal(t, context.Canceled, <-ended)
		p.send(`{"kind":"cancel","id":"a"}`) // it has ended
		p.send(`{"kind":"request","id":"b","ops":""}`)
		p.gets(`{"kind":"response","id":"b","result":1}`) // and nothing else
		p.send(`{"kind":"cancel","id":"b"}`)
		p.send(`{"kind":"request","id":"c","ops":""}`)
		p.gets(`{"kind":"response","id":"c","result":1}`)
	})
}

// Operations whose handlers do not notice that they were cancelled still count, beyond as many again.
func TestDeafHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, newServer(t, session.Config{
			Limits: session.Limits{InFlight: 2},
			Handler: &handler{request: func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
				time.Sleep(time.Hour)
				return []byte("1"), true
			}},
		}))
		for i := range 4 {
			p.send(fmt.Sprintf(`{"kind":"request","id":"%d","ops":""}`, i))
			synctest.Wait()
			p.send(fmt.Sprintf(`{"kind":"cancel","id":"%d"}`, i))
			p.getsError(fmt.Sprint(i), wire.Cancelled, "")
		}
		p.send(`{"kind":"request","id":"x","ops":""}`)
		p.getsError("x", wire.InFlightLimitExceeded, "have not stopped yet")
		time.Sleep(time.Hour + time.Nanosecond)
		p.send(`{"kind":"request","id":"y","ops":""}`)
		p.gets(`{"kind":"response","id":"y","result":1}`)
	})
}

// The peer's end takes everything in flight with it.
func TestPeerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		s := newServer(t, session.Config{Handler: &handler{request: func(ctx context.Context, _ session.Peer, _ session.Request, _, _ int) ([]byte, bool) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, false
		}}})
		p := connect(t, s)
		p.send(`{"kind":"request","id":"a","ops":""}`, `{"kind":"request","id":"b","ops":"","deadline_ms":100000}`)
		synctest.Wait()
		require.NoError(t, p.conn.Close())
		require.Equal(t, context.Canceled, <-ended)
		require.Equal(t, context.Canceled, <-ended)
		synctest.Wait()
		require.Equal(t, session.Stats{Accepted: 1}, s.Stats())
	})
}

// The end of a certificate is the end of its connection.
func TestIdentityExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, session.Config{})
		p, stop := pipe(t, s, session.StaticIdentity{Kind: "user", ID: "a", Expires: time.Now().Add(time.Hour)})
		defer stop()
		p.shake()
		time.Sleep(time.Hour - time.Nanosecond)
		p.lives("1")
		time.Sleep(time.Nanosecond)
		p.getsError("", wire.IdentityRejected, "the certificate has expired")
		p.closed()
	})
}
