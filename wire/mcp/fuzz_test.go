package mcp_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// FuzzStdio: whatever bytes come in, every line that goes out is a JSON-RPC message, and the end of
// the input is the end of the connection.
func FuzzStdio(f *testing.F) {
	var all bytes.Buffer
	for _, tt := range refused {
		if len(tt.text) < 4096 {
			f.Add([]byte(tt.text))
			all.WriteString(tt.text + "\r\n")
		}
	}
	f.Add(all.Bytes())
	f.Add([]byte(call(`1`, `echo()`) + "\n" + call(`2`, `deny(`) + "\n" + cancelled(`1`)))
	f.Add(bytes.Repeat([]byte("x"), 5000))
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("wait")) {
			t.Skip("a call that waits for the test")
		}
		s := newServer(t, newRunner(), func(c *mcp.Config) { c.MaxBytes = 4096 })
		var out bytes.Buffer
		require.NoError(t, s.ServeStdio(t.Context(), bytes.NewReader(in), &out))
		for l := range bytes.Lines(out.Bytes()) {
			readReply(t, string(l))
		}
	})
}

// FuzzGuard: who is heard over HTTP has the token, speaks to a loopback name, and comes from no
// foreign page.
func FuzzGuard(f *testing.F) {
	f.Add("localhost:80", "", "Bearer "+token, "/mcp")
	f.Add("127.0.0.1", "http://127.0.0.1", "bearer "+token, "/mcp")
	f.Add("[::1]:1", "null", "Bearer", "/MCP")
	f.Add("localhost.", "http://evil", token, "//mcp")
	s := newServer(f, newRunner())
	h, err := s.Handler(mcp.HTTPConfig{Token: token})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, host, origin, auth, path string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(goodCall))
		r.Host, r.URL.Path = host, path
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {auth}}
		if origin != "" {
			r.Header["Origin"] = []string{origin}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{401, 403, 404}, w.Code)
			return
		}
		require.Equal(t, "/mcp", path)
		require.True(t, strings.HasSuffix(auth, " "+token) && strings.EqualFold(auth[:6], "bearer"))
		name := strings.ToLower(host)
		if n, _, err := net.SplitHostPort(name); err == nil {
			name = n
		}
		if name != "localhost" {
			ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
			require.NoError(t, err)
			require.True(t, ip.IsLoopback() || ip.Unmap().IsLoopback())
		}
		if origin != "" {
			require.True(t, strings.EqualFold(origin, "http://"+host))
		}
	})
}

// brokenBody fails in a way no reader should.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { panic(secret) }

func TestHTTPPanic(t *testing.T) {
	h, err := newServer(t, newRunner()).Handler(mcp.HTTPConfig{Token: token})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", brokenBody{})
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "internal", readError(t, w.Body.Bytes()).Error.Message)
}

// A body that breaks off is answered and runs nothing.
func TestHTTPTornBody(t *testing.T) {
	r := newRunner()
	srv := serveHTTP(t, newServer(t, r), mcp.HTTPConfig{Token: token})
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + goodCall))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	var answer bytes.Buffer
	_, err = answer.ReadFrom(conn)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "HTTP/1.1 400")
	require.Empty(t, r.runs())
}

// The handler's context is the caller's: a request that is gone before it runs does not run.
func TestHTTPGoneBeforeRunning(t *testing.T) {
	r := newRunner()
	h, err := newServer(t, r).Handler(mcp.HTTPConfig{Token: token})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(goodCall))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
	h.ServeHTTP(httptest.NewRecorder(), req)
	require.Empty(t, r.runs())
}
