package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the configuration says of the dispatcher reaches it.
func TestDispatcherConfig(t *testing.T) {
	configured := func(flags ...string) *config {
		cfg, err := cliWith(nil, append(flags, "--data-dir", t.TempDir())...).configuration()
		require.NoError(t, err)
		return cfg
	}
	t.Run("OKDefault", func(t *testing.T) {
		d := dispatcherConfig(configured())
		require.True(t, d.FailOpen, "gate.on_error is open unless configured")
		require.True(t, d.RecordParams)
		require.Equal(t, time.Minute, d.Limits.RequestTimeout)
		require.NotNil(t, d.Checks)
		require.NotEmpty(t, d.Packs)
		require.Empty(t, d.BackendOf)
	})
	t.Run("OKOpen", func(t *testing.T) {
		require.True(t, dispatcherConfig(configured("--set", "gate.on_error=open")).FailOpen)
	})
	t.Run("OKClosed", func(t *testing.T) {
		require.False(t, dispatcherConfig(configured("--set", "gate.on_error=closed")).FailOpen)
	})
	t.Run("OKZeroIsClosed", func(t *testing.T) {
		require.False(t, dispatcherConfig(&config{}).FailOpen)
	})
	t.Run("OKOthers", func(t *testing.T) {
		d := dispatcherConfig(configured("--set", "audit.params=none", "--set", "limits.request_timeout=5s", "--set", "backends=kg=notes", "--set", "packs=kg"))
		require.False(t, d.RecordParams)
		require.Equal(t, 5*time.Second, d.Limits.RequestTimeout)
		require.Equal(t, map[string]string{"kg": "notes"}, d.BackendOf)
		require.Len(t, d.Packs, 1)
	})
}

// A folder that changes is read again without anybody asking for it.
func TestServeReloadsByItself(t *testing.T) {
	gate := t.TempDir()
	writePolicy(t, gate, "false")
	s := startServer(t, t.TempDir(), "--policy", gate)
	code, _, _ := s.ask("stats()")
	require.Equal(t, exitFailed, code)
	writePolicy(t, gate, "true")
	require.Eventually(t, func() bool {
		code, _, _ := s.ask("stats()")
		return code == exitOK
	}, patience, 50*time.Millisecond)
	writePolicy(t, gate, "nowhere")
	s.await("policy not activated; the one in use stays")
	code, out, _ := s.ask("stats()")
	require.Equal(t, exitOK, code, out)
}

// A policy reaches the hosts that the operator named, and no others.
func TestAllowHosts(t *testing.T) {
	var asked atomic.Int64
	oracle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	defer oracle.Close()
	gate := t.TempDir()
	writePolicy(t, gate, `http.send({"method": "get", "url": "`+oracle.URL+`"}).status_code == 200`)
	flags := []string{"--policy", gate, "--set", "gate.allow_builtins=http.send"}
	for _, hosts := range [][]string{nil, {"--set", "gate.allow_hosts=bundles.example.com"}} {
		out, err := verbgateCommand(t, append(append(flags, hosts...), "request", "stats()")...).Output()
		require.Error(t, err)
		require.Contains(t, string(out), `"code":"policy_error"`)
		require.Zero(t, asked.Load())
	}
	out, err := verbgateCommand(t, append(flags, "--set", "gate.allow_hosts=127.0.0.1", "request", "stats()")...).Output()
	require.NoError(t, err, string(out))
	require.Positive(t, asked.Load())
}

// Whoever drives parse --jsonl through a pipe has each answer before writing the next line.
func TestParseLineByLine(t *testing.T) {
	cmd := verbgateCommand(t, "parse", "--jsonl")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	tired := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // one that says nothing ends the test
	defer tired.Stop()
	answers := bufio.NewReader(out)
	for _, c := range [][2]string{{`"a()"`, `"tool":"a"`}, {`"x(y=z)"`, `"kind":"InvalidValue"`}, {`"b()"`, `"tool":"b"`}} {
		_, err := io.WriteString(in, c[0]+"\n")
		require.NoError(t, err)
		answer, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, answer, c[1])
	}
	require.NoError(t, in.Close())
	rest, err := io.ReadAll(answers)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, cmd.Wait())
}
