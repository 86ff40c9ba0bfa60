package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// piped is a dialer of connections to a server within the process. Its cut ends the last of them.
type piped struct {
	server func() *session.Server
	id     session.Identifier
	mu     sync.Mutex
	last   net.Conn
	dials  int
	errs   []error // what the next dials fail with
	all    sync.WaitGroup
}

func (d *piped) dial(context.Context) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials++
	if len(d.errs) > 0 {
		err := d.errs[0]
		d.errs = d.errs[1:]
		return nil, err
	}
	d.last = near
	d.all.Go(func() { _ = d.server().ServeConn(context.Background(), far, session.Pipe, d.id) })
	return near, nil
}

func (d *piped) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.last.Close()
}

func (d *piped) dialled() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dials
}

func newPiped(tb testing.TB, s *session.Server) *piped {
	d := &piped{server: func() *session.Server { return s }, id: alice}
	tb.Cleanup(d.all.Wait)
	return d
}

func newClient(tb testing.TB, cfg session.ClientConfig) *session.Client {
	tb.Helper()
	if cfg.RetryMin == 0 {
		cfg.RetryMin, cfg.RetryMax = time.Millisecond, 10*time.Millisecond
	}
	c, err := session.Dial(context.Background(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

func TestClientRequest(t *testing.T) {
	noLeak(t)
	h := &handler{request: func(ctx context.Context, p session.Peer, req session.Request, _, _ int) ([]byte, bool) {
		switch {
		case req.Ops == "fail":
			return nil, false
		case req.Ops == "wait":
			return waits(ctx, p, req, 0, 0)
		}
		_, has := ctx.Deadline()
		return fmt.Appendf(nil, `"%s %s %q %s %v"`, req.Ops, req.Namespace, req.Visible, req.ActorID, has), true
	}}
	h.request = escaped(h.request)
	path := onUnix(t, newServer(t, session.Config{Handler: h}))
	c := newClient(t, session.ClientConfig{Dial: session.DialUnix(path)})
	ctx := context.Background()

	t.Run("OK", func(t *testing.T) {
		text, err := c.Request(ctx, session.ClientRequest{Ops: "a"})
		require.NoError(t, err)
		require.Equal(t, `"a  []  false"`, string(text))
	})
	t.Run("OKContext", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		text, err := c.Request(ctx, session.ClientRequest{
			Ops: "a", Namespace: wire.Some("n"), ActorID: wire.Some("x"), VisibleNamespaces: wire.Some([]string{"v"}),
		})
		require.NoError(t, err)
		require.Equal(t, `"a n ['v'] x true"`, string(text))
	})
	t.Run("OKMany", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 300 { // more than may be in flight: they take turns
			all.Go(func() {
				text, err := c.Request(ctx, session.ClientRequest{Ops: fmt.Sprint(i)})
				if err != nil || !strings.HasPrefix(string(text), fmt.Sprintf(`"%d `, i)) {
					t.Errorf("request %d: %s, %v", i, text, err)
				}
			})
		}
		all.Wait()
	})
	t.Run("ErrRefused", func(t *testing.T) {
		_, err := c.Request(ctx, session.ClientRequest{Ops: "a", Namespace: wire.Some("")})
		var remote *session.RemoteError
		require.ErrorAs(t, err, &remote)
		require.Equal(t, wire.ContextRejected, remote.Code)
		require.EqualError(t, err, "context_rejected: namespace must not be empty; leave it out for the default")
	})
	t.Run("ErrInternal", func(t *testing.T) {
		_, err := c.Request(ctx, session.ClientRequest{Ops: "fail"})
		var remote *session.RemoteError
		require.ErrorAs(t, err, &remote)
		require.Equal(t, wire.Internal, remote.Code)
	})
	t.Run("ErrCancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err := c.Request(ctx, session.ClientRequest{Ops: "wait"})
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("ErrDeadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err := c.Request(ctx, session.ClientRequest{Ops: "wait"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("ErrNotUTF8", func(t *testing.T) {
		_, err := c.Request(ctx, session.ClientRequest{Ops: "\xff"})
		var bad *wire.CodecError
		require.ErrorAs(t, err, &bad)
	})
	t.Run("ErrTooLarge", func(t *testing.T) {
		_, err := c.Request(ctx, session.ClientRequest{Ops: strings.Repeat("x", wire.DefaultMaxPayload)})
		var bad *wire.CodecError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, wire.PayloadTooLarge, bad.Fault)
	})
	t.Run("OKAfterAll", func(t *testing.T) {
		_, err := c.Request(ctx, session.ClientRequest{Ops: "a"})
		require.NoError(t, err)
	})
}

type requestFunc = func(context.Context, session.Peer, session.Request, int, int) ([]byte, bool)

// escaped makes what a function prints with %q inside a JSON string good JSON.
func escaped(f requestFunc) requestFunc {
	return func(ctx context.Context, p session.Peer, r session.Request, size, depth int) ([]byte, bool) {
		text, ok := f(ctx, p, r, size, depth)
		if len(text) < 2 {
			return text, ok
		}
		return []byte(`"` + strings.ReplaceAll(string(text[1:len(text)-1]), `"`, `'`) + `"`), ok
	}
}

// A request that was on its way when the connection was lost fails, and is not sent again; the next
// one gets a new connection.
func TestClientLostConnection(t *testing.T) {
	noLeak(t)
	var asked atomic.Int32
	started := make(chan struct{}, 1)
	s := newServer(t, session.Config{Handler: &handler{request: func(ctx context.Context, p session.Peer, r session.Request, _, _ int) ([]byte, bool) {
		if r.Ops == "wait" {
			asked.Add(1)
			started <- struct{}{}
			return waits(ctx, p, r, 0, 0)
		}
		return []byte("1"), true
	}}})
	d := newPiped(t, s)
	c := newClient(t, session.ClientConfig{Dial: d.dial})
	lost := make(chan error, 1)
	go func() {
		_, err := c.Request(context.Background(), session.ClientRequest{Ops: "wait"})
		lost <- err
	}()
	<-started
	d.cut()
	var gone *session.ConnectionError
	require.ErrorAs(t, <-lost, &gone)
	require.True(t, gone.Sent)
	_, err := c.Request(context.Background(), session.ClientRequest{Ops: "x"})
	require.NoError(t, err)
	require.Equal(t, int32(1), asked.Load())
	require.Equal(t, 2, d.dialled())

	require.NoError(t, c.Close())
	_, err = c.Request(context.Background(), session.ClientRequest{Ops: "x"})
	require.ErrorIs(t, err, session.ErrClosed)
	_, err = c.Subscribe(context.Background(), "t", wire.Optional[wire.Cursor]{})
	require.ErrorIs(t, err, session.ErrClosed)
}

func TestClientDial(t *testing.T) {
	noLeak(t)
	script := func(bytes string) session.Dialer {
		return func(context.Context) (io.ReadWriteCloser, error) {
			near, far := net.Pipe()
			go func() {
				_, _ = readPayload(far)
				_, _ = io.WriteString(far, bytes)
				_ = far.Close()
			}()
			return near, nil
		}
	}
	framed := func(f wire.Frame) string {
		codec, err := wire.NewCodec(wire.Config{})
		require.NoError(t, err)
		b, err := codec.Encode(f)
		require.NoError(t, err)
		return string(b)
	}
	for name, c := range map[string]struct {
		dial session.Dialer
		want string
	}{
		"ErrNobody":     {session.DialUnix("/nonexistent/v.sock"), "no such file"},
		"ErrPathLength": {session.DialUnix("/" + strings.Repeat("x", 107)), "is 108 bytes long, where at most 107"},
		"ErrRefused":    {script(framed(wire.ErrorFrame{Code: wire.IdentityRejected, Message: "who?"})), "identity_rejected: who?"},
		"ErrCloses":     {script(""), "the server closed the connection"},
		"ErrOtherAck":   {script(framed(wire.HandshakeAck{Version: 2})), "acknowledged version 2 where 1 was asked for"},
		"ErrNoFrame":    {script("HTTP/1.1 400 Bad Request\r\n\r\n"), "what is no frame"},
		"ErrEvent":      {script(framed(wire.Event{Topic: "t", Payload: []byte("{}")})), "answered the handshake with event"},
		"ErrNewCode":    {script("\x00\x00\x00\x2f" + `{"kind":"error","code":"novelty","message":"m"}`), "answered the handshake with error"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.Dial(context.Background(), session.ClientConfig{Dial: c.dial})
			require.ErrorContains(t, err, c.want)
			var gone *session.ConnectionError
			require.ErrorAs(t, err, &gone)
			require.False(t, gone.Sent)
		})
	}
	t.Run("ErrNoDialer", func(t *testing.T) {
		_, err := session.Dial(context.Background(), session.ClientConfig{})
		require.ErrorContains(t, err, "needs a Dialer")
	})
	t.Run("ErrContext", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		near, far := net.Pipe()
		defer far.Close()
		time.AfterFunc(5*time.Millisecond, cancel)
		_, err := session.Dial(ctx, session.ClientConfig{Dial: func(context.Context) (io.ReadWriteCloser, error) { return near, nil }})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func events(tb testing.TB, s *session.Subscription, n int) (cursors []uint64) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range n {
		e, err := s.Next(ctx)
		require.NoError(tb, err)
		cursors = append(cursors, uint64(e.Cursor))
	}
	return cursors
}

func steps(from, n int) (all []uint64) {
	for i := range n {
		all = append(all, uint64(3*(from+i)))
	}
	return all
}

func TestClientSubscribe(t *testing.T) {
	noLeak(t)
	st := newStore("t", "u")
	s := newServer(t, session.Config{Events: st})
	d := newPiped(t, s)
	c := newClient(t, session.ClientConfig{Dial: d.dial, EventQueue: 8})
	ctx := context.Background()
	st.add("t", "local", 10)

	sub, err := c.Subscribe(ctx, "t", wire.Some(wire.Cursor(6)))
	require.NoError(t, err)
	require.Equal(t, wire.Cursor(6), sub.Start())
	require.Equal(t, "t", sub.Topic())
	require.Equal(t, steps(3, 8), events(t, sub, 8))
	_, err = c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
	var remote *session.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, wire.AlreadySubscribed, remote.Code)

	// Far more than the queue holds, with nobody taking: nothing is lost, and requests go on.
	st.add("t", "local", 500)
	_, err = c.Request(ctx, session.ClientRequest{Ops: "x"})
	require.NoError(t, err)
	require.Equal(t, steps(11, 200), events(t, sub, 200))

	// Over lost connections too.
	for i := range 3 {
		d.cut()
		require.Equal(t, steps(211+i*100, 100), events(t, sub, 100))
	}
	require.Equal(t, wire.Cursor(6), sub.Start())
	require.NoError(t, sub.Close())
	for err = nil; err == nil; {
		_, err = sub.Next(ctx)
	}
	require.ErrorIs(t, err, session.ErrClosed)

	// A new one starts at the head.
	sub, err = c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
	require.NoError(t, err)
	require.Equal(t, wire.Cursor(3*510), sub.Start())
	st.add("t", "local", 2)
	var got []wire.Event
	for e, err := range sub.Events(ctx) {
		require.NoError(t, err)
		if got = append(got, e); len(got) == 2 {
			break
		}
	}
	require.Equal(t, wire.Event{Topic: "t", Cursor: 3 * 512, OccurredAt: "2026-01-02T03:04:05Z", Payload: []byte(`{"n":1}`)}, got[1])

	// What it may not read is skipped.
	last := st.add("t", "other", 5)
	st.add("t", "local", 1)
	require.Equal(t, []uint64{last + 3}, events(t, sub, 1))
	_, err = c.Subscribe(ctx, "nonsense", wire.Optional[wire.Cursor]{})
	require.ErrorAs(t, err, &remote)
	require.Equal(t, wire.SubscriptionDenied, remote.Code)
}

func TestClientSubscriptionEnds(t *testing.T) {
	noLeak(t)
	var refuse atomic.Bool
	st := newStore("t")
	s := newServer(t, session.Config{Events: st, Handler: &handler{
		subscribe: func(context.Context, session.Peer, string, *uint64) ([]string, error) {
			if refuse.Load() {
				return nil, &session.Rejection{Message: "not you"}
			}
			return []string{"local"}, nil
		},
	}})
	d := newPiped(t, s)
	c := newClient(t, session.ClientConfig{Dial: d.dial})
	ctx := context.Background()
	t.Run("ErrExpired", func(t *testing.T) {
		sub, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
		require.NoError(t, err)
		st.add("t", "local", 1)
		require.Len(t, events(t, sub, 1), 1)
		// While the connection is away, events come and are pruned.
		d.mu.Lock()
		_ = d.last.Close()
		st.prune("t", st.add("t", "local", 5))
		d.mu.Unlock()
		_, err = sub.Next(ctx)
		var remote *session.RemoteError
		require.ErrorAs(t, err, &remote)
		require.Equal(t, wire.CursorExpired, remote.Code)
	})
	t.Run("OKUnreachableForAWhile", func(t *testing.T) {
		sub, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
		require.NoError(t, err)
		dials := d.dialled()
		d.mu.Lock()
		d.errs = []error{errors.New("no route"), errors.New("no route"), &session.RemoteError{Code: wire.ShuttingDown}}
		_ = d.last.Close()
		d.mu.Unlock()
		last := st.add("t", "local", 1)
		require.Equal(t, []uint64{last}, events(t, sub, 1))
		require.Equal(t, dials+4, d.dialled())
		require.NoError(t, sub.Close())
	})
	t.Run("ErrRejected", func(t *testing.T) { // the next time would be no better
		sub, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
		require.NoError(t, err)
		d.mu.Lock()
		d.errs = []error{errors.New("no route"), &session.RemoteError{Code: wire.IdentityRejected, Message: "who?"}}
		_ = d.last.Close()
		d.mu.Unlock()
		_, err = sub.Next(ctx)
		require.EqualError(t, err, "no connection: identity_rejected: who?")
	})
	t.Run("ErrRevoked", func(t *testing.T) {
		sub, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
		require.NoError(t, err)
		refuse.Store(true)
		defer refuse.Store(false)
		s.Recheck() // revoked; the client asks again and is denied
		_, err = sub.Next(ctx)
		require.EqualError(t, err, "subscription_denied: not you")
	})
	t.Run("ErrClosed", func(t *testing.T) {
		sub, err := c.Subscribe(ctx, "t", wire.Optional[wire.Cursor]{})
		require.NoError(t, err)
		require.NoError(t, c.Close())
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, session.ErrClosed)
	})
	t.Run("ErrUnreachable", func(t *testing.T) {
		fail := errors.New("no route")
		_, err := session.Dial(ctx, session.ClientConfig{Dial: func(context.Context) (io.ReadWriteCloser, error) { return nil, fail }})
		require.ErrorIs(t, err, fail)
	})
}
