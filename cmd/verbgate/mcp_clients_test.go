package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	markmcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// The MCP clients of these tests were written by others. Each is reduced to what the tests ask of it.

// mcpSession is a client connected to the program.
type mcpSession interface {
	// list returns the tools as JSON.
	list(ctx context.Context) (string, error)
	// call calls the tool request with these arguments. A JSON-RPC error is a *mcpError.
	call(ctx context.Context, args map[string]any) (*mcpResult, error)
	version() string
	close() error
}

type mcpResult struct {
	Content []struct{ Type, Text string } `json:"content"`
	// Structured is the raw envelope.
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Meta       map[string]any  `json:"_meta"`
}

// envelope is the answer, with the entries a test looks at.
type mcpEnvelope struct {
	Results []struct {
		OK      bool
		Tool    string
		Result  json.RawMessage
		Error   any
		Code    string
		Aborted bool
	}
	Summary struct{ Total, Succeeded, Failed, Aborted int }
	Status  string
}

func (r *mcpResult) envelope(t *testing.T) mcpEnvelope {
	t.Helper()
	require.Len(t, r.Content, 1)
	require.JSONEq(t, string(r.Structured), r.Content[0].Text, "the text is the same JSON")
	var env mcpEnvelope
	require.NoError(t, json.Unmarshal([]byte(r.Content[0].Text), &env))
	return env
}

// mcpError is a JSON-RPC error as a client shows it. data is nil with clients that drop it.
type mcpError struct {
	code int
	text string
	data json.RawMessage
}

func (e *mcpError) Error() string { return e.text }

func reread(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// sdkSession is the client of github.com/modelcontextprotocol/go-sdk.
type sdkSession struct{ s *sdk.ClientSession }

func connectSDK(t *testing.T, version string, how sdk.Transport) mcpSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), how, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	return &sdkSession{s}
}

func (c *sdkSession) version() string { return c.s.InitializeResult().ProtocolVersion }
func (c *sdkSession) close() error    { return c.s.Close() }

func (c *sdkSession) list(ctx context.Context) (string, error) {
	res, err := c.s.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(res.Tools)
	return string(text), err
}

func (c *sdkSession) call(ctx context.Context, args map[string]any) (*mcpResult, error) {
	res, err := c.s.CallTool(ctx, &sdk.CallToolParams{Name: "request", Arguments: args})
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return nil, &mcpError{code: int(rpc.Code), text: rpc.Message, data: rpc.Data}
	}
	if err != nil {
		return nil, err
	}
	var out mcpResult
	return &out, reread(res, &out)
}

// markSession is the client of github.com/mark3labs/mcp-go.
type markSession struct{ c *client.Client }

func connectMark(t *testing.T, version string, how transport.Interface) mcpSession {
	t.Helper()
	var opts []client.ClientOption
	if !markmcp.IsModernProtocol(version) {
		opts = append(opts, client.WithProtocolVersion(version))
	}
	c := client.NewClient(how, opts...)
	require.NoError(t, c.Start(t.Context()))
	hello := markmcp.InitializeRequest{}
	hello.Params.ProtocolVersion = version
	hello.Params.ClientInfo = markmcp.Implementation{Name: "test", Version: "1"}
	_, err := c.Initialize(t.Context(), hello)
	require.NoError(t, err)
	return &markSession{c}
}

func (c *markSession) version() string { return c.c.ProtocolVersion() }
func (c *markSession) close() error    { return c.c.Close() }

func (c *markSession) list(ctx context.Context) (string, error) {
	res, err := c.c.ListTools(ctx, markmcp.ListToolsRequest{})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(res.Tools)
	return string(text), err
}

func (c *markSession) call(ctx context.Context, args map[string]any) (*mcpResult, error) {
	req := markmcp.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = "request", args
	res, err := c.c.CallTool(ctx, req)
	for sentinel, code := range map[error]int{markmcp.ErrInvalidParams: -32602, markmcp.ErrInternalError: -32603, markmcp.ErrInvalidRequest: -32600} {
		if errors.Is(err, sentinel) {
			return nil, &mcpError{code: code, text: err.Error()}
		}
	}
	if err != nil {
		return nil, err
	}
	var out mcpResult
	return &out, reread(res, &out)
}

// mcpProgram is the program under test: how to connect to it, and where its probes leave marks.
type mcpProgram struct {
	t      *testing.T
	marks  string
	stderr *syncBuffer
	flags  []string // before every command

	url, token string // of the HTTP server, "" over stdio
}

func newProgram(t *testing.T) *mcpProgram {
	return &mcpProgram{t: t, marks: t.TempDir(), stderr: &syncBuffer{}}
}

// command prepares the program as a process, whose log goes to stderr.
func (p *mcpProgram) command(args ...string) *exec.Cmd {
	cmd := verbgateCommand(p.t, append(slices.Clone(p.flags), args...)...)
	cmd.Env = append(cmd.Env, probeDir+"="+p.marks)
	cmd.Stderr = p.stderr
	return cmd
}

// serveHTTP starts the HTTP server and ends it with the test.
func (p *mcpProgram) serveHTTP(args ...string) *exec.Cmd {
	t := p.t
	t.Helper()
	cmd := p.command(append([]string{"serve", "--http", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	logR, logW := io.Pipe()
	cmd.Stderr = io.MultiWriter(p.stderr, logW)
	var stdout syncBuffer
	cmd.Stdout = &stdout
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		logW.Close()
	}()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, <-ended, p.stderr)
		require.Empty(t, stdout.String(), "stdout is for results")
		if p.token != "" {
			require.NotContains(t, p.stderr.String(), p.token)
		}
	})
	log := bufio.NewScanner(logR)
	for log.Scan() {
		var l struct {
			URL       string `json:"url"`
			TokenFile string `json:"token_file"`
		}
		require.NoError(t, json.Unmarshal(log.Bytes(), &l), log.Text())
		if l.URL == "" {
			continue
		}
		p.url = l.URL
		if l.TokenFile != "" {
			text, err := os.ReadFile(l.TokenFile)
			require.NoError(t, err)
			p.token = strings.TrimSpace(string(text))
		}
		go func() { _, _ = io.Copy(io.Discard, logR) }()
		return cmd
	}
	require.Fail(t, "the server did not start", p.stderr)
	return nil
}

// marked waits for a mark of probe.sleep and returns what is in it.
func (p *mcpProgram) marked(name string) string {
	p.t.Helper()
	var text []byte
	require.Eventually(p.t, func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(p.marks, name))
		return err == nil
	}, 30*time.Second, 5*time.Millisecond, "no mark %s; the log: %s", name, p.stderr)
	return string(text)
}

// logged waits until that is in the log.
func (p *mcpProgram) logged(message string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.stderr.String(), message) }, patience, 5*time.Millisecond, message)
}

// release lets the probe.sleep of that mark end.
func (p *mcpProgram) release(mark string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.marks, mark+".release"), nil, 0o600))
}

// mcpWay is one way to speak to the program: whose client, which transport, which revision.
type mcpWay struct {
	name    string
	http    bool
	connect func(p *mcpProgram) mcpSession
}

func mcpWays() []mcpWay {
	var ways []mcpWay
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		ways = append(ways,
			mcpWay{"go-sdk/stdio/" + version, false, func(p *mcpProgram) mcpSession {
				return connectSDK(p.t, version, &sdk.CommandTransport{Command: p.command("serve", "--stdio")})
			}},
			mcpWay{"mcp-go/stdio/" + version, false, func(p *mcpProgram) mcpSession {
				cmd := p.command("serve", "--stdio")
				return connectMark(p.t, version, transport.NewStdioWithOptions(cmd.Path, nil, nil,
					transport.WithCommandStderrWriter(p.stderr),
					transport.WithCommandFunc(func(context.Context, string, []string, []string) (*exec.Cmd, error) {
						cmd.Stderr = nil
						return cmd, nil
					})))
			}},
			mcpWay{"go-sdk/http/" + version, true, func(p *mcpProgram) mcpSession {
				return connectSDK(p.t, version, &sdk.StreamableClientTransport{Endpoint: p.url, HTTPClient: &http.Client{Transport: bearer{p.token}}})
			}},
			mcpWay{"mcp-go/http/" + version, true, func(p *mcpProgram) mcpSession {
				how, err := transport.NewStreamableHTTP(p.url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + p.token}))
				require.NoError(p.t, err)
				return connectMark(p.t, version, how)
			}},
		)
	}
	return ways
}

// bearer adds the token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// syncBuffer collects what a process writes while a test reads it.
type syncBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
