package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// scripted is a dialer of a server that does the handshake, reads one more frame, says what it is told
// to, and then only reads. wait returns when it has ended.
func scripted(payloads ...string) (dial session.Dialer, wait func()) {
	var all sync.WaitGroup
	return func(context.Context) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		all.Go(func() {
			defer far.Close()
			p := &peer{tb: nopTB{}, conn: far}
			if _, err := readPayload(far); err != nil {
				return
			}
			p.send(`{"kind":"handshake_ack","version":1}`)
			if _, err := readPayload(far); err != nil {
				return
			}
			p.send(payloads...)
			_, _ = io.Copy(io.Discard, far)
		})
		return near, nil
	}, all.Wait
}

// nopTB is for peers whose other end may hang up in the middle.
type nopTB struct{ testing.TB }

func (nopTB) Helper()               {}
func (nopTB) Errorf(string, ...any) {}
func (nopTB) FailNow()              {}

// What a server must not send ends the connection, with an error that says what it was.
func TestClientBadServer(t *testing.T) {
	deep := func(n int) string {
		return `{"kind":"response","id":"1","result":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for name, c := range map[string]struct {
		payload string
		want    string
		remote  wire.ErrorCode
		raw     string
		lost    bool
	}{
		"OKDeepest":         {payload: deep(126)},
		"ErrTooDeep":        {payload: deep(127), want: "invalid_json", lost: true},
		"ErrNoFrame":        {payload: `{`, want: "the server sent what is no frame: invalid_json", lost: true},
		"ErrSecondAck":      {payload: `{"kind":"handshake_ack","version":1}`, want: "the server broke the protocol", lost: true},
		"ErrClientKind":     {payload: `{"kind":"cancel","id":"1"}`, want: "the server must not send cancel here", lost: true},
		"ErrOtherAnswer":    {payload: `{"kind":"unsubscribe_ack","id":"1","topic":"t"}`, want: "the server answered request with unsubscribe_ack", lost: true},
		"ErrTerminal":       {payload: `{"kind":"error","code":"frame_too_large","message":"m"}`, want: "frame_too_large: m", remote: wire.FrameTooLarge, lost: true},
		"ErrUnknownCode":    {payload: `{"kind":"error","id":"1","code":"novelty","message":"m"}`, want: "novelty: m", remote: wire.Internal, raw: "novelty"},
		"ErrUnknownWithout": {payload: `{"kind":"error","code":"novelty","message":"m"}`, want: "novelty: m", remote: wire.Internal, raw: "novelty", lost: true},
		"ErrDeadline":       {payload: `{"kind":"error","id":"1","code":"deadline_exceeded","message":"m"}`, want: "deadline_exceeded: m", remote: wire.DeadlineExceeded},
		"ErrCancelled":      {payload: `{"kind":"error","id":"1","code":"cancelled","message":"m"}`, want: "cancelled: m", remote: wire.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			dial, wait := scripted(
				`{"kind":"event","topic":"t","cursor":1,"occurred_at":"","payload":{}}`, // for nobody: let go
				`{"kind":"response","id":"99","result":1}`, c.payload)
			defer wait()
			client, err := session.Dial(context.Background(), session.ClientConfig{Dial: dial})
			require.NoError(t, err)
			defer client.Close()
			_, err = client.Request(context.Background(), session.ClientRequest{Ops: "x"})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			var remote *session.RemoteError
			require.Equal(t, c.remote != 0, errors.As(err, &remote))
			if remote != nil {
				require.Equal(t, [2]string{c.remote.String(), c.raw}, [2]string{remote.Code.String(), remote.RawCode})
			}
			require.Equal(t, c.remote == wire.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded))
			require.Equal(t, c.remote == wire.Cancelled, errors.Is(err, context.Canceled))
			var gone *session.ConnectionError
			require.Equal(t, c.lost, errors.As(err, &gone))
			if c.lost {
				require.True(t, gone.Sent)
				require.ErrorContains(t, err, "what was asked may have been done")
			}
		})
	}
}

// A server that repeats itself is not believed.
func TestClientRepeatedEvents(t *testing.T) {
	noLeak(t)
	dial, wait := scripted(`{"kind":"subscribe_ack","id":"1","topic":"t","start_cursor":4}`,
		event("t", 3), event("t", 4), event("t", 5), event("t", 5), event("u", 9), event("t", 7), event("t", 6), event("t", 8))
	defer wait()
	client, err := session.Dial(context.Background(), session.ClientConfig{Dial: dial})
	require.NoError(t, err)
	defer client.Close()
	sub, err := client.Subscribe(context.Background(), "t", wire.Some(wire.Cursor(4)))
	require.NoError(t, err)
	require.Equal(t, []uint64{5, 7, 8}, events(t, sub, 3))
	go func() { _ = client.Close() }() // without an answer to the unsubscribe
	require.NoError(t, sub.Close())
}

func TestClientTimeouts(t *testing.T) {
	t.Run("ErrHandshake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			go func() { _, _ = readPayload(far) }()
			start := time.Now()
			_, err := session.Dial(context.Background(), session.ClientConfig{Dial: func(context.Context) (io.ReadWriteCloser, error) { return near, nil }})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 10*time.Second, time.Since(start))
		})
	})
	for name, c := range map[string]struct {
		sends string
		want  string
	}{
		"ErrFrame": {"\x00\x00\x00\x09{", "a frame of the server was not whole within 30s"},
		"ErrWrite": {"", "the server read nothing for 30s"}, // the server stops reading
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				p := &peer{tb: t, conn: far}
				go func() {
					p.next()
					p.send(`{"kind":"handshake_ack","version":1}`)
					if c.sends != "" {
						p.next()
						p.raw(c.sends)
					}
				}()
				client, err := session.Dial(context.Background(), session.ClientConfig{Dial: func(context.Context) (io.ReadWriteCloser, error) { return near, nil }})
				require.NoError(t, err)
				defer client.Close()
				start := time.Now()
				_, err = client.Request(context.Background(), session.ClientRequest{Ops: "x"})
				require.ErrorContains(t, err, c.want)
				require.Equal(t, 30*time.Second, time.Since(start))
			})
		})
	}
	// A context that ends sends a cancel, and the place is free when the server has answered it.
	t.Run("ErrCancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			defer all.Wait()
			near, far := net.Pipe()
			defer far.Close()
			p := &peer{tb: t, conn: far}
			all.Go(func() {
				p.next()
				p.send(`{"kind":"handshake_ack","version":1}`)
				p.gets(`{"kind":"request","id":"1","ops":"a","deadline_ms":1001}`, `{"kind":"cancel","id":"1"}`)
				time.Sleep(time.Second)
				p.send(`{"kind":"error","id":"1","code":"cancelled","message":""}`)
				p.gets(`{"kind":"request","id":"2","ops":"b"}`)
				p.send(`{"kind":"response","id":"2","result":2}`)
			})
			client, err := session.Dial(context.Background(), session.ClientConfig{
				Dial: func(context.Context) (io.ReadWriteCloser, error) { return near, nil }, InFlight: 1,
			})
			require.NoError(t, err)
			defer client.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err = client.Request(ctx, session.ClientRequest{Ops: "a"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = client.Request(ctx, session.ClientRequest{Ops: "never sent"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			text, err := client.Request(context.Background(), session.ClientRequest{Ops: "b"})
			require.NoError(t, err)
			require.Equal(t, "2", string(text))
		})
	})
	// So does the context of a Subscribe, and the topic can be asked for again.
	t.Run("ErrSubscribeCancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := true
			d := newPiped(t, newServer(t, session.Config{Events: newStore("t"), Handler: &handler{
				subscribe: func(ctx context.Context, _ session.Peer, _ string, _ *uint64) ([]string, error) {
					if slow {
						<-ctx.Done()
					}
					return []string{"local"}, ctx.Err()
				},
			}}))
			c := newClient(t, session.ClientConfig{Dial: d.dial})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			synctest.Wait()
			slow = false
			sub, err := c.Subscribe(context.Background(), "t", wire.Optional[wire.Cursor]{})
			require.NoError(t, err)
			require.NoError(t, sub.Close())
		})
	})
}

// A subscriber lives through restarts of the daemon, with neither gap nor repeat.
func TestClientDaemonRestarts(t *testing.T) {
	noLeak(t)
	st, path := newStore("t"), socketPath(t)
	st.add("t", "local", 10)
	start := func() (stop func()) {
		l, err := session.ListenUnix(path, session.NewUnixIdentifier())
		require.NoError(t, err)
		s := newServer(t, session.Config{Events: st, Limits: session.Limits{Linger: 50 * time.Millisecond}})
		served := make(chan error)
		go func() { served <- s.Serve(context.Background(), l) }()
		return func() {
			require.NoError(t, s.Shutdown(context.Background()))
			require.NoError(t, <-served)
		}
	}
	stop := start()
	c := newClient(t, session.ClientConfig{Dial: session.DialUnix(path)})
	sub, err := c.Subscribe(context.Background(), "t", wire.Some(wire.Cursor(0)))
	require.NoError(t, err)
	seen := events(t, sub, 5)
	for range 3 {
		stop()
		st.add("t", "local", 7) // while nobody is there
		stop = start()
		st.add("t", "local", 3)
		seen = append(seen, events(t, sub, 10)...)
	}
	seen = append(seen, events(t, sub, 5)...)
	require.Equal(t, steps(1, 40), seen)
	require.NoError(t, c.Close())
	stop()
}

// Being out of files for a while does not end a server.
func TestServeOutOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		l := &moodyListener{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}, conn: far, closed: make(chan struct{})}
		s := newServer(t, session.Config{})
		served := make(chan error)
		go func() { served <- s.Serve(context.Background(), session.NewListener(l, session.Pipe, alice)) }()
		p := &peer{tb: t, conn: near}
		p.shake()
		p.lives("1")
		require.NoError(t, s.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
}

// moodyListener fails a few times, accepts one connection, and waits to be closed.
type moodyListener struct {
	errs   []error
	conn   net.Conn
	closed chan struct{}
}

func (l *moodyListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *moodyListener) Close() error   { close(l.closed); return nil }
func (l *moodyListener) Addr() net.Addr { return &net.UnixAddr{Name: "moody", Net: "unix"} }
