package session_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// working is a handler whose operations last as long as their text says, or until cancelled.
func working() *handler {
	return &handler{request: func(ctx context.Context, _ session.Peer, r session.Request, _, _ int) ([]byte, bool) {
		d, err := time.ParseDuration(r.Ops)
		if err != nil {
			return []byte("0"), true
		}
		select {
		case <-time.After(d):
			return []byte("1"), true
		case <-ctx.Done():
			return nil, false
		}
	}}
}

func TestShutdown(t *testing.T) {
	t.Run("OKIdle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{})
			p := connect(t, s)
			start := time.Now()
			require.NoError(t, s.Shutdown(context.Background()))
			p.closed()
			require.Zero(t, time.Since(start))
			require.NoError(t, s.Shutdown(context.Background())) // again
			near, far := net.Pipe()
			defer near.Close()
			require.ErrorIs(t, s.ServeConn(context.Background(), far, session.Pipe, alice), session.ErrShutdown)
			require.ErrorIs(t, s.Serve(context.Background()), session.ErrShutdown)
		})
	})
	t.Run("OKDrained", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{Handler: working(), Events: newStore("t")})
			p, other := connect(t, s), connect(t, s)
			p.send(`{"kind":"request","id":"a","ops":"5s"}`)
			synctest.Wait()
			start, done := time.Now(), make(chan error)
			go func() { done <- s.Shutdown(context.Background()) }()
			synctest.Wait()
			for _, q := range []*peer{p, other} { // what is new is refused, on every connection
				q.send(`{"kind":"request","id":"b","ops":""}`)
				q.getsError("b", wire.ShuttingDown, "the server is shutting down")
				q.send(`{"kind":"subscribe","id":"c","topic":"t"}`)
				q.getsError("c", wire.ShuttingDown, "")
			}
			p.gets(`{"kind":"response","id":"a","result":1}`)
			p.closed()
			other.closed()
			require.NoError(t, <-done)
			require.Equal(t, 5*time.Second, time.Since(start))
		})
	})
	t.Run("ErrTooSlow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{Handler: working()})
			p := connect(t, s)
			p.send(`{"kind":"request","id":"a","ops":"1h"}`)
			synctest.Wait()
			start, done := time.Now(), make(chan error)
			go func() { done <- s.Shutdown(context.Background()) }()
			p.getsError("a", wire.Cancelled, "the server is shutting down")
			p.closed()
			require.NoError(t, <-done)
			require.Equal(t, 10*time.Second, time.Since(start))
		})
	})
	t.Run("ErrSecondSignal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{Handler: working()})
			p := connect(t, s)
			p.send(`{"kind":"request","id":"a","ops":"1h"}`)
			synctest.Wait()
			ctx, cancel := context.WithCancel(context.Background())
			start, done := time.Now(), make(chan error)
			go func() { done <- s.Shutdown(ctx) }()
			time.Sleep(time.Second)
			cancel()
			<-done
			require.Equal(t, time.Second, time.Since(start))
			p.closed() // nothing was sent
		})
	})
	t.Run("ErrDeafHandler", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{Handler: &handler{request: func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
				time.Sleep(time.Hour)
				return nil, false
			}}})
			p := connect(t, s)
			p.send(`{"kind":"request","id":"a","ops":""}`)
			synctest.Wait()
			done := make(chan error)
			go func() { done <- s.Shutdown(context.Background()) }()
			p.getsError("a", wire.Cancelled, "")
			p.closed()
			require.ErrorContains(t, <-done, "not all handlers on them had returned")
			require.Zero(t, s.Stats().Open-1) // until it returns
		})
	})
	t.Run("ErrPeerThatDoesNotRead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, session.Config{})
			p := connect(t, s)
			p.send(`{"kind":"request","id":"a","ops":""}`)
			synctest.Wait() // the answer is being written
			start := time.Now()
			require.NoError(t, s.Shutdown(context.Background()))
			require.Equal(t, 2*time.Second, time.Since(start))
			p.closed()
		})
	})
}

func TestConnectionLimit(t *testing.T) {
	noLeak(t)
	s := newServer(t, session.Config{Limits: session.Limits{Connections: 2}})
	path := onUnix(t, s)
	a, b := dialed(t, path), dialed(t, path)
	for range 3 {
		(&peer{tb: t, conn: dialRaw(t, path)}).closed()
	}
	require.Eventually(t, func() bool { return s.Stats().Refused == 3 }, time.Minute, time.Millisecond)
	require.Equal(t, session.Stats{Open: 2, Accepted: 2, Refused: 3}, s.Stats())
	a.lives("1")
	require.NoError(t, b.conn.Close())
	require.Eventually(t, func() bool { return s.Stats().Open == 1 }, time.Minute, time.Millisecond)
	dialed(t, path).lives("1")
}
