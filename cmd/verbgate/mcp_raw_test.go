package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
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

// The end of stdin lets calls finish; SIGTERM cancels them. Both end the program well.
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
	t.Run("OKTerm", func(t *testing.T) {
		p := newProgram(t)
		l := p.lines()
		l.send(rawCall(`1`, `probe.sleep(ms=600000, mark="m")`))
		p.marked("m.started")
		require.NoError(t, l.sig(os.Interrupt))
		require.Contains(t, string(l.receive().Result), `"code":"cancelled"`)
		require.Equal(t, "cancelled", p.marked("m.ended"))
		require.NoError(t, l.end())
	})
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
