package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// pipe is a client at the other end of ServeStdio that knows nothing but lines.
type pipe struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	outEnd *io.PipeReader
	result chan error
	stop   context.CancelFunc
}

func dial(t *testing.T, s *mcp.Server) *pipe {
	ctx, stop := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), outEnd: outR, result: make(chan error, 1), stop: stop}
	go func() {
		p.result <- s.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	// A server that does not answer fails the test that waits for it.
	tired := time.AfterFunc(4*patience, func() {
		_ = outW.CloseWithError(errors.New("no answer came"))
		_ = inR.CloseWithError(io.ErrClosedPipe)
	})
	t.Cleanup(func() {
		tired.Stop()
		stop()
		inW.Close()
		outR.Close()
	})
	return p
}

func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		_, err := io.WriteString(p.in, l+"\n")
		require.NoError(p.t, err)
	}
}

// reply is any JSON-RPC message of the server.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (p *pipe) receive() reply {
	p.t.Helper()
	text, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	return readReply(p.t, text)
}

func readReply(t testing.TB, text string) reply {
	t.Helper()
	var r reply
	require.NoError(t, json.Unmarshal([]byte(text), &r), "%s", text)
	require.Equal(t, "2.0", r.JSONRPC)
	return r
}

// alive checks that the connection answers.
func (p *pipe) alive() {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`)
	require.Equal(p.t, `"alive"`, string(p.receive().ID))
}

// finish ends the client's side and waits for the server's.
func (p *pipe) finish() error {
	p.t.Helper()
	require.NoError(p.t, p.in.Close())
	rest, err := io.ReadAll(p.out)
	require.NoError(p.t, err)
	require.Empty(p.t, string(rest))
	return <-p.result
}

func call(id, ops string) string {
	text, err := json.Marshal(ops)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"request","arguments":{"ops":%s}}}`, id, text)
}

func cancelled(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func TestStdioConversation(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	hello := p.receive()
	require.JSONEq(t, `0`, string(hello.ID))
	require.Contains(t, string(hello.Result), `"protocolVersion":"2025-11-25"`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``, "\r", call(`"a"`, `echo(x=1)`))
	require.Equal(t, `"a"`, string(p.receive().ID))
	require.NoError(t, p.finish())
	require.Equal(t, []string{"user:ada mcp stdio echo"}, r.runs())
	require.NotEmpty(t, r.callers()[0].SessionID)
	require.Equal(t, []string{"team"}, r.callers()[0].Visible)
}

// Two connections are two sessions.
func TestStdioSessionIDs(t *testing.T) {
	r := newRunner()
	s := newServer(t, r)
	for range 2 {
		p := dial(t, s)
		p.send(call(`1`, `echo()`))
		p.receive()
		require.NoError(t, p.finish())
	}
	require.NotEqual(t, r.callers()[0].SessionID, r.callers()[1].SessionID)
}

// fc-001, fc-002: every bad line gets its answer, nothing on it runs, and the next line is served.
func TestStdioBadLines(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	for _, tt := range refused {
		if strings.TrimSpace(tt.text) == "" || strings.Contains(tt.text, "\n") {
			continue
		}
		p.send(tt.text)
		e := p.receive()
		require.NotNil(t, e.Error, tt.name)
		require.Equal(t, tt.code, e.Error.Code, tt.name)
		p.alive()
	}
	require.NoError(t, p.finish())
	require.Empty(t, r.runs())
}

func TestStdioLastLineWithoutLineFeed(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	go func() {
		_, _ = io.WriteString(p.in, call("1", "echo()"))
		p.in.Close()
	}()
	require.Equal(t, `1`, string(p.receive().ID))
	require.NoError(t, <-p.result)
}

// fc-007: the limit is exact, what exceeds it is not kept, and the connection goes on.
func TestStdioLineLimit(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r, func(c *mcp.Config) { c.MaxBytes = 1000 }))
	pad := func(n int) string {
		head := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`
		return head + strings.Repeat("x", n-len(head)-3) + `"}}`
	}
	p.send(pad(1000))
	require.Nil(t, p.receive().Error)
	p.send(pad(1000) + "\r")
	require.Nil(t, p.receive().Error)
	for _, n := range []int{1001, 64 << 10, 200 << 10} {
		p.send(pad(n))
		e := p.receive()
		require.NotNil(t, e.Error)
		require.Equal(t, -32600, e.Error.Code)
		require.Equal(t, "null", string(e.ID))
		require.Contains(t, e.Error.Message, "longer than 1000 bytes")
		p.alive()
	}
	require.NoError(t, p.finish())
}

func TestStdioLargeLines(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	for _, size := range []int{100 << 10, 1 << 20, 7 << 20} {
		p.send(callText(`{"ops":"echo()","x":"` + strings.Repeat("x", size) + `"}`))
		require.Contains(t, p.receive().Error.Message, `unknown argument "x"`)
	}
	p.send(strings.Repeat("[", 33<<20))
	require.Contains(t, p.receive().Error.Message, "longer than 8388608 bytes")
	p.send(call("1", "big()"))
	require.Nil(t, p.receive().Error)
	require.NoError(t, p.finish())
}

func TestStdioParseError(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	p.send(call(`7`, `a b`))
	e := p.receive()
	require.Equal(t, `7`, string(e.ID))
	require.Equal(t, -32602, e.Error.Code)
	require.Contains(t, e.Error.Message, "^", "the message shows the place")
	var data struct {
		Reason, Kind string
		Pos          *int
	}
	require.NoError(t, json.Unmarshal(e.Error.Data, &data))
	require.Equal(t, "parse-error", data.Reason)
	require.NotEmpty(t, data.Kind)
	require.NotNil(t, data.Pos)
	require.NoError(t, p.finish())
	require.Empty(t, r.runs())
	require.Len(t, r.parseErrors(), 1)
	require.Equal(t, string(r.parseErrors()[0].Kind), data.Kind)
}

// fc-013: a cancelled call ends, gets no answer, and the session lives on.
func TestStdioCancel(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	p.send(call(`7`, `wait()`), call(`"7"`, `wait()`), call(`8`, `wait()`))
	for range 3 {
		r.starts(t)
	}
	p.send(cancelled(`"7"`))
	r.ends(t)
	p.alive()
	p.send(cancelled(`99`), cancelled(`{}`), cancelled(`"7"`)) // nobody's calls
	p.alive()
	require.Empty(t, r.ended)
	// The id is free again, and the new call of that id is a call of its own.
	p.send(call(`"7"`, `echo()`))
	require.Equal(t, `"7"`, string(p.receive().ID))
	r.free()
	ids := []string{string(p.receive().ID), string(p.receive().ID)}
	require.ElementsMatch(t, []string{`7`, `8`}, ids)
	require.NoError(t, p.finish())
}

// fc-010: a client cannot reach the calls of another.
func TestStdioEqualIDs(t *testing.T) {
	r := newRunner()
	s := newServer(t, r)
	a, b := dial(t, s), dial(t, s)
	a.send(call(`7`, `wait()`))
	b.send(call(`7`, `wait()`))
	r.starts(t)
	r.starts(t)
	b.send(cancelled(`7`))
	r.ends(t)
	b.alive()
	a.alive()
	require.Empty(t, r.ended)
	r.free()
	require.Equal(t, `7`, string(a.receive().ID))
	require.NoError(t, a.finish())
	require.NoError(t, b.finish())
}

func TestStdioDuplicateID(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	p.send(call(`7`, `wait()`))
	r.starts(t)
	p.send(call(`7`, `echo()`))
	e := p.receive()
	require.Equal(t, "null", string(e.ID))
	require.Contains(t, e.Error.Message, "the id 7 is under way")
	r.free()
	require.Equal(t, `7`, string(p.receive().ID))
	require.NoError(t, p.finish())
	require.Len(t, r.runs(), 1)
}

// The limit of requests at once holds back calls and nothing else: cancellations and pings pass.
func TestStdioTurns(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r, func(c *mcp.Config) { c.MaxRequests = 2 }))
	p.send(call(`1`, `wait()`), call(`2`, `wait()`))
	r.starts(t)
	r.starts(t)
	for i := 10; i < 200; i++ {
		p.send(call(fmt.Sprint(i), `wait()`))
	}
	p.alive()
	require.Empty(t, r.started)
	for i := 10; i < 200; i++ {
		p.send(cancelled(fmt.Sprint(i))) // while they wait: they never run
	}
	p.alive()
	p.send(cancelled(`1`))
	r.ends(t)
	p.send(call(`3`, `wait()`))
	r.starts(t)
	r.free()
	require.ElementsMatch(t, []string{`2`, `3`}, []string{string(p.receive().ID), string(p.receive().ID)})
	require.NoError(t, p.finish())
	require.Len(t, r.runs(), 3)
}

// The limit of requests at once is one for all connections of both transports.
func TestTurnsAreShared(t *testing.T) {
	r := newRunner()
	s := newServer(t, r, func(c *mcp.Config) { c.MaxRequests = 2 })
	srv := serveHTTP(t, s, mcp.HTTPConfig{Token: token})
	a, b := dial(t, s), dial(t, s)
	a.send(call(`1`, `wait()`))
	b.send(call(`1`, `wait()`))
	r.starts(t)
	r.starts(t)
	third := make(chan string, 1)
	go func() {
		_, text := post(t, srv, strings.NewReader(call(`1`, `wait()`)))
		third <- text
	}()
	b.send(call(`2`, `wait()`))
	a.alive()
	b.alive()
	require.Empty(t, r.started)
	a.send(cancelled(`1`))
	r.ends(t)
	r.starts(t) // one of the two that waited
	require.Empty(t, r.started)
	r.free()
	require.Contains(t, <-third, "released")
	require.ElementsMatch(t, []string{`1`, `2`}, []string{string(b.receive().ID), string(b.receive().ID)})
	require.NoError(t, a.finish())
	require.NoError(t, b.finish())
}

// More than one process can hold is refused, with the id of the call.
func TestStdioTooManyWaiting(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r, func(c *mcp.Config) { c.MaxRequests = 1 }))
	p.send(call(`1`, `wait()`))
	r.starts(t)
	for i := 2; i <= 4096; i++ {
		p.send(call(fmt.Sprint(i), `wait()`))
	}
	p.send(call(`5000`, `wait()`))
	e := p.receive()
	require.Equal(t, `5000`, string(e.ID))
	require.Equal(t, -32000, e.Error.Code)
	for i := 2; i <= 4096; i++ {
		p.send(cancelled(fmt.Sprint(i)))
	}
	p.alive()
	r.free()
	require.Equal(t, `1`, string(p.receive().ID))
	require.NoError(t, p.finish())
	require.Len(t, r.runs(), 1)
}

// The end of the input lets calls finish, the end of the context lets them finish for a while.
func TestStdioEnd(t *testing.T) {
	draining := func(d time.Duration) func(*mcp.Config) { return func(c *mcp.Config) { c.DrainTimeout = d } }
	t.Run("OKEndOfInput", func(t *testing.T) {
		r := newRunner()
		p := dial(t, newServer(t, r))
		p.send(call(`1`, `wait()`))
		r.starts(t)
		require.NoError(t, p.in.Close())
		r.free()
		require.Contains(t, string(p.receive().Result), "released")
		require.NoError(t, <-p.result)
	})
	t.Run("OKDrains", func(t *testing.T) {
		r := newRunner()
		log := newLog()
		p := dial(t, newServer(t, r, draining(time.Hour), log.into))
		p.send(call(`1`, `wait()`))
		r.starts(t)
		p.stop()
		log.await(t, "mcp requests under way may finish")
		require.Empty(t, r.ended)
		p.send(call(`2`, `echo()`)) // nobody looks at it any more
		r.free()
		require.Equal(t, `1`, string(p.receive().ID))
		require.NoError(t, <-p.result)
		require.Len(t, r.runs(), 1)
	})
	t.Run("OKCancelsLate", func(t *testing.T) {
		r := newRunner()
		p := dial(t, newServer(t, r, draining(time.Nanosecond)))
		p.send(call(`1`, `wait()`))
		r.starts(t)
		p.stop()
		r.ends(t)
		require.Contains(t, string(p.receive().Result), `"code":"cancelled"`)
		require.NoError(t, <-p.result)
	})
	t.Run("OKEndOfInputThenOfContext", func(t *testing.T) {
		r := newRunner()
		log := newLog()
		p := dial(t, newServer(t, r, draining(time.Hour), log.into))
		p.send(call(`1`, `wait()`))
		r.starts(t)
		require.NoError(t, p.in.Close())
		log.await(t, "the mcp client has closed its side")
		p.stop()
		r.ends(t)
		require.Contains(t, string(p.receive().Result), `"code":"cancelled"`)
		require.NoError(t, <-p.result)
	})
	t.Run("ErrClientGone", func(t *testing.T) {
		r := newRunner()
		p := dial(t, newServer(t, r))
		p.send(call(`1`, `wait()`))
		r.starts(t)
		require.NoError(t, p.outEnd.CloseWithError(errors.New("gone")))
		p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		r.ends(t) // a client that cannot be answered has its calls cancelled
		require.ErrorContains(t, <-p.result, "write to the mcp client: gone")
	})
	t.Run("ErrRead", func(t *testing.T) {
		p := dial(t, newServer(t, newRunner()))
		require.NoError(t, p.in.CloseWithError(errors.New("torn")))
		require.ErrorContains(t, <-p.result, "read from the mcp client: torn")
	})
}

// fc-104: a panic, a Goexit, a missing answer and one that does not encode are all "internal".
func TestStdioInternal(t *testing.T) {
	r := newRunner()
	p := dial(t, newServer(t, r))
	for _, op := range []string{"crash()", "goexit()", "nothing()", "unencodable()"} {
		p.send(call(`1`, op))
		e := p.receive()
		require.NotNil(t, e.Error, op)
		require.Equal(t, -32603, e.Error.Code)
		require.Equal(t, "internal", e.Error.Message)
		p.alive()
	}
	require.NoError(t, p.finish())
}

// Protocol 2026-07-28 over stdio, at the level of lines.
func TestStdioModern(t *testing.T) {
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	p := dial(t, newServer(t, newRunner()))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + meta + `}`)
	require.Contains(t, string(p.receive().Result), `"2026-07-28"`)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":` + meta + `}`)
	require.Equal(t, "notifications/subscriptions/acknowledged", p.receive().Method)
	require.Equal(t, `2`, string(p.receive().ID))
	p.send(`{"jsonrpc":"2.0","id":3,"method":"ping","params":` + meta + `}`)
	require.Equal(t, -32601, p.receive().Error.Code, "ping is gone in that revision")
	p.send(strings.Replace(call(`4`, `echo()`), `"params":{`, `"params":{`+meta[1:len(meta)-1]+`,`, 1))
	require.Contains(t, string(p.receive().Result), `"resultType":"complete"`)
	require.NoError(t, p.finish())
}
