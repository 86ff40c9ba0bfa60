package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/session"
)

// contexts answers with the namespaces that a request came with.
type contexts struct{}

func (contexts) Request(_ context.Context, _ session.Peer, req session.Request, _, _ int) ([]byte, bool) {
	return fmt.Appendf(nil, `{"status":"success","results":[],"namespace":%q,"visible":%q}`, req.Namespace, fmt.Sprint(req.Visible != nil, req.Visible)), true
}
func (contexts) ValidContext(string, []string) error { return nil }
func (contexts) Subscribe(context.Context, session.Peer, string, *uint64) ([]string, error) {
	return nil, errors.New("no")
}

// What says in which namespace to call goes with the request.
func TestFrameRequestNamespaces(t *testing.T) {
	server, err := session.New(session.Config{Handler: contexts{}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	path := socketPath(t)
	l, err := session.ListenUnix(path, session.NewUnixIdentifier())
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(context.Background(), l) }() // ends with Shutdown
	defer func() {
		require.NoError(t, server.Shutdown(context.Background()))
		require.NoError(t, <-done)
	}()
	for _, c := range []struct {
		name, variable string
		file           string
		flags          []string
		namespace      string
		visible        string
	}{
		{name: "OKNothing", visible: "false []"},
		{name: "OKFlag", flags: []string{"--namespace", "local.a"}, namespace: "local.a", visible: "false []"},
		{name: "OKFlagDefault", flags: []string{"--namespace", "local"}, namespace: "local", visible: "false []"},
		{name: "OKSet", flags: []string{"--set", "namespace=b", "--set", "visible=c,d"}, namespace: "b", visible: "true [c d]"},
		{name: "OKSetNothing", flags: []string{"--set", "visible="}, visible: "true []"},
		{name: "OKVariable", variable: "VERBGATE_NAMESPACE=e", namespace: "e", visible: "false []"},
		{name: "OKVariableVisible", variable: "VERBGATE_VISIBLE=f", visible: "true [f]"},
		{name: "OKFile", file: "namespace: g\nvisible: [h]\n", namespace: "g", visible: "true [h]"},
		{name: "OKFileDefaults", file: "namespace: local\nvisible: []\n", visible: "false []"}, // as init writes it
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"--data-dir", dir}, c.flags...)
			if c.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(c.file), 0o600))
				args = append(args, "--config", filepath.Join(dir, "c.yaml"))
			}
			if c.variable != "" {
				key, value, _ := strings.Cut(c.variable, "=")
				t.Setenv(key, value)
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), append(args, "request", "--server", schemeUnix+path, "stats()"), strings.NewReader(""), &out, &errs)
			require.Equal(t, exitOK, code, errs.String())
			require.Contains(t, out.String(), fmt.Sprintf(`"namespace":%q,"visible":%q`, c.namespace, c.visible))
		})
	}
}

// Where a server cannot be told the namespace, nothing is sent.
func TestRemoteNamespacesRefused(t *testing.T) {
	for _, command := range [][]string{
		{"request", "--server", "http://127.0.0.1:1/mcp", "stats()"},
		{"request", "--server", "https://127.0.0.1:1/mcp", "stats()"},
		{"watch", "--server", "unix:///nowhere/v.sock"},
		{"watch"},
	} {
		for _, c := range []struct {
			by       string
			flags    []string
			variable string
		}{
			{by: "--namespace", flags: []string{"--namespace", "local"}},
			{by: "--set namespace", flags: []string{"--set", "namespace=a"}},
			{by: "--set visible", flags: []string{"--set", "visible=a"}},
			{by: "VERBGATE_NAMESPACE", variable: "VERBGATE_NAMESPACE"},
			{by: "VERBGATE_VISIBLE", variable: "VERBGATE_VISIBLE"},
		} {
			t.Run("Err "+strings.Join(command, " ")+" "+c.by, func(t *testing.T) {
				if c.variable != "" {
					t.Setenv(c.variable, "a")
				}
				var out, errs bytes.Buffer
				args := append(append([]string{"--data-dir", t.TempDir()}, c.flags...), command...)
				require.Equal(t, exitBad, run(t.Context(), args, strings.NewReader(""), &out, &errs))
				require.Empty(t, out.String())
				require.Contains(t, errs.String(), c.by+" does not reach the server: leave it out")
				if command[0] == "request" {
					require.Contains(t, errs.String(), `namespace="team-a"`)
				}
			})
		}
	}
}

// Who has a fixed identity is told that it is, and nothing runs in another namespace.
func TestFrameRequestNamespaceFixed(t *testing.T) {
	s := launch(t, t.TempDir(), "--set", "tcp.plain=true", "serve", "--listen", "tcp://127.0.0.1:0")
	address, _ := s.await("serving the framed protocol")["address"].(string)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--data-dir", t.TempDir(), "--namespace", "a", "request", "--server", schemeTCP + address, "stats()"}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitFailed, code)
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "context_rejected: ")
	s.stop()
}
