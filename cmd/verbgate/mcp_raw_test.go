package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// mcpLines speaks to the program over stdio line by line.
type mcpLines struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	end func() error
	sig func(os.Signal) error
}

func (p *mcpProgram) lines(args ...string) *mcpLines {
	t := p.t
	t.Helper()
	cmd := p.command(append([]string{"serve", "--stdio"}, args...)...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	// A program that does not answer ends, and with it the test that waits for it.
	tired := time.AfterFunc(4*patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { tired.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &mcpLines{t, in, bufio.NewReader(out), cmd.Wait, cmd.Process.Signal}
}

func (l *mcpLines) send(text string) {
	l.t.Helper()
	_, err := io.WriteString(l.in, text+"\n")
	require.NoError(l.t, err)
}

type mcpMessage struct {
	JSONRPC string
	ID      json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
}

func (l *mcpLines) receive() mcpMessage {
	l.t.Helper()
	text, err := l.out.ReadString('\n')
	require.NoError(l.t, err)
	var m mcpMessage
	require.NoError(l.t, json.Unmarshal([]byte(text), &m), "%s", text)
	require.Equal(l.t, "2.0", m.JSONRPC)
	return m
}

func rawCall(id, ops string) string {
	text, err := json.Marshal(ops)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"request","arguments":{"ops":%s}}}`, id, text)
}

// fc-001, fc-022: whatever happens, stdout carries JSON-RPC and nothing else, and the program goes on.
func TestMCPStdoutIsProtocol(t *testing.T) {
	p := newProgram(t)
	l := p.lines("--log-level", "debug")
	for _, bad := range []string{`{"jsonrpc":"2.0","id":1,"method":`, `hello`, `[]`, `null`, `5`, "\xef\xbb\xbf{}", strings.Repeat("[", 20000),
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"},`, strings.Repeat("x", 9<<20)} {
		l.send(bad)
		m := l.receive()
		require.NotNil(t, m.Error)
		require.Equal(t, "null", string(m.ID))
	}
	l.send(rawCall(`1`, `[probe.panic(), probe.fail(), probe.echo(), nosuch.verb(), probe.echo(namespace=5)]`))
	require.Contains(t, string(l.receive().Result), `"code":"internal"`)
	l.send(rawCall(`2`, `probe.`))
	require.Equal(t, -32602, l.receive().Error.Code)
	require.NoError(t, l.in.Close())
	rest, err := io.ReadAll(l.out)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	require.NoError(t, l.end())
	require.NotEmpty(t, p.stderr.String(), "the log is on stderr")
}

// The end of stdin lets calls finish, and so does SIGTERM; after the one, the other cancels them. The
// program ends well.
func TestMCPStdioEnd(t *testing.T) {
	t.Run("OKEndOfInput", func(t *testing.T) {
		p := newProgram(t)
		l := p.lines()
		l.send(rawCall(`1`, `probe.sleep(ms=600000, mark="m")`))
		p.marked("m.started")
		require.NoError(t, l.in.Close())
		p.release("m")
		require.Contains(t, string(l.receive().Result), "released")
		require.NoError(t, l.end())
	})
	for name, sig := range map[string]os.Signal{"OKInterrupt": os.Interrupt, "OKTerm": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			l := p.lines()
			l.send(rawCall(`1`, `probe.sleep(ms=600000, mark="m")`))
			p.marked("m.started")
			require.NoError(t, l.sig(sig))
			p.logged("mcp requests under way may finish")
			p.release("m")
			require.Contains(t, string(l.receive().Result), "released")
			require.Equal(t, "released", p.marked("m.ended"))
			require.NoError(t, l.end())
		})
	}
	t.Run("OKEndOfInputThenTerm", func(t *testing.T) {
		p := newProgram(t)
		l := p.lines("--log-level", "debug")
		l.send(rawCall(`1`, `probe.sleep(ms=600000, mark="m")`))
		p.marked("m.started")
		require.NoError(t, l.in.Close())
		p.logged("the mcp client has closed its side")
		require.NoError(t, l.sig(syscall.SIGTERM))
		require.Contains(t, string(l.receive().Result), `"code":"cancelled"`)
		require.Equal(t, "cancelled", p.marked("m.ended"))
		require.NoError(t, l.end())
	})
	t.Run("OKSecondEndsAtOnce", func(t *testing.T) {
		p := newProgram(t)
		l := p.lines()
		l.send(rawCall(`1`, `probe.sleep(ms=600000, mark="m")`))
		p.marked("m.started")
		require.NoError(t, l.sig(os.Interrupt))
		p.logged("mcp requests under way may finish")
		ended := make(chan error, 1)
		go func() { ended <- l.end() }() // ends with the process
		// The first signal gives the second its power on a goroutine of its own.
		require.Eventually(t, func() bool {
			_ = l.sig(os.Interrupt)
			select {
			case err := <-ended:
				require.Error(t, err)
				return true
			default:
				return false
			}
		}, patience, 20*time.Millisecond)
		require.NoFileExists(t, filepath.Join(p.marks, "m.ended"))
	})
}

// fc-007: results of 20 MiB altogether are answered over both transports, and the connection goes on.
// Each way costs seconds, so there is one for each client and transport; go-sdk's reads no line of
// more than 16 MiB over stdio.
func TestMCPLargeBatch(t *testing.T) {
	const each = 20 << 20 / 100
	batch := "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("probe.big(bytes=%d), ", each), 100), ", ") + "]"
	for _, way := range mcpWays() {
		if !slices.Contains([]string{"mcp-go/stdio/2025-11-25", "mcp-go/http/2025-11-25", "go-sdk/http/2026-07-28"}, way.name) {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			p := newProgram(t)
			if way.http {
				p.serveHTTP()
			}
			c := way.connect(p)
			defer func() { require.NoError(t, c.close()) }()
			res, err := c.call(t.Context(), ops(batch))
			require.NoError(t, err)
			env := res.envelope(t)
			require.Equal(t, "success", env.Status)
			require.Equal(t, 100, env.Summary.Succeeded)
			for _, r := range env.Results {
				require.Len(t, r.Result, each+len(`""`))
			}
			_, err = c.call(t.Context(), ops(`probe.echo(text="still here")`))
			require.NoError(t, err)
		})
	}
	t.Run("command line", func(t *testing.T) {
		s := startServer(t, t.TempDir())
		code, out, errs := s.ask(batch)
		require.Equal(t, exitOK, code, errs)
		require.Greater(t, len(out), 20<<20)
	})
}

// A call whose client gave it up is on record as cancelled, and so is what it had been allowed.
func TestMCPCancelAudited(t *testing.T) {
	for _, way := range mcpWays() {
		t.Run(way.name, func(t *testing.T) {
			p := newProgram(t)
			dir := t.TempDir()
			p.flags = []string{"--data-dir", dir}
			t.Run("session", func(t *testing.T) { // the server ends with it
				p.t = t
				if way.http {
					p.serveHTTP()
				}
				c := way.connect(p)
				defer func() { require.NoError(t, c.close()) }()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := c.call(ctx, ops(`probe.sleep(ms=600000, mark="first") | probe.echo()`))
					ended <- err
				}()
				p.marked("first.started")
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				require.Equal(t, "cancelled", p.marked("first.ended"))
				_, err := c.call(t.Context(), ops(`stats()`))
				require.NoError(t, err)
			})
			records := auditRecords(t, dir, audit.Filter{Verb: "probe.sleep"})
			require.Len(t, records, 1)
			r := records[0]
			require.Equal(t, policy.KindDecision, r.Kind)
			require.Equal(t, []string{"allow", "allowed", "error", "cancelled", "mcp"}, []string{r.Decision, r.Effect, r.Outcome, r.ErrorCode, r.Source})
			require.Equal(t, login().String(), r.Actor)
			require.NotEmpty(t, r.DecisionID)
			require.Empty(t, auditRecords(t, dir, audit.Filter{Verb: "probe.echo"}), "an aborted step leaves no record")
		})
	}
}

// A client that goes away without a word has its call cancelled, and the program ends by itself: not
// by a signal, in the middle of what it does.
func TestMCPStdioClientGone(t *testing.T) {
	p := newProgram(t)
	cmd := p.command("serve", "--stdio")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	require.NoError(t, log.Close())
	_, err = io.WriteString(in, rawCall(`1`, `probe.sleep(ms=600000, mark="m")`)+"\n")
	require.NoError(t, err)
	p.marked("m.started")
	require.NoError(t, out.Close())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n") // its answer finds nobody
	require.NoError(t, err)
	require.Equal(t, "cancelled", p.marked("m.ended"))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.True(t, exit.Exited(), exit)
}

// The one caller over stdio can hold two calls whose ids differ in type only.
func TestMCPStdioIDTypes(t *testing.T) {
	p := newProgram(t)
	l := p.lines()
	l.send(rawCall(`7`, `probe.sleep(ms=600000, mark="number")`))
	l.send(rawCall(`"7"`, `probe.sleep(ms=600000, mark="string")`))
	p.marked("number.started")
	p.marked("string.started")
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`)
	require.Equal(t, "cancelled", p.marked("string.ended"))
	p.release("number")
	require.Equal(t, `7`, string(l.receive().ID))
	require.NoError(t, l.in.Close())
	require.NoError(t, l.end())
}

// fc-094, fc-020: the listening program hears nobody without the token or from a foreign page.
func TestMCPHTTPRefuses(t *testing.T) {
	p := newProgram(t)
	p.serveHTTP()
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"OK", func(*http.Request) {}, 200},
		{"ErrNoToken", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"ErrWrongToken", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("0", 64)) }, 401},
		{"ErrHost", func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"ErrOrigin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"ErrPath", func(r *http.Request) { r.URL.Path = "/mcp/other" }, 404},
		{"ErrGet", func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0 }, 405},
		{"ErrBatch", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")); r.ContentLength = 2 }, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(rawCall(`1`, `probe.echo()`)))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+p.token)
			tt.change(req)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, tt.status, res.StatusCode)
			if tt.status == 401 {
				require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
			}
		})
	}
}
