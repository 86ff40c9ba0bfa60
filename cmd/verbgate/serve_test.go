package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

// patience is how long a test waits for something that must happen. Nothing is asserted about how
// soon it does.
const patience = 60 * time.Second

// served is a running verbgate serve --http.
type served struct {
	t         *testing.T
	cmd       *exec.Cmd
	lines     chan map[string]any // its log
	log       syncBuffer          // what was read of it so far
	done      chan error
	url       string
	tokenFile string
	dir       string // the data folder
}

// startServer runs verbgate serve --http on a free port and waits until it serves.
func startServer(t *testing.T, dir string, flags ...string) *served {
	t.Helper()
	s := launch(t, dir, append([]string{"serve", "--http", "127.0.0.1:0"}, flags...)...)
	line := s.await("serving MCP")
	s.url, _ = line["url"].(string)
	s.tokenFile, _ = line["token_file"].(string)
	return s
}

// launch runs verbgate with its log in JSON, and does not wait.
func launch(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	args = append([]string{"--data-dir", dir, "--log-format", "json"}, args...)
	s := &served{t: t, cmd: verbgateCommand(t, args...), lines: make(chan map[string]any, 1000), done: make(chan error, 1), dir: dir}
	s.cmd.Env = append(s.cmd.Env, probeDir+"="+dir)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go func() { // ends with the process
		for in := bufio.NewScanner(stderr); in.Scan(); {
			s.log.Write(append(in.Bytes(), '\n'))
			var line map[string]any
			if json.Unmarshal(in.Bytes(), &line) == nil {
				s.lines <- line
			}
		}
		close(s.lines)
		s.done <- s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // an error means that it has ended
	})
	return s
}

// await waits for the log line with that message.
func (s *served) await(message string) map[string]any {
	s.t.Helper()
	return s.awaitAll(message)[message]
}

// awaitAll waits for the log lines with these messages, in whatever order they come.
func (s *served) awaitAll(messages ...string) map[string]map[string]any {
	s.t.Helper()
	timeout := time.After(patience)
	found := map[string]map[string]any{}
	for len(found) < len(messages) {
		select {
		case line, open := <-s.lines:
			require.True(s.t, open, "the server ended before it said %q", messages)
			if said, _ := line["msg"].(string); slices.Contains(messages, said) && found[said] == nil {
				found[said] = line
			}
		case <-timeout:
			require.FailNow(s.t, "the server never said all of this", messages)
		}
	}
	return found
}

// end waits for the process and returns its exit code.
func (s *served) end() int {
	s.t.Helper()
	for {
		select {
		case _, open := <-s.lines: // drained, so that nobody blocks
			if !open {
				s.lines = nil
			}
		case <-s.done:
			return s.cmd.ProcessState.ExitCode()
		case <-time.After(patience):
			require.FailNow(s.t, "the server does not end")
		}
	}
}

// ask runs verbgate request --server and returns the exit code and what it printed.
func (s *served) ask(ops string, flags ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	args := append([]string{"--data-dir", s.dir, "request", "--server", s.url}, flags...)
	cmd := verbgateCommand(s.t, append(args, ops)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return -1, "", err.Error()
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, patience, 5*time.Millisecond, path)
}

func TestServeHTTP(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	require.Equal(t, filepath.Join(dir, tokenFile), s.tokenFile)
	info, err := os.Stat(s.tokenFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	token, err := os.ReadFile(s.tokenFile)
	require.NoError(t, err)

	t.Run("OKRequest", func(t *testing.T) {
		code, out, errs := s.ask(`create(kind="note", content="x") | get(id=$prev.id)`)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, `"status":"success"`)
		require.Empty(t, errs)
	})
	t.Run("OKNumbersKeepTheirDigits", func(t *testing.T) {
		_, out, _ := s.ask(`probe.echo(value=[18446744073709551615, 1.10])`)
		require.Contains(t, out, `[18446744073709551615,1.10]`)
	})
	t.Run("OKTokenFromVariable", func(t *testing.T) {
		cmd := verbgateCommand(t, "request", "--server", s.url, "stats()")
		cmd.Env = append(cmd.Env, envToken+"="+strings.TrimSpace(string(token)))
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), `"status":"success"`)
	})
	t.Run("OKTokenFile", func(t *testing.T) {
		cmd := verbgateCommand(t, "request", "--server", s.url, "--token-file", s.tokenFile, "stats()")
		require.NoError(t, cmd.Run())
	})
	t.Run("ErrOperation", func(t *testing.T) {
		code, out, _ := s.ask(`stats(namespace="team-a")`)
		require.Equal(t, exitFailed, code)
		require.Contains(t, out, "starter.namespace")
	})
	t.Run("ErrInternalVerb", func(t *testing.T) {
		code, out, _ := s.ask(`probe.inner()`)
		require.Equal(t, exitFailed, code)
		require.Contains(t, out, `"code":"not_callable"`)
	})
	t.Run("ErrParse", func(t *testing.T) {
		code, out, errs := s.ask(`get(id=abc)`)
		require.Equal(t, exitBad, code)
		require.Empty(t, out)
		require.Contains(t, errs, "get(id=abc)\n         ^")
	})
	t.Run("ErrNoToken", func(t *testing.T) {
		cmd := verbgateCommand(t, "request", "--server", s.url, "stats()")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitStart, cmd.ProcessState.ExitCode())
		require.Contains(t, string(out), "wants a bearer token")
	})
	t.Run("ErrWrongToken", func(t *testing.T) {
		wrong := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(wrong, bytes.Repeat([]byte("0"), 64), 0o600))
		code, _, errs := s.ask("stats()", "--token-file", wrong)
		require.Equal(t, exitStart, code)
		require.Contains(t, errs, "wants a bearer token that it knows")
		require.NotContains(t, errs, "0000")
	})
	t.Run("ErrNotTheTool", func(t *testing.T) {
		code, _, errs := (&served{t: t, url: strings.TrimSuffix(s.url, "/mcp"), dir: dir}).ask("stats()")
		require.Equal(t, exitStart, code)
		require.Contains(t, errs, "is it the URL that serve --http printed?")
	})
	t.Run("ErrUnauthorizedOnEveryRoute", func(t *testing.T) {
		for _, path := range []string{"/mcp", "/", "/other"} {
			answer, err := http.Post(strings.TrimSuffix(s.url, "/mcp")+path, "application/json", strings.NewReader("{}"))
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
			require.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"))
		}
	})
	t.Run("ErrAddressTaken", func(t *testing.T) {
		addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
		cmd := verbgateCommand(t, "serve", "--http", addr)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitStart, cmd.ProcessState.ExitCode())
		require.Contains(t, string(out), addr)
	})

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitOK, s.end())
	require.NotContains(t, s.log.String(), strings.TrimSpace(string(token)), "the token belongs in no log")

	// The second start finds the token of the first.
	again := startServer(t, dir)
	same, err := os.ReadFile(again.tokenFile)
	require.NoError(t, err)
	require.Equal(t, token, same)
}

// Names that requests may be addressed to, and pages that may send them, are the operator's.
func TestServeAllowed(t *testing.T) {
	s := startServer(t, t.TempDir(), "--set", "http.allowed_hosts=gate.example.com", "--set", "http.allowed_origins=https://app.example.com")
	token, err := os.ReadFile(s.tokenFile)
	require.NoError(t, err)
	cases := []struct {
		name, host, origin string
		status             int
	}{
		{"OKPlain", "", "", http.StatusOK},
		{"OKHost", "gate.example.com", "", http.StatusOK},
		{"OKOrigin", "", "https://app.example.com", http.StatusOK},
		{"ErrHost", "other.example.com", "", http.StatusForbidden},
		{"ErrOrigin", "", "https://other.example.com", http.StatusForbidden},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			if c.host != "" {
				req.Host = c.host
			}
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			answer, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, c.status, answer.StatusCode)
		})
	}
}

// An interrupted request answers what became of it.
func TestRequestInterrupted(t *testing.T) {
	dir := t.TempDir()
	cmd := verbgateCommand(t, "--data-dir", dir, "request", `probe.sleep(ms=600000, mark="slow") | stats()`)
	cmd.Env = append(cmd.Env, probeDir+"="+dir)
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	awaitFile(t, filepath.Join(dir, "slow.started"))
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // the exit code says it
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
	require.Contains(t, out.String(), `"code":"cancelled"`)
	require.Contains(t, out.String(), `"aborted":true`)
	ended, err := os.ReadFile(filepath.Join(dir, "slow.ended"))
	require.NoError(t, err)
	require.Equal(t, "cancelled", string(ended))
}

// Anonymous callers are let in by hand only, and the starter policy still refuses them.
func TestServeAnonymous(t *testing.T) {
	s := startServer(t, t.TempDir(), "--set", "http.auth=none")
	require.Empty(t, s.tokenFile)
	require.NoFileExists(t, filepath.Join(s.dir, tokenFile))
	code, out, errs := s.ask("stats()")
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, out, "anonymous:http")
	require.Contains(t, out, "starter.actor")
}

func TestServeSignals(t *testing.T) {
	t.Run("OKLetsRequestsFinish", func(t *testing.T) {
		s := startServer(t, t.TempDir())
		type answer struct {
			code int
			out  string
		}
		got := make(chan answer, 1)
		go func() {
			code, out, _ := s.ask(`probe.sleep(ms=600000, mark="slow")`)
			got <- answer{code, out}
		}()
		awaitFile(t, filepath.Join(s.dir, "slow.started"))
		require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
		// The listener closes at once; the request goes on.
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		}, patience, 5*time.Millisecond)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "slow.release"), nil, 0o600))
		require.Equal(t, exitOK, s.end())
		a := <-got
		require.Equal(t, exitOK, a.code)
		require.Contains(t, a.out, `"ended":"released"`)
	})
	t.Run("OKSecondEndsAtOnce", func(t *testing.T) {
		s := startServer(t, t.TempDir())
		asked := make(chan struct{})
		go func() { // ends with the server
			defer close(asked)
			s.ask(`probe.sleep(ms=600000, mark="slow")`)
		}()
		awaitFile(t, filepath.Join(s.dir, "slow.started"))
		require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
		// Until the first has been taken, a second of the same kind may be merged with it.
		require.Eventually(t, func() bool {
			_ = s.cmd.Process.Signal(os.Interrupt)
			select {
			case <-s.done:
				return true
			default:
				return false
			}
		}, patience, 20*time.Millisecond)
		require.NotEqual(t, exitOK, s.cmd.ProcessState.ExitCode())
		require.NoFileExists(t, filepath.Join(s.dir, "slow.ended"))
		<-asked
	})
}

func TestServeReload(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "policy")
	require.NoError(t, os.Mkdir(gate, 0o700))
	write := func(decision string) {
		t.Helper()
		file := filepath.Join(gate, "gate.rego")
		require.NoError(t, os.WriteFile(file+".new", []byte("package verbgate.gate\n\ndecision := "+decision+"\n"), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	write("false")
	s := startServer(t, t.TempDir(), "--policy", gate)
	code, _, _ := s.ask("stats()")
	require.Equal(t, exitFailed, code)

	write("true")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.await("the policy was reloaded")
	// The counters so far.
	require.Equal(t, 0.0, s.await("counted by the dispatcher")["refused_without_audit"])
	line := s.await("counted by the gate")
	require.Equal(t, 1.0, line["decisions"])
	require.NotEmpty(t, line["revision"])
	require.NotContains(t, line, "last_activation")
	require.GreaterOrEqual(t, s.await("counted by the audit store")["records"], 2.0) // activations and a call
	code, out, _ := s.ask("stats()")
	require.Equal(t, exitOK, code, out)

	// A policy that does not compile changes nothing.
	write("nowhere")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.await("the policy was not reloaded; the one before stays in use")
	require.Contains(t, s.await("counted by the gate")["last_activation"], "gate.rego")
	code, out, _ = s.ask("stats()")
	require.Equal(t, exitOK, code, out)

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.await("counted by the dispatcher")
	require.Equal(t, 3.0, s.await("counted by the gate")["decisions"])
	require.Equal(t, 0.0, s.await("counted by the audit store")["waiting"])
	require.Equal(t, exitOK, s.end())

	// Each activation is on record, with its revision, and so is the failed one.
	var outcomes []string
	for _, r := range auditRecords(t, s.dir, audit.Filter{Kind: policy.KindGateActivation}) {
		require.NotEmpty(t, r.Revision)
		require.Equal(t, "opa", r.Gate)
		outcomes = append(outcomes, r.Outcome)
	}
	require.Contains(t, outcomes, "error")
	require.Equal(t, "success", outcomes[0])
	require.GreaterOrEqual(t, len(outcomes), 3)
}

// auditRecords reads the records of a data folder that no process has open.
func auditRecords(t *testing.T, dir string, filter audit.Filter) []policy.Record {
	t.Helper()
	store, err := audit.New(audit.Config{Path: filepath.Join(dir, auditFile)})
	require.NoError(t, err)
	require.NoError(t, store.Open(context.Background()))
	defer func() { require.NoError(t, store.Close()) }()
	var out []policy.Record
	for r, err := range store.Records(context.Background(), filter) {
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

// What the command line does is on record under the user's own name, with its params and without the
// sensitive ones.
func TestRequestAudit(t *testing.T) {
	dir := t.TempDir()
	request := func(ops string, flags ...string) {
		t.Helper()
		cmd := verbgateCommand(t, append(append([]string{"--data-dir", dir}, flags...), "request", ops)...)
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Run(); err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
	}
	request(`probe.echo(text="plain", secret="hush")`)
	request(`stats(namespace="team-a")`)
	request(`nonsense`)
	request(`probe.echo(text="unrecorded")`, "--set", "audit.params=none")

	records := auditRecords(t, dir, audit.Filter{})
	var echo, denied, refused, bare *policy.Record
	for i, r := range records {
		switch {
		case r.Kind == policy.KindGateActivation:
		case r.Verb == "probe.echo" && echo == nil:
			echo = &records[i]
		case r.Verb == "stats":
			denied = &records[i]
		case r.Kind == policy.KindRefusal:
			refused = &records[i]
		case r.Verb == "probe.echo":
			bare = &records[i]
		}
	}
	require.NotNil(t, echo)
	require.Equal(t, login().String(), echo.Actor)
	require.Equal(t, "cli", echo.Source)
	require.Equal(t, "allowed", echo.Effect)
	require.Contains(t, string(echo.Params), `"text":"plain"`)
	require.Contains(t, string(echo.Params), `"$sealed":"v1:`)
	require.NotContains(t, string(echo.Params), "hush")
	require.NotNil(t, denied)
	require.Equal(t, "deny", denied.Decision)
	require.Equal(t, "starter.namespace", denied.Code)
	require.NotNil(t, refused, "a parse error leaves a record")
	require.NotNil(t, bare)
	require.Empty(t, bare.Params)
}
