package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/verbgate/verbgate/dispatcher"
)

// Path is where the tool is served.
const Path = "/mcp"

// HTTPConfig says whom to serve over HTTP (dispatch.md 10).
type HTTPConfig struct {
	Auth  Auth
	Token string // the bearer token of AuthToken

	// AllowedHosts are Host values served beside localhost and loopback addresses: a name for any
	// port, name:port for one. AllowedOrigins are Origin values served beside the server's own.
	AllowedHosts   []string
	AllowedOrigins []string
}

// httpLimits are the time limits of one HTTP exchange. Between reading the body and writing the answer
// none applies but the request's own deadline.
type httpLimits struct{ readHead, readBody, write time.Duration }

var usualLimits = httpLimits{readHead: 10 * time.Second, readBody: 60 * time.Second, write: 60 * time.Second}

const (
	idleTimeout  = 2 * time.Minute
	maxHeadBytes = 64 << 10
	// maxDrain is how much of a refused body is read and dropped after the refusal, so that its sender,
	// still writing, gets to see it.
	maxDrain = 64 << 20
)

// Handler serves MCP over streamable HTTP at Path. There are no sessions and no server-sent streams:
// each POST is a whole, and a client that closes its connection cancels its call.
//
// Host, Origin and identity are checked on every route before a body is read.
func (s *Server) Handler(cfg HTTPConfig) (http.Handler, error) {
	g, err := newGuard(cfg)
	if err != nil {
		return nil, fmt.Errorf("mcp over http: %w", err)
	}
	caller := s.caller
	// There are no sessions here, so nothing may look like one: what many clients share is no session.
	caller.Transport, caller.SessionID = "http", ""
	if cfg.Auth == AuthNone {
		caller.Actor.Kind, caller.Actor.ID = "anonymous", "http"
		caller.Actor.Groups, caller.Actor.Claims, caller.Visible = nil, nil, nil
	}
	h := &httpHandler{server: s, guard: g, caller: caller, limits: s.httpLimits}
	h.next = server.NewStreamableHTTPServer(s.protocol,
		server.WithStateLess(true),
		server.WithDisableStreaming(true),
		// What the library logs holds panic values and pieces of messages.
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
		// guard has checked, against more than loopback names.
		server.WithDisableLocalhostProtection(true),
	)
	return h, nil
}

func (h *httpHandler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &deadlineWriter{ResponseWriter: rw, limit: h.limits.write}
	// The deadline of the answer before, on a connection that is kept, must not meet this one.
	_ = http.NewResponseController(rw).SetWriteDeadline(time.Time{})
	defer func() {
		v := recover()
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v) // net/http's own way to drop a connection
		}
		if v != nil {
			h.server.log.Error("an http handler panicked", "panic", fmt.Sprintf("%T", v))
		}
		if v != nil && w.status == 0 {
			writeMessage(w, http.StatusInternalServerError, (&refusal{code: codeInternal, message: errInternal.Error()}).encode())
		}
	}()
	if !h.guard.check(w, r) {
		h.server.log.Debug("http request refused", "status", w.status, "remote", r.RemoteAddr)
		return
	}
	if r.URL.Path != Path {
		http.Error(w, "not found: the tool is served at "+Path, http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed: send messages by POST; there are no streams and no sessions", http.StatusMethodNotAllowed)
		return
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "unsupported media type: send application/json", http.StatusUnsupportedMediaType)
		return
	}
	h.post(w, r)
}

// post handles one message. The request's head has passed every check.
func (h *httpHandler) post(w *deadlineWriter, r *http.Request) {
	text, err := h.readBody(w, r)
	switch {
	case errors.Is(err, errTooLong):
		h.refuseLong(w, r)
		return
	case err != nil:
		w.Header().Set("Connection", "close")
		http.Error(w, "bad request: the body could not be read to its end", http.StatusBadRequest)
		return
	}
	modern := mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	f, refused := inspect(text)
	if refused != nil {
		writeMessage(w, refused.status(modern), refused.encode())
		return
	}
	if f.intent == ignore || f.intent == cancel {
		// The library knows calls by session and id, and there are no sessions: passed on, a
		// cancellation would end the call of whoever uses the same id.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx, done, refused := h.server.admit(r.Context(), h.caller, f)
	defer done()
	if refused != nil {
		writeMessage(w, refused.status(modern || f.modern), refused.encode())
		return
	}
	h.next.ServeHTTP(w, h.rewrite(ctx, r, f))
	if w.status == 0 {
		// The library leaves a request whose context ended without an answer.
		stopped := &refusal{id: f.id, code: codeBusy, message: "cancelled: the server is stopping"}
		writeMessage(w, stopped.status(modern || f.modern), stopped.encode())
	}
}

// rewrite is the request as the library gets it.
func (h *httpHandler) rewrite(ctx context.Context, r *http.Request, f *frame) *http.Request {
	out := r.Clone(ctx)
	out.Header.Del(server.HeaderKeySessionID)
	out.Header.Del("Authorization")
	out.Body = io.NopCloser(bytes.NewReader(f.message))
	out.ContentLength = int64(len(f.message))
	return out
}

// httpHandler is the way of an HTTP request to the library.
type httpHandler struct {
	server *Server
	guard  *guard
	caller dispatcher.Caller
	limits httpLimits
	next   http.Handler
}

var errTooLong = errors.New("the body exceeds the limit")

// readBody reads the body within the limits of size and time. One that says itself that it is too long
// is not read.
func (h *httpHandler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	max := h.server.maxBytes
	if r.ContentLength > max {
		return nil, errTooLong
	}
	free := h.boundReading(w)
	var text bytes.Buffer
	if r.ContentLength > 0 {
		text.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(r.Body, max+1)); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if int64(text.Len()) > max {
		return nil, errTooLong
	}
	free()
	return text.Bytes(), nil
}

// boundReading sets the time within which a body must arrive; the function it returns takes the limit
// away. One that is over stays: the server itself reads what is left of a body before it closes on it.
func (h *httpHandler) boundReading(w http.ResponseWriter) (free func()) {
	ctl := http.NewResponseController(w)
	// A writer that knows no deadlines is one of a test; the server's own does.
	_ = ctl.SetReadDeadline(time.Now().Add(h.limits.readBody))
	return func() { _ = ctl.SetReadDeadline(time.Time{}) }
}

// refuseLong answers a body that is too long at once. What its sender goes on writing is dropped for a
// while: closing on it right away could destroy the answer before it was read.
func (h *httpHandler) refuseLong(w http.ResponseWriter, r *http.Request) {
	ctl := http.NewResponseController(w)
	// Without it the server may take the body away once there is an answer.
	_ = ctl.EnableFullDuplex()
	w.Header().Set("Connection", "close")
	writeMessage(w, http.StatusRequestEntityTooLarge, h.server.tooLong().encode())
	_ = ctl.Flush()
	if r.Header.Get("Expect") != "" {
		return // it has not begun to send, and now it will not
	}
	h.boundReading(w)
	_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
}

func writeMessage(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone misses nothing
}

// deadlineWriter gives every write its own deadline, so that a client that stops reading does not
// hold its answer in memory for ever, and remembers the status.
type deadlineWriter struct {
	http.ResponseWriter
	limit  time.Duration
	status int // 0 until something was written
}

// Unwrap serves http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *deadlineWriter) WriteHeader(status int) {
	w.status = status
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Flush serves the library, which streams to writers that can flush.
func (w *deadlineWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *deadlineWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.limit))
}
