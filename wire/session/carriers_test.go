package session_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// dialRaw is a connection to a Unix socket, closed at the end of the test.
func dialRaw(tb testing.TB, path string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// identities is a handler that says who asked.
func identities() *handler {
	return &handler{request: func(_ context.Context, p session.Peer, _ session.Request, _, _ int) ([]byte, bool) {
		return []byte(`"` + string(p.Carrier) + " " + p.Identity.Kind + ":" + p.Identity.ID + " " +
			p.Identity.Namespace + " " + strings.Join(p.Identity.Visible, ",") + `"`), true
	}}
}

func TestUnixIdentity(t *testing.T) {
	noLeak(t)
	me, err := user.Current()
	require.NoError(t, err)
	path := onUnix(t, newServer(t, session.Config{Handler: identities()}))
	p := dialed(t, path)
	p.send(`{"kind":"request","id":"1","ops":""}`)
	p.gets(`{"kind":"response","id":"1","result":"unix user:` + me.Username + `  "}`)
}

// Whoever is not the server's own user is told so in place of the ack.
func TestIdentityRejected(t *testing.T) {
	for name, c := range map[string]struct {
		identify func() (session.Identity, error)
		message  string
	}{
		"ErrRejected": {func() (session.Identity, error) {
			return session.Identity{}, &session.Rejection{Message: "uid 7 is not it"}
		}, "uid 7 is not it"},
		"ErrFails":  {func() (session.Identity, error) { return session.Identity{Kind: "user", ID: "a"}, errors.New("inside") }, "the server does not know who you are"},
		"ErrNobody": {func() (session.Identity, error) { return session.Identity{}, nil }, "the server does not know who you are"},
		"ErrNoID":   {func() (session.Identity, error) { return session.Identity{Kind: "user"}, nil }, "the server does not know who you are"},
		"ErrNone":   {nil, "the server does not know who you are"},
		"ErrPipe":   {func() (session.Identity, error) { return session.NewUnixIdentifier().Identify(nil) }, "the server does not know who you are"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := newServer(t, session.Config{})
			other := connect(t, s)
			var id session.Identifier
			if c.identify != nil {
				id = identifierFunc(c.identify)
			}
			p, stop := pipe(t, s, id)
			defer stop()
			p.send(`{"kind":"handshake","version":1}`)
			p.getsError("", wire.IdentityRejected, c.message)
			p.closed()
			other.lives("1")
		})
	}
}

// What panics while a connection is being read ends that connection.
func TestPanicInTheReader(t *testing.T) {
	noLeak(t)
	s := newServer(t, session.Config{Handler: &handler{context: func(string, []string) error { panic("secret") }}})
	other := connect(t, s)
	p, stop := pipe(t, s, identifierFunc(func() (session.Identity, error) { panic("secret") }))
	defer stop()
	p.send(`{"kind":"handshake","version":1}`)
	p.closed()
	p = connect(t, s)
	p.send(`{"kind":"request","id":"1","ops":"","namespace":"n"}`)
	p.closed()
	other.lives("1")
}

type identifierFunc func() (session.Identity, error)

func (f identifierFunc) Identify(io.ReadWriteCloser) (session.Identity, error) { return f() }

func TestListenUnix(t *testing.T) {
	id := session.NewUnixIdentifier()
	t.Run("OKModes", func(t *testing.T) {
		noLeak(t)
		path := filepath.Join(filepath.Dir(socketPath(t)), "made", "v.sock")
		l, err := session.ListenUnix(path, id)
		require.NoError(t, err)
		require.Equal(t, session.Unix, l.Carrier())
		socket, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, fs.ModeSocket|0o600, socket.Mode())
		folder, err := os.Stat(filepath.Dir(path))
		require.NoError(t, err)
		require.Equal(t, fs.ModeDir|0o700, folder.Mode())
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		require.NoFileExists(t, path)
	})
	t.Run("OKDeadSocket", func(t *testing.T) {
		noLeak(t)
		path := socketPath(t)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		require.NoError(t, err)
		dead.SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())
		s := newServer(t, session.Config{})
		other := connect(t, s) // the server is at work already, elsewhere
		other.lives("1")
		l, err := session.ListenUnix(path, id)
		require.NoError(t, err)
		serve(t, s, l)
		first, second := dialed(t, path), dialed(t, path)
		first.lives("1")
		second.lives("1")
		first.lives("2")
		other.lives("2")
	})
	t.Run("OKAgain", func(t *testing.T) {
		noLeak(t)
		path := socketPath(t)
		for range 3 {
			l, err := session.ListenUnix(path, id)
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
	})
	t.Run("OKNotOurs", func(t *testing.T) {
		noLeak(t)
		path := socketPath(t)
		l, err := session.ListenUnix(path, id)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, nil, 0o600)) // somebody else's by now
		require.NoError(t, l.Close())
		require.FileExists(t, path)
	})
	t.Run("ErrLiveDaemon", func(t *testing.T) {
		noLeak(t)
		path := onUnix(t, newServer(t, session.Config{}))
		other := dialed(t, path)
		_, err := session.ListenUnix(path, id)
		var used *session.SocketInUseError
		require.ErrorAs(t, err, &used)
		require.ErrorContains(t, err, "a daemon is already listening on "+path)
		other.lives("1")
		dialed(t, path).lives("1")
	})
	t.Run("ErrLiveStranger", func(t *testing.T) { // without our lock
		noLeak(t)
		path := socketPath(t)
		stranger, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer stranger.Close()
		_, err = session.ListenUnix(path, id)
		var used *session.SocketInUseError
		require.ErrorAs(t, err, &used)
		require.NoError(t, stranger.Close())
	})
	t.Run("ErrFile", func(t *testing.T) {
		path := socketPath(t)
		require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
		_, err := session.ListenUnix(path, id)
		require.ErrorContains(t, err, "is there and is no socket")
		require.FileExists(t, path)
	})
	t.Run("ErrPathLength", func(t *testing.T) {
		path := "/tmp/" + strings.Repeat("x", 103)
		_, err := session.ListenUnix(path, id)
		var long *session.SocketPathError
		require.ErrorAs(t, err, &long)
		require.ErrorContains(t, err, "is 108 bytes long, where at most 107 are possible")
	})
	t.Run("OKPathLength", func(t *testing.T) {
		dir := filepath.Dir(socketPath(t))
		path := filepath.Join(dir, strings.Repeat("x", 107-len(dir)-1))
		require.Len(t, path, 107)
		l, err := session.ListenUnix(path, id)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
	t.Run("ErrFolderOfOthers", func(t *testing.T) {
		path := socketPath(t)
		require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
		_, err := session.ListenUnix(path, id)
		require.ErrorContains(t, err, "others can write to the socket's folder")
	})
	t.Run("ErrFolder", func(t *testing.T) {
		path := socketPath(t)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		_, err := session.ListenUnix(filepath.Join(path, "v.sock"), id)
		require.ErrorContains(t, err, "make the socket's folder")
	})
}

func TestListenTCP(t *testing.T) {
	noLeak(t)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "localhost:0", "192.0.2.1:0"} {
		_, err := session.ListenTCP(address, alice)
		require.ErrorIs(t, err, session.ErrNotLoopback, address)
	}
	_, err := session.ListenTCP("127.0.0.1", alice)
	require.ErrorContains(t, err, "missing port")
	l, err := session.ListenTCP("127.0.0.1:0", alice)
	require.NoError(t, err)
	serve(t, newServer(t, session.Config{Handler: identities()}), l)
	c := newClient(t, session.ClientConfig{Dial: session.DialTCP(l.Addr().String())})
	text, err := c.Request(context.Background(), session.ClientRequest{})
	require.NoError(t, err)
	require.Equal(t, `"tcp user:alice  "`, string(text))
}

// Shutdown over real sockets, with the file of the socket gone and a new daemon possible at once.
func TestServeShutdown(t *testing.T) {
	noLeak(t)
	path := socketPath(t)
	for range 2 {
		l, err := session.ListenUnix(path, session.NewUnixIdentifier())
		require.NoError(t, err)
		s := newServer(t, session.Config{})
		served := make(chan error)
		var all sync.WaitGroup
		all.Go(func() { served <- s.Serve(context.Background(), l) })
		p := dialed(t, path)
		p.lives("1")
		closed := make(chan error)
		all.Go(func() { closed <- s.Shutdown(context.Background()) })
		p.closed()
		require.NoError(t, p.conn.Close())
		require.NoError(t, <-closed)
		require.NoError(t, <-served)
		all.Wait()
		require.NoFileExists(t, path)
	}
}

// A listener that breaks ends Serve with its error, and the connections with it.
func TestServeBrokenListener(t *testing.T) {
	noLeak(t)
	near, far := net.Pipe()
	s := newServer(t, session.Config{})
	broken := session.NewListener(&onceListener{conn: far, err: errors.New("torn out")}, session.Pipe, alice)
	served := make(chan error)
	go func() { served <- s.Serve(context.Background(), broken) }()
	require.ErrorContains(t, <-served, "torn out")
	(&peer{tb: t, conn: near}).closed()
}

// onceListener accepts one connection and then fails.
type onceListener struct {
	conn net.Conn
	err  error
}

func (l *onceListener) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	return nil, l.err
}

func (l *onceListener) Close() error   { return nil }
func (l *onceListener) Addr() net.Addr { return &net.UnixAddr{Name: "once", Net: "unix"} }
