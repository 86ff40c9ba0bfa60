package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

type toolResult struct {
	Content []struct {
		Type, Text string
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	Meta              map[string]any  `json:"_meta"`
}

func TestResult(t *testing.T) {
	tests := []struct {
		name, ops string
		isError   bool
		ids       []any
	}{
		{"OKSuccess", `echo()`, false, []any{"d0"}},
		{"OKPartial", `[echo(), deny()]`, false, []any{"d0", "d1"}},
		{"OKNothingSucceeded", `[deny(), deny()]`, true, []any{"d0", "d1"}},
		{"OKUnasked", `[unasked(), echo()]`, false, []any{nil, "d1"}},
	}
	p := dial(t, newServer(t, newRunner()))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.send(call(`1`, tt.ops))
			answer := p.receive()
			require.Nil(t, answer.Error)
			var res toolResult
			require.NoError(t, json.Unmarshal(answer.Result, &res))
			require.Equal(t, tt.isError, res.IsError)
			require.Equal(t, map[string]any{"verbgate/decision_ids": tt.ids}, res.Meta)
			require.Len(t, res.Content, 1)
			require.Equal(t, "text", res.Content[0].Type)
			require.JSONEq(t, string(res.StructuredContent), res.Content[0].Text, "the same JSON twice")
			require.Contains(t, res.Content[0].Text, `"request_id":"r1"`)
		})
	}
	p.send(call(`1`, `echo()`))
	var res toolResult
	require.NoError(t, json.Unmarshal(p.receive().Result, &res))
	require.Contains(t, string(res.StructuredContent), "9007199254740993", "integers stay exact")
	// What a model reads has no escapes that only a browser needs, and it is the envelope's own JSON.
	require.Equal(t, `{"results":[{"ok":true,"tool":"echo","result":{"exact":9007199254740993,"html":"<b>&\u2028"}}],`+
		`"summary":{"total":1,"succeeded":1,"failed":0,"aborted":0},"status":"success","request_id":"r1"}`, res.Content[0].Text)
	require.JSONEq(t, res.Content[0].Text, string(res.StructuredContent))
	require.NoError(t, p.finish())
}

func TestToolDescription(t *testing.T) {
	p := dial(t, newServer(t, newRunner()))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var list struct {
		Tools []struct {
			Name, Description         string
			InputSchema, OutputSchema map[string]any
			Annotations               map[string]any
		}
		NextCursor string
	}
	require.NoError(t, json.Unmarshal(p.receive().Result, &list))
	require.NoError(t, p.finish())
	require.Len(t, list.Tools, 1)
	require.Empty(t, list.NextCursor)
	tool := list.Tools[0]
	require.Equal(t, "request", tool.Name)
	for _, v := range verbs {
		require.Contains(t, tool.Description, v.Signature+" — "+v.Description)
	}
	require.Equal(t, false, tool.Annotations["readOnlyHint"])
	require.Equal(t, true, tool.Annotations["destructiveHint"])
	require.Equal(t, false, tool.Annotations["idempotentHint"])
	require.Equal(t, true, tool.Annotations["openWorldHint"])
	require.Equal(t, false, tool.InputSchema["additionalProperties"])
	require.Equal(t, []any{"ops"}, tool.InputSchema["required"])
	require.Len(t, tool.InputSchema["properties"], 1)
	require.ElementsMatch(t, []any{"results", "summary", "status", "request_id"}, tool.OutputSchema["required"])
}

func TestNew(t *testing.T) {
	tests := []struct {
		name   string
		change func(*mcp.Config)
		want   string
	}{
		{"ErrNoRunner", func(c *mcp.Config) { c.Runner = nil }, "no runner"},
		{"ErrNoActor", func(c *mcp.Config) { c.Caller.Actor.ID = "" }, "no actor"},
		{"ErrBytes", func(c *mcp.Config) { c.MaxBytes = -1 }, "message limit"},
		{"ErrRequests", func(c *mcp.Config) { c.MaxRequests = -1 }, "requests at once"},
		{"ErrRequestTimeout", func(c *mcp.Config) { c.RequestTimeout = -1 }, "time limit of a request"},
		{"ErrDrainTimeout", func(c *mcp.Config) { c.DrainTimeout = -1 }, "time to drain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(newRunner())
			tt.change(&cfg)
			_, err := mcp.New(cfg)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
