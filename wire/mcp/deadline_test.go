package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/wire/mcp"
)

// overdue is the answer of a call whose time was over before its turn came: the Runner's own.
func overdue(t *testing.T, r reply) {
	t.Helper()
	require.Nil(t, r.Error)
	require.Contains(t, string(r.Result), `"code":"deadline_exceeded"`)
	require.Contains(t, string(r.Result), `"isError":true`)
}

// request.md 7: every request has a deadline, and waiting for a turn is a part of it. The calls that
// hold the turns here never look at their context, so only the waiting itself can end the others.
func TestWaitHasDeadline(t *testing.T) {
	short := func(c *mcp.Config) { c.MaxRequests, c.RequestTimeout = 1, 20*time.Millisecond }

	t.Run("OKStdioOwnTurns", func(t *testing.T) {
		r := newRunner()
		p := dial(t, newServer(t, r, short))
		p.send(call(`1`, `hold()`))
		r.starts(t)
		for i := 2; i < 6; i++ {
			p.send(call(fmt.Sprint(i), `echo()`))
		}
		for range 4 {
			overdue(t, p.receive())
		}
		p.alive()
		r.free()
		require.Contains(t, string(p.receive().Result), "released")
		require.NoError(t, p.finish())
		require.Len(t, r.runs(), 5, "the runner is told, to record it")
	})
	t.Run("OKStdioOthersTurns", func(t *testing.T) {
		r := newRunner()
		s := newServer(t, r, short)
		a, b := dial(t, s), dial(t, s)
		a.send(call(`1`, `hold()`))
		r.starts(t)
		b.send(call(`1`, `echo()`))
		overdue(t, b.receive())
		r.free()
		a.receive()
		require.NoError(t, a.finish())
		require.NoError(t, b.finish())
	})
	t.Run("OKHTTP", func(t *testing.T) {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			r := newRunner()
			s := newServer(t, r, short)
			srv := serveHTTP(t, s, mcp.HTTPConfig{Token: token})
			p := dial(t, s)
			p.send(call(`1`, `hold()`))
			r.starts(t)
			status, text := post(t, srv, strings.NewReader(eraCall(version, `7`, `echo()`)), func(req *http.Request) {
				req.Header.Set("Mcp-Protocol-Version", version)
				req.Header.Set("Mcp-Method", "tools/call")
				req.Header.Set("Mcp-Name", "request")
			})
			require.Equal(t, 200, status, text)
			answer := readReply(t, text)
			require.Equal(t, `7`, string(answer.ID))
			overdue(t, answer)
			r.free()
			p.receive()
			require.NoError(t, p.finish())
		}
	})
}

// clock notes the deadline of every request.
type clock struct{ deadlines chan time.Duration }

func (c clock) RecordParseError(context.Context, dispatcher.Caller, *request.Error) {}

func (c clock) Run(ctx context.Context, _ dispatcher.Caller, req *request.Request) *dispatcher.Envelope {
	at, ok := ctx.Deadline()
	if !ok {
		at = time.Time{}
	}
	c.deadlines <- time.Until(at)
	return &dispatcher.Envelope{Results: []dispatcher.Entry{{OK: true, Tool: req.Ops[0].Tool, Result: json.RawMessage(`1`)}}}
}

func TestRequestTimeout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given time.Duration
		want  time.Duration
	}{
		{"OKDefault", 0, mcp.DefaultRequestTimeout},
		{"OKGiven", time.Hour, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clock{make(chan time.Duration, 1)}
			p := dial(t, newServer(t, c, func(cfg *mcp.Config) { cfg.RequestTimeout = tt.given }))
			p.send(call(`1`, `echo()`))
			p.receive()
			left := <-c.deadlines
			require.LessOrEqual(t, left, tt.want)
			require.Greater(t, left, tt.want/2)
			require.NoError(t, p.finish())
		})
	}
}
