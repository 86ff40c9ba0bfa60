package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

func TestServe(t *testing.T) {
	listen := func(t *testing.T, addr string) net.Listener {
		ln, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		return ln
	}
	start := func(ctx context.Context, t *testing.T, r *runner, drain time.Duration) (string, chan error) {
		ln := listen(t, "127.0.0.1:0")
		done := make(chan error, 1)
		s := newServer(t, r, func(c *mcp.Config) { c.DrainTimeout = drain })
		go func() { done <- s.Serve(ctx, ln, mcp.HTTPConfig{Token: token}) }()
		return "http://" + ln.Addr().String() + mcp.Path, done
	}
	ask := func(url, ops string) (int, string, error) {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(call(`1`, ops)))
		if err != nil {
			return 0, "", err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, string(text), err
	}
	type outcome struct {
		status int
		text   string
		err    error
	}
	t.Run("OKDrains", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := newRunner()
		url, done := start(ctx, t, r, time.Minute)
		got := make(chan outcome, 1)
		go func() {
			status, text, err := ask(url, "wait()")
			got <- outcome{status, text, err}
		}()
		r.starts(t)
		stop()
		require.Empty(t, r.ended)
		r.free()
		o := <-got
		require.NoError(t, o.err)
		require.Contains(t, o.text, "released")
		require.NoError(t, <-done)
		_, _, err := ask(url, "echo()")
		require.Error(t, err, "the listener is closed")
	})
	t.Run("OKCancelsLate", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := newRunner()
		url, done := start(ctx, t, r, time.Nanosecond)
		got := make(chan outcome, 1)
		go func() {
			status, text, err := ask(url, "wait()")
			got <- outcome{status, text, err}
		}()
		r.starts(t)
		stop()
		r.ends(t)
		o := <-got
		require.NoError(t, o.err)
		require.Equal(t, http.StatusServiceUnavailable, o.status)
		require.True(t, json.Valid([]byte(o.text)), o.text)
		require.NoError(t, <-done)
	})
	t.Run("ErrLongHead", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		url, done := start(ctx, t, newRunner(), time.Minute)
		req, err := http.NewRequest(http.MethodPost, url, nil)
		require.NoError(t, err)
		req.Header.Set("X-Long", strings.Repeat("x", 80<<10))
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, res.StatusCode)
		stop()
		require.NoError(t, <-done)
	})
	t.Run("ErrRemote", func(t *testing.T) {
		for _, cfg := range []mcp.HTTPConfig{{Token: token}, {Auth: mcp.AuthNone}} {
			ln := listen(t, "0.0.0.0:0")
			err := newServer(t, newRunner()).Serve(t.Context(), ln, cfg)
			var remote *mcp.RemoteError
			require.ErrorAs(t, err, &remote)
			require.Error(t, ln.Close(), "it is closed")
		}
	})
	t.Run("ErrConfig", func(t *testing.T) {
		require.ErrorContains(t, newServer(t, newRunner()).Serve(t.Context(), listen(t, "127.0.0.1:0"), mcp.HTTPConfig{}), "bearer token")
	})
	t.Run("ErrListener", func(t *testing.T) {
		ln := listen(t, "127.0.0.1:0")
		require.NoError(t, ln.Close())
		require.Error(t, newServer(t, newRunner()).Serve(t.Context(), ln, mcp.HTTPConfig{Token: token}))
	})
}
