package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

const token = "0123456789abcdef0123456789abcdef"

func serveHTTP(t testing.TB, s *mcp.Server, cfg mcp.HTTPConfig) *httptest.Server {
	t.Helper()
	h, err := s.Handler(cfg)
	require.NoError(t, err)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.Client().CloseIdleConnections)
	return srv
}

// unread is a body that must not be touched.
type unread struct{ read atomic.Bool }

func (u *unread) Read([]byte) (int, error) { u.read.Store(true); return 0, io.EOF }

const goodCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"request","arguments":{"ops":"echo()"}}}`

// fc-020, fc-088, fc-094: who is not heard, on which route whatever.
func TestGuard(t *testing.T) {
	bearer := "Bearer " + token
	type head struct {
		host, path, method string
		auth, origin       []string
	}
	tests := []struct {
		name   string
		head   head
		config mcp.HTTPConfig
		status int
	}{
		{"OK", head{}, mcp.HTTPConfig{}, 200},
		{"OKLocalhost", head{host: "localhost:4711"}, mcp.HTTPConfig{}, 200},
		{"OKLocalhostUpper", head{host: "LOCALHOST"}, mcp.HTTPConfig{}, 200},
		{"OKLoopback", head{host: "127.0.0.1"}, mcp.HTTPConfig{}, 200},
		{"OKLoopback2", head{host: "127.8.8.8:80"}, mcp.HTTPConfig{}, 200},
		{"OKLoopback6", head{host: "[::1]:80"}, mcp.HTTPConfig{}, 200},
		{"OKLoopback6NoPort", head{host: "[::1]"}, mcp.HTTPConfig{}, 200},
		{"OKHostAllowed", head{host: "gate.example:4711"}, mcp.HTTPConfig{AllowedHosts: []string{"Gate.example"}}, 200},
		{"OKHostAllowedPort", head{host: "gate.example:4711"}, mcp.HTTPConfig{AllowedHosts: []string{"gate.example:4711"}}, 200},
		{"ErrHost", head{host: "evil.example"}, mcp.HTTPConfig{}, 403},
		{"ErrHostDot", head{host: "localhost."}, mcp.HTTPConfig{}, 403},
		{"ErrHostNip", head{host: "127.0.0.1.nip.io"}, mcp.HTTPConfig{}, 403},
		{"ErrHostSuffix", head{host: "evil-localhost"}, mcp.HTTPConfig{}, 403},
		{"ErrHostPrefix", head{host: "localhost.evil.example"}, mcp.HTTPConfig{}, 403},
		{"ErrHostUser", head{host: "localhost@evil.example"}, mcp.HTTPConfig{}, 403},
		{"ErrHostAny", head{host: "0.0.0.0"}, mcp.HTTPConfig{}, 403},
		{"ErrHostDecimal", head{host: "2130706433"}, mcp.HTTPConfig{}, 403},
		{"ErrHostHex", head{host: "0x7f000001"}, mcp.HTTPConfig{}, 403},
		{"ErrHostZone", head{host: "[::1%25lo]:80"}, mcp.HTTPConfig{}, 403},
		{"ErrHostPort", head{host: "localhost:http"}, mcp.HTTPConfig{}, 403},
		{"ErrHostTwoPorts", head{host: "localhost:80:80"}, mcp.HTTPConfig{}, 403},
		{"ErrHostOtherPort", head{host: "gate.example:1"}, mcp.HTTPConfig{AllowedHosts: []string{"gate.example:4711"}}, 403},
		{"ErrHostEmpty", head{host: "-"}, mcp.HTTPConfig{}, 403},
		{"OKOriginOwn", head{host: "localhost:4711", origin: []string{"http://localhost:4711"}}, mcp.HTTPConfig{}, 200},
		{"OKOriginAllowed", head{origin: []string{"https://app.example"}}, mcp.HTTPConfig{AllowedOrigins: []string{"https://app.example"}}, 200},
		{"ErrOrigin", head{origin: []string{"http://evil.example"}}, mcp.HTTPConfig{}, 403},
		{"ErrOriginNull", head{origin: []string{"null"}}, mcp.HTTPConfig{}, 403},
		{"ErrOriginEmpty", head{origin: []string{""}}, mcp.HTTPConfig{}, 403},
		{"ErrOriginTwo", head{host: "localhost", origin: []string{"http://localhost", "http://localhost"}}, mcp.HTTPConfig{}, 403},
		{"ErrOriginOtherPort", head{host: "localhost:4711", origin: []string{"http://localhost:3000"}}, mcp.HTTPConfig{}, 403},
		{"ErrOriginScheme", head{host: "localhost:4711", origin: []string{"https://localhost:4711"}}, mcp.HTTPConfig{}, 403},
		{"OKSchemeCase", head{auth: []string{"bEARER " + token}}, mcp.HTTPConfig{}, 200},
		{"OKTwoSpaces", head{auth: []string{"Bearer  " + token}}, mcp.HTTPConfig{}, 200},
		{"ErrNoToken", head{auth: []string{}}, mcp.HTTPConfig{}, 401},
		{"ErrEmptyHeader", head{auth: []string{""}}, mcp.HTTPConfig{}, 401},
		{"ErrEmptyToken", head{auth: []string{"Bearer "}}, mcp.HTTPConfig{}, 401},
		{"ErrOnlyScheme", head{auth: []string{"Bearer"}}, mcp.HTTPConfig{}, 401},
		{"ErrWrongToken", head{auth: []string{"Bearer " + strings.ToUpper(token)}}, mcp.HTTPConfig{}, 401},
		{"ErrPrefix", head{auth: []string{"Bearer " + token[:31]}}, mcp.HTTPConfig{}, 401},
		{"ErrLonger", head{auth: []string{"Bearer " + token + "0"}}, mcp.HTTPConfig{}, 401},
		{"ErrTrailing", head{auth: []string{"Bearer " + token + ", Bearer x"}}, mcp.HTTPConfig{}, 401},
		{"ErrScheme", head{auth: []string{"Basic " + token}}, mcp.HTTPConfig{}, 401},
		{"ErrNoScheme", head{auth: []string{token}}, mcp.HTTPConfig{}, 401},
		{"ErrTwoHeaders", head{auth: []string{bearer, bearer}}, mcp.HTTPConfig{}, 401},
		{"ErrTwoHeadersOneWrong", head{auth: []string{bearer, "Bearer x"}}, mcp.HTTPConfig{}, 401},
		{"ErrPathUnknown", head{path: "/mcp/xyz"}, mcp.HTTPConfig{}, 404},
		{"ErrPathCase", head{path: "/MCP"}, mcp.HTTPConfig{}, 404},
		{"ErrPathSlashes", head{path: "//mcp"}, mcp.HTTPConfig{}, 404},
		{"ErrPathSlash", head{path: "/mcp/"}, mcp.HTTPConfig{}, 404},
		{"ErrPathRoot", head{path: "/"}, mcp.HTTPConfig{}, 404},
		{"ErrPathDots", head{path: "/x/../mcp"}, mcp.HTTPConfig{}, 404},
		{"ErrPathNeedsToken", head{path: "/", auth: []string{}}, mcp.HTTPConfig{}, 401},
		{"ErrPathNeedsHost", head{path: "/", host: "evil.example", auth: []string{}}, mcp.HTTPConfig{}, 403},
		{"ErrPathNeedsOrigin", head{path: "/.well-known/oauth-protected-resource", origin: []string{"null"}, auth: []string{}}, mcp.HTTPConfig{}, 403},
		{"ErrGet", head{method: "GET"}, mcp.HTTPConfig{}, 405},
		{"ErrDelete", head{method: "DELETE"}, mcp.HTTPConfig{}, 405},
		{"ErrHead", head{method: "HEAD"}, mcp.HTTPConfig{}, 405},
		{"ErrOptions", head{method: "OPTIONS"}, mcp.HTTPConfig{}, 405},
		{"ErrGetNeedsToken", head{method: "GET", auth: []string{}}, mcp.HTTPConfig{}, 401},
		{"ErrOptionsNeedsToken", head{method: "OPTIONS", auth: []string{}}, mcp.HTTPConfig{}, 401},
		{"ErrDeleteNeedsHost", head{method: "DELETE", host: "evil.example"}, mcp.HTTPConfig{}, 403},
		{"OKAnonymous", head{auth: []string{}}, mcp.HTTPConfig{Auth: mcp.AuthNone}, 200},
		{"ErrAnonymousHost", head{auth: []string{}, host: "evil.example"}, mcp.HTTPConfig{Auth: mcp.AuthNone}, 403},
		{"ErrAnonymousOrigin", head{auth: []string{}, origin: []string{"null"}}, mcp.HTTPConfig{Auth: mcp.AuthNone}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner()
			if tt.config.Auth == mcp.AuthToken {
				tt.config.Token = token
			}
			h, err := newServer(t, r).Handler(tt.config)
			require.NoError(t, err)
			method, path := tt.head.method, tt.head.path
			if method == "" {
				method = http.MethodPost
			}
			if path == "" {
				path = mcp.Path
			}
			touched := &unread{}
			var body io.Reader = touched
			if tt.status == 200 {
				body = strings.NewReader(goodCall)
			}
			req := httptest.NewRequest(method, "http://127.0.0.1"+path, body)
			local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, local))
			req.Header.Set("Content-Type", "application/json")
			req.Header["Authorization"] = []string{bearer}
			if tt.head.auth != nil {
				req.Header["Authorization"] = tt.head.auth
			}
			if tt.head.origin != nil {
				req.Header["Origin"] = tt.head.origin
			}
			switch tt.head.host {
			case "":
			case "-":
				req.Host = ""
			default:
				req.Host = tt.head.host
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			require.Equal(t, tt.status, w.Code, w.Body)
			require.False(t, touched.read.Load(), "the body is not read")
			switch tt.status {
			case 200:
				require.Len(t, r.runs(), 1)
				want := "user:ada mcp http echo"
				if tt.config.Auth == mcp.AuthNone {
					want = "anonymous:http mcp http echo"
					require.Empty(t, r.callers()[0].Visible)
					require.Empty(t, r.callers()[0].Actor.Groups)
				}
				require.Equal(t, want, r.runs()[0])
			case 401:
				require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
				fallthrough
			default:
				require.Empty(t, r.runs())
				require.NotContains(t, w.Body.String(), token)
			}
			if tt.status == 405 {
				require.Equal(t, "POST", w.Header().Get("Allow"))
			}
		})
	}
}

// An anonymous caller from beyond loopback is refused even if somebody listens there.
func TestGuardAnonymousRemote(t *testing.T) {
	h, err := newServer(t, newRunner()).Handler(mcp.HTTPConfig{Auth: mcp.AuthNone})
	require.NoError(t, err)
	req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(goodCall))
	req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	require.Equal(t, http.StatusForbidden, w.Code)
}

func TestHandlerConfig(t *testing.T) {
	tests := []struct {
		name string
		cfg  mcp.HTTPConfig
		want string
	}{
		{"ErrNoToken", mcp.HTTPConfig{}, "at least 16"},
		{"ErrShortToken", mcp.HTTPConfig{Token: "short"}, "at least 16"},
		{"ErrTokenUnused", mcp.HTTPConfig{Auth: mcp.AuthNone, Token: token}, "choose one"},
		{"ErrAuth", mcp.HTTPConfig{Auth: 9, Token: token}, "unknown authentication"},
		{"ErrHostURL", mcp.HTTPConfig{Token: token, AllowedHosts: []string{"http://x"}}, `allowed host "http://x"`},
		{"ErrHostStar", mcp.HTTPConfig{Token: token, AllowedHosts: []string{"*"}}, `allowed host "*"`},
		{"ErrOriginPath", mcp.HTTPConfig{Token: token, AllowedOrigins: []string{"https://x/"}}, `allowed origin "https://x/"`},
		{"ErrOriginStar", mcp.HTTPConfig{Token: token, AllowedOrigins: []string{"*"}}, `allowed origin "*"`},
		{"ErrOriginNull", mcp.HTTPConfig{Token: token, AllowedOrigins: []string{"null"}}, `allowed origin "null"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newServer(t, newRunner()).Handler(tt.cfg)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), token)
		})
	}
}

// post sends a message as an HTTP client would and returns status and body.
func post(t testing.TB, srv *httptest.Server, body io.Reader, change ...func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, srv.URL+mcp.Path, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	for _, c := range change {
		c(req)
	}
	res, err := srv.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// Every refusal of the filter is the same over HTTP; only the status depends on the era.
func TestHTTPBadMessages(t *testing.T) {
	r := newRunner()
	srv := serveHTTP(t, newServer(t, r), mcp.HTTPConfig{Token: token})
	for _, tt := range refused {
		for _, modern := range []bool{false, true} {
			status, text := post(t, srv, strings.NewReader(tt.text), func(req *http.Request) {
				if modern {
					req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
				}
			})
			e := readError(t, []byte(text))
			require.Equal(t, tt.code, e.Error.Code, tt.name)
			require.Equal(t, tt.id, string(e.ID), tt.name)
			want := http.StatusBadRequest
			switch {
			case tt.id != "null" && !modern:
				want = http.StatusOK
			case tt.code == -32601:
				want = http.StatusNotFound
			}
			require.Equal(t, want, status, tt.name)
		}
	}
	require.Empty(t, r.runs())
}

func TestHTTPParseError(t *testing.T) {
	r := newRunner()
	srv := serveHTTP(t, newServer(t, r), mcp.HTTPConfig{Token: token})
	status, text := post(t, srv, strings.NewReader(call(`"x"`, `a b`)))
	require.Equal(t, 200, status)
	e := readError(t, []byte(text))
	require.Equal(t, -32602, e.Error.Code)
	require.Contains(t, string(e.Error.Data), `"reason":"parse-error"`)
	require.Len(t, r.parseErrors(), 1)
	require.Empty(t, r.runs())
}

// fc-007 over HTTP.
func TestHTTPBodyLimit(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	const limit = 8 << 20
	pad := func(n int) []byte {
		head := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`
		return append(append([]byte(head), bytes.Repeat([]byte("x"), n-len(head)-3)...), `"}}`...)
	}
	chunked := func(req *http.Request) { req.ContentLength = -1 }
	for _, how := range [][]func(*http.Request){nil, {chunked}} {
		status, _ := post(t, srv, bytes.NewReader(pad(limit)), how...)
		require.Equal(t, 200, status)
		for _, size := range []int{limit + 1, 33 << 20} {
			status, text := post(t, srv, bytes.NewReader(pad(size)), how...)
			require.Equal(t, http.StatusRequestEntityTooLarge, status)
			e := readError(t, []byte(text))
			require.Contains(t, e.Error.Message, strconv.Itoa(limit))
		}
	}
	status, _ := post(t, srv, strings.NewReader(goodCall))
	require.Equal(t, 200, status)
}

func TestHTTPContentType(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	for _, ct := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ";"} {
		status, _ := post(t, srv, strings.NewReader(goodCall), func(r *http.Request) { r.Header.Set("Content-Type", ct) })
		require.Equal(t, http.StatusUnsupportedMediaType, status, ct)
	}
	status, _ := post(t, srv, strings.NewReader(goodCall), func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON; charset=utf-8") })
	require.Equal(t, 200, status)
}

// fc-010, fc-011: a notification is accepted, whatever it lacks, and reaches nobody's calls; two
// clients with equal ids do not meet.
func TestHTTPNotifications(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			r := newRunner()
			srv := serveHTTP(t, newServer(t, r), mcp.HTTPConfig{Token: token})
			set := func(req *http.Request) {
				req.Header.Set("Mcp-Protocol-Version", version)
				req.Header.Set("Mcp-Method", "tools/call")
				req.Header.Set("Mcp-Name", "request")
			}
			waiting := eraCall(version, `7`, `wait()`)
			texts := make(chan string, 2)
			for range 2 {
				go func() {
					_, text := post(t, srv, strings.NewReader(waiting), set)
					texts <- text
				}()
			}
			r.starts(t)
			r.starts(t)
			for _, n := range []string{cancelled(`7`), cancelled(`"7"`), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`} {
				status, text := post(t, srv, strings.NewReader(n), set)
				require.Equal(t, http.StatusAccepted, status)
				require.Empty(t, text)
			}
			require.Empty(t, r.ended)
			r.free()
			require.Contains(t, <-texts, "released")
			require.Contains(t, <-texts, "released")
		})
	}
}

// eraCall is a call as clients of the revision send it.
func eraCall(version, id, ops string) string {
	text := call(id, ops)
	if version >= "2026" {
		text = strings.Replace(text, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+version+`","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
	}
	return text
}

// fc-014: a closed connection cancels its call and no other, in both eras.
func TestHTTPDisconnect(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			r := newRunner()
			srv := serveHTTP(t, newServer(t, r), mcp.HTTPConfig{Token: token})
			start := func() context.CancelFunc {
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+mcp.Path, strings.NewReader(eraCall(version, `7`, `wait()`)))
					if err != nil {
						panic(err)
					}
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Authorization", "Bearer "+token)
					req.Header.Set("Mcp-Protocol-Version", version)
					req.Header.Set("Mcp-Method", "tools/call")
					req.Header.Set("Mcp-Name", "request")
					if res, err := srv.Client().Do(req); err == nil {
						res.Body.Close()
					}
				}()
				r.starts(t)
				return cancel
			}
			leave, stay := start(), start()
			defer stay()
			leave()
			r.ends(t)
			status, _ := post(t, srv, strings.NewReader(goodCall))
			require.Equal(t, 200, status)
			require.Empty(t, r.ended)
			r.free()
		})
	}
}

// fc-016, fc-017, fc-019, fc-119: no session is made, asked for or believed.
func TestHTTPStateless(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	req, err := http.NewRequest(http.MethodPost, srv.URL+mcp.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := srv.Client().Do(req)
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
	require.Empty(t, res.Header.Get("Mcp-Session-Id"))

	status, _ := post(t, srv, strings.NewReader(goodCall), func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "mcp-session-of-another-life") })
	require.Equal(t, 200, status)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		status, _ := post(t, srv, nil, func(r *http.Request) {
			r.Method = method
			r.Header.Set("Mcp-Session-Id", "made-up")
			r.Header.Set("Accept", "text/event-stream")
		})
		require.Equal(t, http.StatusMethodNotAllowed, status)
	}
}

// What revision 2026-07-28 took out is gone there, whatever params it comes with.
func TestHTTPModernRemoved(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	for _, method := range []string{"initialize", "ping", "logging/setLevel"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		status, text := post(t, srv, strings.NewReader(body), func(r *http.Request) {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", method)
		})
		require.Equal(t, http.StatusNotFound, status, method)
		require.Equal(t, -32601, readError(t, []byte(text)).Error.Code, method)
	}
}

func TestHTTPInternal(t *testing.T) {
	srv := serveHTTP(t, newServer(t, newRunner()), mcp.HTTPConfig{Token: token})
	for _, op := range []string{"crash()", "goexit()", "nothing()", "unencodable()"} {
		status, text := post(t, srv, strings.NewReader(call(`1`, op)))
		require.Equal(t, 200, status)
		e := readError(t, []byte(text))
		require.Equal(t, -32603, e.Error.Code)
		require.Equal(t, "internal", e.Error.Message)
	}
}
