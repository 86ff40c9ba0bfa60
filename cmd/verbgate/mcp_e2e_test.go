package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMCP drives the built program with each client, over both transports, in both protocol eras.
func TestMCP(t *testing.T) {
	for _, way := range mcpWays() {
		t.Run(way.name, func(t *testing.T) {
			p := newProgram(t)
			if way.http {
				p.serveHTTP("--log-level", "debug")
			}
			c := way.connect(p)
			defer func() { require.NoError(t, c.close()) }()
			require.True(t, strings.HasSuffix(way.name, c.version()), "speaks %s", c.version())
			testMCPSession(t, p, c)
			testMCPCancel(t, p, c)
		})
	}
}

func ops(text string) map[string]any { return map[string]any{"ops": text} }

func testMCPSession(t *testing.T, p *mcpProgram, c mcpSession) {
	list, err := c.list(t.Context())
	require.NoError(t, err)
	require.Contains(t, list, `"name":"request"`)
	require.Contains(t, list, "probe.echo(", "the description lists the verbs")
	require.NotContains(t, list, "probe.inner", "and no internal ones")
	require.Contains(t, list, `"destructiveHint":true`)

	good, err := c.call(t.Context(), ops(`[probe.echo(n=9007199254740993, text="<é😀>"), probe.echo(value=null)]`))
	require.NoError(t, err)
	require.False(t, good.IsError)
	env := good.envelope(t)
	require.Equal(t, "success", env.Status)
	require.JSONEq(t, `{"n":9007199254740993,"text":"<é😀>"}`, string(env.Results[0].Result))
	require.Contains(t, good.Content[0].Text, "9007199254740993")
	ids, ok := good.Meta["verbgate/decision_ids"].([]any)
	require.True(t, ok, good.Meta)
	require.Len(t, ids, 2)
	require.NotEmpty(t, ids[0])
	require.NotEqual(t, ids[0], ids[1])

	denied, err := c.call(t.Context(), ops(`probe.echo(text="x", namespace="elsewhere")`))
	require.NoError(t, err)
	require.True(t, denied.IsError)
	env = denied.envelope(t)
	require.Equal(t, "permission_denied", env.Results[0].Code)
	require.Contains(t, env.Results[0].Error, `permission denied for verb "probe.echo": `)

	internal, err := c.call(t.Context(), ops(`[probe.inner(), probe.echo(), probe.panic(), probe.fail()]`))
	require.NoError(t, err)
	require.False(t, internal.IsError, "something succeeded")
	env = internal.envelope(t)
	require.Equal(t, "partial", env.Status)
	require.Equal(t, "not_callable", env.Results[0].Code)
	require.True(t, env.Results[1].OK)
	require.Equal(t, "internal", env.Results[2].Code)
	require.Equal(t, "internal", env.Results[3].Code)
	require.NotContains(t, internal.Content[0].Text, probeSecret)

	internal, err = c.call(t.Context(), ops(`memory.recall_score(query="x")`))
	require.NoError(t, err)
	require.True(t, internal.IsError)
	require.Equal(t, "not_callable", internal.envelope(t).Results[0].Code)
	described, err := c.call(t.Context(), ops(`memory.recall_score(help=true)`))
	require.NoError(t, err)
	require.Contains(t, described.Content[0].Text, `"callable_via_mcp":false`)

	_, err = c.call(t.Context(), ops(`probe.echo(text=oops)`))
	var rpc *mcpError
	require.ErrorAs(t, err, &rpc)
	require.Equal(t, -32602, rpc.code)
	require.Contains(t, rpc.text, "^")
	if rpc.data != nil {
		require.JSONEq(t, `{"reason":"parse-error","kind":"InvalidValue","pos":16}`, string(rpc.data))
	}
	for _, args := range []map[string]any{{}, {"ops": nil}, {"ops": 5}, {"ops": "a()", "plan": true}, {"Ops": "a()"}} {
		_, err = c.call(t.Context(), args)
		require.ErrorAs(t, err, &rpc, args)
		require.Equal(t, -32602, rpc.code)
	}
}

// testMCPCancel cancels a call in the middle of a chain. The session lives on (fc-011, fc-013, fc-014).
func testMCPCancel(t *testing.T, p *mcpProgram, c mcpSession) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, ops(`probe.sleep(ms=600000, mark="first") | probe.sleep(ms=0, mark="second")`))
		ended <- err
	}()
	p.marked("first.started")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, "cancelled", p.marked("first.ended"))
	for range 3 {
		res, err := c.call(t.Context(), ops(`probe.echo(text="still here")`))
		require.NoError(t, err)
		require.False(t, res.IsError)
	}
	require.NoFileExists(t, filepath.Join(p.marks, "second.started"), "the rest of the chain did not run")
}

// fc-010: two clients count their calls alike, so that the ids of their calls are equal. One gives up
// its call; the other's goes on.
func TestMCPEqualIDs(t *testing.T) {
	for _, way := range mcpWays() {
		if !way.http {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			p := newProgram(t)
			p.serveHTTP()
			a, b := way.connect(p), way.connect(p)
			defer func() { require.NoError(t, a.close()); require.NoError(t, b.close()) }()
			type outcome struct {
				res *mcpResult
				err error
			}
			stays := make(chan outcome, 1)
			go func() {
				res, err := a.call(t.Context(), ops(`probe.sleep(ms=600000, mark="stays")`))
				stays <- outcome{res, err}
			}()
			p.marked("stays.started")
			ctx, cancel := context.WithCancel(t.Context())
			leaves := make(chan error, 1)
			go func() {
				_, err := b.call(ctx, ops(`probe.sleep(ms=600000, mark="leaves")`))
				leaves <- err
			}()
			p.marked("leaves.started")
			cancel()
			require.ErrorIs(t, <-leaves, context.Canceled)
			require.Equal(t, "cancelled", p.marked("leaves.ended"))
			_, err := b.call(t.Context(), ops(`probe.echo()`))
			require.NoError(t, err)
			require.NoFileExists(t, filepath.Join(p.marks, "stays.ended"))
			p.release("stays")
			o := <-stays
			require.NoError(t, o.err)
			require.Equal(t, "released", p.marked("stays.ended"))
			var result struct{ Ended string }
			require.NoError(t, json.Unmarshal(o.res.envelope(t).Results[0].Result, &result))
			require.Equal(t, "released", result.Ended)
		})
	}
}
