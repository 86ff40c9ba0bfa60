package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
)

// A SIGHUP that comes before anything is open is no reason to end, and is not forgotten.
func TestServeEarlyHangup(t *testing.T) {
	dir := t.TempDir()
	slow := filepath.Join(dir, "slow.yaml")
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	s := launch(t, dir, "--config", slow, "serve", "--http", "127.0.0.1:0")
	// This opens when the program does, and then the program waits for us.
	w, err := os.OpenFile(slow, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	_, err = w.WriteString("namespace: local\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	s.awaitAll("serving MCP", "the policy was reloaded")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitOK, s.end())
}

// Whoever starts a server for the first time is told where its token is, whatever the level of the
// log; afterwards there is nothing to tell.
func TestServeTellsToken(t *testing.T) {
	dir := t.TempDir()
	s := launch(t, dir, "--log-level", "error", "serve", "--http", "127.0.0.1:0")
	line := s.await("made the bearer token that HTTP callers present")
	path := filepath.Join(dir, tokenFile)
	require.Equal(t, path, line["token_file"])
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitOK, s.end())
	token, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, s.log.String(), strings.TrimSpace(string(token)))
	require.Equal(t, 1, strings.Count(s.log.String(), "\n"))

	// It says nothing any more, not even where it listens: over a port that somebody else has, it says that
	// instead, after the token has been read.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	again := launch(t, dir, "--log-level", "error", "serve", "--http", ln.Addr().String())
	require.Equal(t, exitStart, again.end())
	require.Regexp(t, `^verbgate: http address .*: address already in use\n$`, again.log.String())
}

// The configured time limit is the one that holds over MCP, be it shorter or longer than the default.
func TestServeRequestTimeout(t *testing.T) {
	s := startServer(t, t.TempDir(), "--set", "limits.request_timeout=50ms")
	code, out, errs := s.ask(`probe.sleep(ms=20000)`)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, out, `"code":"deadline_exceeded"`)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitOK, s.end())
	records := auditRecords(t, s.dir, audit.Filter{Verb: "probe.sleep"})
	require.Len(t, records, 1)
	require.Equal(t, "deadline_exceeded", records[0].ErrorCode)
}

// A text that is too large is refused as such before it is sent.
func TestRequestRemoteTooLarge(t *testing.T) {
	s := startServer(t, t.TempDir())
	ask := func(ops string) (int, string, string) {
		cmd := verbgateCommand(t, "--data-dir", s.dir, "request", "--server", s.url, "-")
		cmd.Stdin = strings.NewReader(ops)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	code, out, errs := ask(strings.Repeat("x", 8<<20))
	require.Equal(t, exitBad, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "may have at most 1048576; split it")

	// White space around a text needs no room on the way.
	space := strings.Repeat("\n", 3<<20)
	code, out, errs = ask(space + "stats()" + space)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, `"tool":"stats"`)
}

// What does not parse is found here, byte by byte as it was typed, and not sent: JSON would carry a byte
// that is not UTF-8 as another text, which might run.
func TestRequestRemoteParsesFirst(t *testing.T) {
	s := startServer(t, t.TempDir())
	for name, ops := range map[string]string{
		"ErrByte":        "probe.echo(text=\"a\xffb\")",
		"ErrSurrogate":   "probe.echo(text=\"\xed\xa0\x80\")",
		"ErrBareword":    "probe.echo(text=abc)",
		"ErrUnfinished":  "probe.echo(",
		"ErrTooManyByOp": strings.Repeat("stats()|", 100) + "stats()",
	} {
		code, out, errs := s.ask(ops)
		require.Equal(t, exitBad, code, name)
		require.Empty(t, out, name)
		require.Contains(t, errs, "^", name)
	}
	code, _, errs := s.ask("probe.echo(text=\"a\ufffdb\")")
	require.Equal(t, exitOK, code, errs)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitOK, s.end())
	records := auditRecords(t, s.dir, audit.Filter{})
	require.Len(t, records, 2, "the activation and the one call that was sent")
	require.Empty(t, records[1].SessionID, "over HTTP nothing ties calls together")
}
