package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// rawHTTP sends a text to a server and returns the connection, from which answers are read.
func rawHTTP(t *testing.T, addr, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn, bufio.NewReader(conn)
}

func rawHead(length int, more ...string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		token, length, strings.Join(more, ""))
}

// A body that says it is too long is refused before any of it was sent.
func TestHTTPLongHead(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	for name, more := range map[string]string{"OKPlain": "", "OKExpect": "Expect: 100-continue\r\n"} {
		t.Run(name, func(t *testing.T) {
			conn, in := rawHTTP(t, srv.Listener.Addr().String(), rawHead(8<<20+1, more))
			res, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
			require.True(t, res.Close)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Contains(t, readError(t, text).Error.Message, "longer than 8388608 bytes")
			require.NoError(t, conn.Close())
		})
	}
}

// OPTIONS * has no path, and passes the guard all the same.
func TestOptionsStar(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	s := newServer(t, newRunner())
	go func() { done <- s.Serve(ctx, ln, mcp.HTTPConfig{Token: token}) }()
	for auth, want := range map[string]int{
		"":                                http.StatusUnauthorized,
		"Authorization: Bearer wrong\r\n": http.StatusUnauthorized,
		"Authorization: Bearer " + token + "\r\n":  http.StatusNotFound,
		"Origin: http://evil.example\r\n":          http.StatusForbidden,
		"X: y\r\nAuthorization: Bearer \r\n":       http.StatusUnauthorized,
		"Authorization: Basic " + token + "\r\n":   http.StatusUnauthorized,
		"Authorization: Bearer " + token + "x\r\n": http.StatusUnauthorized,
	} {
		_, in := rawHTTP(t, ln.Addr().String(), "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+auth+"\r\n")
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, want, res.StatusCode, auth)
		require.NoError(t, res.Body.Close())
	}
	stop()
	require.NoError(t, <-done)
}

// Over HTTP the calls of a client are tied together by nothing, and no record may say otherwise.
func TestHTTPNoSession(t *testing.T) {
	r := newRunner()
	s := newServer(t, r, func(c *mcp.Config) { c.Caller.SessionID = "of-the-process" })
	srv := serveHTTP(t, s, mcp.HTTPConfig{Token: token})
	status, _ := post(t, srv, strings.NewReader(goodCall), func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "made-up") })
	require.Equal(t, 200, status)
	p := dial(t, s)
	p.send(call(`1`, `echo()`))
	p.receive()
	require.NoError(t, p.finish())
	require.Empty(t, r.callers()[0].SessionID)
	require.NotContains(t, []string{"", "of-the-process"}, r.callers()[1].SessionID)
}

// The texts of all calls that have no answer yet are bounded together, over both transports.
func TestPendingBytes(t *testing.T) {
	r := newRunner()
	s := newServer(t, r, func(c *mcp.Config) { c.MaxRequests = 1 })
	srv := serveHTTP(t, s, mcp.HTTPConfig{Token: token})
	p := dial(t, s)
	const full = 1 << 20
	text := `wait(x="` + strings.Repeat("x", full-len(`wait(x="")`)) + `")`
	require.Len(t, text, full)
	p.send(call(`0`, text))
	r.starts(t)
	for i := 1; i < 16; i++ {
		p.send(call(fmt.Sprint(i), text))
	}
	p.send(call(`99`, `echo()`))
	e := p.receive()
	require.Equal(t, `99`, string(e.ID))
	require.Equal(t, -32000, e.Error.Code)
	require.Contains(t, e.Error.Message, "nothing has run, try again later")
	status, _ := post(t, srv, strings.NewReader(goodCall))
	require.Equal(t, http.StatusServiceUnavailable, status)

	p.send(cancelled(`15`))
	require.Eventually(t, func() bool { // it leaves on a goroutine of its own
		p.send(call(`100`, `echo()`), cancelled(`100`), `{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		first := p.receive()
		if string(first.ID) == `100` { // refused, so not yet
			require.Equal(t, `"next"`, string(p.receive().ID))
			return false
		}
		return string(first.ID) == `"next"`
	}, patience, time.Millisecond)
	r.free()
	for range 15 {
		require.Contains(t, string(p.receive().Result), "released")
	}
	require.NoError(t, p.finish())
}

// Large texts take a lot of memory while they run: few of them do at once, and no small one waits for
// those that wait.
func TestLargeTextsAtOnce(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	sized := func(n int) string { return `wait(x="` + strings.Repeat("x", n-len(`wait(x="")`)) + `")` }
	for i := range 3 {
		p.send(call(fmt.Sprint(i), sized(32<<10+1)))
	}
	for range 2 {
		r.starts(t)
	}
	for i := range 62 {
		p.send(call(fmt.Sprint(100+i), sized(32<<10)))
		r.starts(t)
	}
	p.alive()
	require.Empty(t, r.started, "the third waits")
	p.send(call(`200`, `wait()`)) // number sixty-five of all
	p.alive()
	p.send(cancelled(`100`))
	r.ends(t)
	r.starts(t)
	for i := range 3 { // one of them waits, or is the one that runs next
		p.send(cancelled(fmt.Sprint(i)))
	}
	for range 2 {
		r.ends(t)
	}
	r.free()
	for range 62 {
		require.Contains(t, string(p.receive().Result), "released")
	}
	require.NoError(t, p.finish())
}

// A client has a while for its body and for the answer, and then its connection is closed.
func TestHTTPSlowClients(t *testing.T) {
	closed := func(t *testing.T, s *mcp.Server) (*httptest.Server, chan struct{}) {
		h, err := s.Handler(mcp.HTTPConfig{Token: token})
		require.NoError(t, err)
		srv := httptest.NewUnstartedServer(h)
		gone := make(chan struct{}, 10)
		srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				gone <- struct{}{}
			}
		}
		srv.Start()
		t.Cleanup(srv.Close)
		return srv, gone
	}
	t.Run("ErrBody", func(t *testing.T) {
		r := newRunner()
		s := newServer(t, r)
		mcp.SetHTTPLimits(s, 20*time.Millisecond, time.Hour)
		srv, gone := closed(t, s)
		_, in := rawHTTP(t, srv.Listener.Addr().String(), rawHead(len(goodCall))+goodCall[:len(goodCall)-1])
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		await(t, gone)
		require.Empty(t, r.runs())
	})
	t.Run("ErrRefusedBody", func(t *testing.T) { // of which nothing is kept
		s := newServer(t, newRunner())
		mcp.SetHTTPLimits(s, 20*time.Millisecond, time.Hour)
		srv, gone := closed(t, s)
		_, in := rawHTTP(t, srv.Listener.Addr().String(), rawHead(8<<20+1)+"{")
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
		await(t, gone)
	})
	t.Run("ErrAnswer", func(t *testing.T) {
		s := newServer(t, newRunner())
		mcp.SetHTTPLimits(s, time.Hour, 20*time.Millisecond)
		srv, gone := closed(t, s)
		text := call(`1`, `[big(), big(), big(), big()]`)
		conn, in := rawHTTP(t, srv.Listener.Addr().String(), rawHead(len(text))+text)
		await(t, gone) // although nothing was read
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		res, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.ReadAll(res.Body)
		}
		require.Error(t, err, "it is cut off")
	})
}
