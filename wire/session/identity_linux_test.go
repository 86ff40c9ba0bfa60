package session_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// asNobody runs f on a thread of another user; the kernel looks at the thread that connects.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	const nobody = 65534
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody)
		if errno != 0 {
			failed <- errno
			return
		}
		f()
		failed <- nil
	}()
	require.NoError(t, <-failed)
}

func TestUnixStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	noLeak(t)
	path := onUnix(t, newServer(t, session.Config{}))
	other := dialed(t, path)
	// What normally keeps others out before they are asked who they are.
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	require.NoError(t, os.Chmod(path, 0o666))
	t.Run("ErrClient", func(t *testing.T) {
		var conn net.Conn
		var err error
		asNobody(t, func() { conn, err = net.Dial("unix", path) })
		require.NoError(t, err)
		defer conn.Close()
		p := &peer{tb: t, conn: conn}
		p.raw(hello)
		p.getsError("", wire.IdentityRejected, "uid 65534 is not the user this server runs as")
		p.closed()
		other.lives("1")
	})
	t.Run("ErrServer", func(t *testing.T) { // a socket somebody else put in the way
		var trap net.Listener
		var err error
		require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
		asNobody(t, func() { trap, err = net.Listen("unix", path+"2") })
		require.NoError(t, err)
		defer trap.Close()
		_, err = session.Dial(context.Background(), session.ClientConfig{Dial: session.DialUnix(path + "2")})
		require.ErrorContains(t, err, "runs as uid 65534, not as the user of this process")
	})
}
