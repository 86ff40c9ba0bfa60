package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// asking is a running verbgate request --server.
func (s *served) asking(ops string) (wait func() (code int, stdout, stderr string), interrupt func()) {
	s.t.Helper()
	cmd := verbgateCommand(s.t, "request", "--server", s.url, ops)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(s.t, cmd.Start())
	return func() (int, string, string) {
		_ = cmd.Wait() // the exit code says it
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}, func() { require.NoError(s.t, cmd.Process.Signal(syscall.SIGINT)) }
}

// A client that is interrupted takes its request with it.
func TestFrameRequestInterrupted(t *testing.T) {
	dir := t.TempDir()
	s := startSocket(t, dir, socketPath(t))
	wait, interrupt := s.asking(`probe.sleep(ms=60000, mark="m")`)
	awaitFile(t, filepath.Join(dir, "m.started"))
	interrupt()
	code, out, errs := wait()
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, errs, "cancelled: ")
	awaitFile(t, filepath.Join(dir, "m.ended"))
	ended, err := os.ReadFile(filepath.Join(dir, "m.ended"))
	require.NoError(t, err)
	require.Equal(t, "cancelled", string(ended))
	s.stop()
}

// Nobody knows what became of a request when its server has died, and so it is said.
func TestFrameRequestLost(t *testing.T) {
	dir := t.TempDir()
	s := startSocket(t, dir, socketPath(t))
	wait, _ := s.asking(`probe.sleep(ms=60000, mark="m")`)
	awaitFile(t, filepath.Join(dir, "m.started"))
	require.NoError(t, s.cmd.Process.Kill())
	code, out, errs := wait()
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, errs, "the connection was lost, and what was asked may have been done")
}

// canned answers every request the same.
type canned string

func (c canned) Request(context.Context, session.Peer, session.Request, int, int) ([]byte, bool) {
	return []byte(c), c != ""
}
func (canned) ValidContext(string, []string) error { return nil }
func (canned) Subscribe(context.Context, session.Peer, string, *uint64) ([]string, error) {
	return nil, errors.New("no")
}

// Servers of other versions, and programs that are something else.
func TestFrameRequestOtherServer(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer canned
		code   int
		want   string
	}{
		{"ErrNewerParser", `{"error":{"code":"invalid_params","reason":"parse-error","kind":"Novel","message":"this is no longer a request","pos":1}}`,
			exitBad, "refused the request: this is no longer a request"},
		{"ErrNoEnvelope", `{"hello":"world"}`, exitStart, "the server's answer is not an envelope"},
		{"ErrNull", `null`, exitStart, "the server's answer is not an envelope"},
		{"ErrInternal", ``, exitFailed, "internal: the request could not be answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, err := session.New(session.Config{Handler: c.answer, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			path := socketPath(t)
			l, err := session.ListenUnix(path, session.NewUnixIdentifier())
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- server.Serve(context.Background(), l) }() // ends with Shutdown
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"--data-dir", t.TempDir(), "request", "--server", schemeUnix + path, "stats()"}, strings.NewReader(""), &out, &errs)
			require.Equal(t, c.code, code, errs.String())
			require.Empty(t, out.String())
			require.Contains(t, errs.String(), c.want)
			require.NoError(t, server.Shutdown(context.Background()))
			require.NoError(t, <-done)
		})
	}
	t.Run("ErrNotThisProtocol", func(t *testing.T) {
		path := filepath.Join(filepath.Dir(filepath.Dir(socketPath(t))), "other.sock")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer l.Close()
		go func() { // ends with the listener
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) // the client may not wait for it
				_ = conn.Close()
			}
		}()
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"--data-dir", t.TempDir(), "request", "--server", schemeUnix + path, "stats()"}, strings.NewReader(""), &out, &errs)
		require.Equal(t, exitStart, code)
		require.Contains(t, errs.String(), "no connection: ")
	})
}

func TestFramedError(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"ErrNoConnection", &session.ConnectionError{Err: errors.New("refused")}, exitStart},
		{"ErrRejected", &session.ConnectionError{Err: &session.RemoteError{Code: wire.IdentityRejected}}, exitStart},
		{"ErrLost", &session.ConnectionError{Sent: true, Err: errors.New("EOF")}, exitFailed},
		{"ErrShuttingDown", &session.RemoteError{Code: wire.ShuttingDown}, exitStart},
		{"ErrBusy", &session.RemoteError{Code: wire.InFlightLimitExceeded}, exitStart},
		{"ErrDeadline", &session.RemoteError{Code: wire.DeadlineExceeded}, exitFailed},
		{"ErrInternal", &session.RemoteError{Code: wire.Internal}, exitFailed},
		{"ErrCancelled", context.Canceled, exitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := framedError("unix:///a", c.err)
			require.Equal(t, c.want, exitCode(err))
			require.ErrorIs(t, err, c.err)
		})
	}
}
