package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// socketPath is a path for a Unix socket, in a folder that does not exist yet. Those of t.TempDir can be
// too long.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vg")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "v.sock")
}

// startSocket runs verbgate serve --listen on that path, and waits until it serves.
func startSocket(t *testing.T, dir, path string, flags ...string) *served {
	t.Helper()
	s := launch(t, dir, append([]string{"serve", "--listen", schemeUnix + path}, flags...)...)
	line := s.await("serving the framed protocol")
	require.Equal(t, path, line["address"])
	s.url = schemeUnix + path
	return s
}

// dial connects to the server as a program would.
func (s *served) dial() *session.Client {
	s.t.Helper()
	client, err := session.Dial(context.Background(), session.ClientConfig{Dial: session.DialUnix(strings.TrimPrefix(s.url, schemeUnix))})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = client.Close() }) // it may be closed already
	return client
}

func (s *served) stop() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(s.t, exitOK, s.end(), s.log.String())
}

func TestListenUnix(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	s := startSocket(t, dir, path)
	for name, mode := range map[string]os.FileMode{path: 0o600 | fs.ModeSocket, filepath.Dir(path): 0o700 | fs.ModeDir} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
	}

	code, out, errs := s.ask(`create(kind="note", content="over a socket") | get(id=$prev.id)`)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, `"summary":{"total":2,"succeeded":2,"failed":0,"aborted":0},"status":"success"`)
	require.Empty(t, errs)

	code, out, _ = s.ask(`create(kind="note", content="x", namespace="team-a")`)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `"code":"permission_denied"`)
	require.Contains(t, out, `"policy_code":"starter.namespace"`)

	code, out, _ = s.ask(`probe.inner()`)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `"code":"not_callable"`)

	code, out, errs = s.ask(`get(id=`)
	require.Equal(t, exitBad, code)
	require.Empty(t, out)
	require.Regexp(t, `(?m)^ +\^$`, errs)

	s.stop()
	require.NoFileExists(t, path)
	require.NotContains(t, s.log.String(), "over a socket", "no params in the log")

	records := auditRecords(t, dir, audit.Filter{Verb: "create"})
	require.Len(t, records, 2)
	require.Equal(t, "wire", records[0].Source)
	require.Equal(t, login().String(), records[0].Actor)
	require.Equal(t, "allowed", records[0].Effect)
	require.Equal(t, "denied", records[1].Effect)
}

// A client may send what does not parse; then it is told like everybody else, and it is recorded.
func TestListenParseError(t *testing.T) {
	dir := t.TempDir()
	s := startSocket(t, dir, socketPath(t))
	client := s.dial()
	for _, c := range []struct{ ops, want string }{
		{`get(id=abc)`, `{"error":{"code":"invalid_params","reason":"parse-error","kind":"InvalidValue","message":"line 1, column 8: ` +
			"`abc`" + ` is a bareword; a text needs double quotes: write id=\"abc\"","pos":7}}`},
		{``, `{"error":{"code":"invalid_params","reason":"parse-error","kind":"Empty","message":"the request is empty; write a call such as verb(name=\"value\")"}}`},
	} {
		result, err := client.Request(t.Context(), session.ClientRequest{Ops: c.ops})
		require.NoError(t, err)
		require.Equal(t, c.want, string(result))
	}
	s.stop()
	records := auditRecords(t, dir, audit.Filter{Kind: policy.KindRefusal})
	require.Len(t, records, 2)
	require.Equal(t, "parse error: InvalidValue", records[0].Reason)
	require.Equal(t, "wire", records[0].Source)
	require.Equal(t, login().String(), records[0].Actor)
}

// What a frame says about who asks and where is judged by the policy, and never makes the peer somebody
// else unless the configuration trusts it.
func TestListenContext(t *testing.T) {
	gate := t.TempDir()
	writePolicy(t, gate, `{"decision": "deny", "reason": sprintf("%s:%s claims %v in %s reading %v", [input.token.actor.kind, input.token.actor.id, input.token.actor.claims, input.token.namespace, input.token.read])}`)
	ask := func(t *testing.T, client *session.Client, req session.ClientRequest) (reason string, err error) {
		req.Ops = "stats()"
		result, err := client.Request(t.Context(), req)
		if err != nil {
			return "", err
		}
		var envelope struct{ Results []struct{ Error string } }
		require.NoError(t, json.Unmarshal(result, &envelope))
		return strings.TrimPrefix(envelope.Results[0].Error, `permission denied for verb "stats": `), nil
	}
	me := login().String()
	manyNamespaces := make([]string, maxVisible+1)
	for i := range manyNamespaces {
		manyNamespaces[i] = "a"
	}
	for _, c := range []struct {
		name     string
		trust    string
		req      session.ClientRequest
		want     string
		rejected string
	}{
		{"OKNothing", "false", session.ClientRequest{}, me + ` claims {} in home reading ["home", "also"]`, ""},
		{"OKClaims", "false", session.ClientRequest{ActorID: wire.Some("alice")}, me + ` claims {"asserted_id": "alice"} in home reading ["home", "also"]`, ""},
		{"OKTrusted", "true", session.ClientRequest{ActorID: wire.Some("alice")}, `asserted:alice claims {} in home reading ["home", "also"]`, ""},
		{"OKTrustedSilent", "true", session.ClientRequest{}, me + ` claims {} in home reading ["home", "also"]`, ""},
		{"OKNamespace", "false", session.ClientRequest{Namespace: wire.Some("a:b")}, me + ` claims {} in a:b reading ["a:b", "also"]`, ""},
		{"OKVisible", "false", session.ClientRequest{VisibleNamespaces: wire.Some([]string{"c", "d"})}, me + ` claims {} in home reading ["home", "c", "d"]`, ""},
		{"OKVisibleNone", "false", session.ClientRequest{VisibleNamespaces: wire.Some([]string{})}, me + ` claims {} in home reading ["home"]`, ""},
		{"ErrNamespace", "false", session.ClientRequest{Namespace: wire.Some("a b")}, "", "namespace: byte 1 is not allowed"},
		{"ErrVisible", "false", session.ClientRequest{VisibleNamespaces: wire.Some([]string{"a", "::"})}, "", "visible_namespaces[1]: it has an empty segment"},
		{"ErrVisibleMany", "false", session.ClientRequest{VisibleNamespaces: wire.Some(manyNamespaces)}, "", "visible_namespaces: 1025 are too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSocket(t, t.TempDir(), socketPath(t), "--policy", gate, "--namespace", "home", "--set", "visible=also", "--set", "unix.trust_actor_id="+c.trust)
			client := s.dial()
			got, err := ask(t, client, c.req)
			if c.rejected == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				return
			}
			var remote *session.RemoteError
			require.ErrorAs(t, err, &remote)
			require.Equal(t, wire.ContextRejected, remote.Code)
			require.Contains(t, remote.Message, c.rejected)
			_, err = ask(t, client, session.ClientRequest{})
			require.NoError(t, err, "the connection lives")
		})
	}
}

// A socket that a dead server left is replaced, and one of a living server is not.
func TestListenSocketTaken(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	first := startSocket(t, dir, path)
	require.NoError(t, first.cmd.Process.Kill())
	first.end()
	require.FileExists(t, path, "nobody has removed it")

	second := startSocket(t, dir, path)
	connected := second.dial()
	_, err := connected.Request(t.Context(), session.ClientRequest{Ops: "stats()"})
	require.NoError(t, err)
	third := launch(t, dir, "serve", "--listen", schemeUnix+path)
	require.Equal(t, exitStart, third.end())
	require.Contains(t, third.log.String(), "a daemon is already listening on "+path)
	require.NotContains(t, third.log.String(), "serving")
	_, err = connected.Request(t.Context(), session.ClientRequest{Ops: "stats()"})
	require.NoError(t, err, "a connection of the living server does not notice")
	code, _, errs := second.ask("stats()")
	require.Equal(t, exitOK, code, errs)
	second.stop()

	// By a program that knows nothing of the lock beside the socket.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	fourth := launch(t, dir, "serve", "--listen", schemeUnix+path)
	require.Equal(t, exitStart, fourth.end())
	require.Contains(t, fourth.log.String(), "a daemon is already listening on "+path)
	require.NoError(t, l.Close())
	startSocket(t, dir, path).stop()

	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	fifth := launch(t, dir, "serve", "--listen", schemeUnix+path)
	require.Equal(t, exitStart, fifth.end())
	require.Contains(t, fifth.log.String(), path+" is there and is no socket")
	require.FileExists(t, path)
}

// Sockets and HTTP stand on one dispatcher, and end together.
func TestListenBesideHTTP(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	s := launch(t, dir, "serve", "--http", "127.0.0.1:0", "--listen", schemeUnix+path)
	s.await("serving the framed protocol")
	s.url, _ = s.await("serving MCP")["url"].(string)
	code, _, errs := s.ask(`create(kind="note", content="by http")`)
	require.Equal(t, exitOK, code, errs)
	s.url = schemeUnix + path
	code, out, errs := s.ask(`search(kind="note", query="http")`)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, `"snippet":"by http"`)
	s.stop()
	require.NoFileExists(t, path)
	require.Contains(t, s.log.String(), `"msg":"counted by the framed protocol","connections":0,"running":0,"accepted":1,"turned_away":0`)
}

// Over stdio the server ends with its client, sockets included.
func TestListenBesideStdio(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	cmd := verbgateCommand(t, "--data-dir", dir, "serve", "--stdio", "--listen", schemeUnix+path)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &served{t: t, url: schemeUnix + path, dir: dir}
	require.Eventually(t, func() bool { code, _, _ := s.ask("stats()"); return code == exitOK }, patience, 50*time.Millisecond)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait(), errs.String())
	require.Empty(t, out.String(), "stdout is the protocol's")
	require.NoFileExists(t, path)
}

// What cannot be listened on ends everything, the others included.
func TestListenAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	path := socketPath(t)
	s := launch(t, t.TempDir(), "--set", "tcp.plain=true", "serve", "--listen", schemeUnix+path, "--listen", schemeTCP+l.Addr().String(), "--http", "127.0.0.1:0")
	require.Equal(t, exitStart, s.end())
	require.Contains(t, s.log.String(), "address already in use")
	require.NotContains(t, s.log.String(), "serving")
	require.NoFileExists(t, path)

	s = launch(t, t.TempDir(), "serve", "--listen", schemeUnix+path, "--http", l.Addr().String())
	require.Equal(t, exitStart, s.end())
	require.NotContains(t, s.log.String(), "serving MCP")
	require.NoFileExists(t, path)
}

// The first signal lets running requests end, and new ones are turned away.
func TestListenDrain(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	s := startSocket(t, dir, path)
	client := s.dial()
	type answer struct {
		result json.RawMessage
		err    error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the request
		result, err := client.Request(context.Background(), session.ClientRequest{Ops: `probe.sleep(ms=60000, mark="m")`})
		answers <- answer{result, err}
	}()
	awaitFile(t, filepath.Join(dir, "m.started"))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		_, err := client.Request(context.Background(), session.ClientRequest{Ops: "stats()"})
		var remote *session.RemoteError
		return errors.As(err, &remote) && remote.Code == wire.ShuttingDown
	}, patience, 5*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.release"), nil, 0o600))
	got := <-answers
	require.NoError(t, got.err)
	require.Contains(t, string(got.result), `"released"`)
	require.Equal(t, exitOK, s.end())
	require.NoFileExists(t, path)
}

// On plain TCP everybody is anonymous, whatever a frame says.
func TestListenTCP(t *testing.T) {
	gate := t.TempDir()
	writePolicy(t, gate, `{"decision": "deny", "reason": sprintf("%s:%s over %s", [input.token.actor.kind, input.token.actor.id, input.context.transport])}`)
	s := launch(t, t.TempDir(), "--policy", gate, "--set", "tcp.plain=true", "--set", "unix.trust_actor_id=true", "serve", "--listen", "tcp://127.0.0.1:0")
	s.url = schemeTCP + s.await("serving the framed protocol")["address"].(string)
	code, out, errs := s.ask("stats()")
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, out, "anonymous:tcp over tcp")
	client, err := session.Dial(t.Context(), session.ClientConfig{Dial: session.DialTCP(strings.TrimPrefix(s.url, schemeTCP))})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Request(t.Context(), session.ClientRequest{Ops: "stats()", ActorID: wire.Some("root")})
	var remote *session.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, wire.ContextRejected, remote.Code)
	s.stop()
}

// A result that is too large or too deep for a frame makes way for word of it.
func TestListenFit(t *testing.T) {
	s := startSocket(t, t.TempDir(), socketPath(t))
	code, out, errs := s.ask(`[probe.big(bytes=9000000), probe.echo(text="small")]`)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, out, `"code":"response_frame_budget_exceeded"`)
	require.Contains(t, out, `"result":{"text":"small"}`)
	s.stop()
}

// A signal may come at any time, also before anybody is served.
func TestListenEndsEarly(t *testing.T) {
	cfg, err := cliWith(nil, "--data-dir", t.TempDir(), "--set", "listen=unix://"+socketPath(t)).configuration()
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	a, err := openApp(t.Context(), cfg, log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		sockets, err := cfg.openings(cfg.Listen)
		require.NoError(t, err)
		s := service{cfg: cfg, log: log, sockets: sockets}
		require.NoError(t, s.beside(ctx, a, nil))
		require.NoFileExists(t, strings.TrimPrefix(cfg.Listen[0], schemeUnix))
	}
	require.NoError(t, a.Close())
}
