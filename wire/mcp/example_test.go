package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/wire/mcp"
)

// greeter stands in for a dispatcher.
type greeter struct{}

func (greeter) Run(_ context.Context, caller dispatcher.Caller, req *request.Request) *dispatcher.Envelope {
	return &dispatcher.Envelope{
		Results:   []dispatcher.Entry{{OK: true, Tool: req.Ops[0].Tool, Result: json.RawMessage(`"hello ` + caller.Actor.ID + `"`)}},
		Summary:   dispatcher.Summary{Total: 1, Succeeded: 1},
		Status:    "success",
		RequestID: "r1",
	}
}

func (greeter) RecordParseError(context.Context, dispatcher.Caller, *request.Error) {}

func Example() {
	cfg := mcp.Config{Runner: greeter{}, Version: "v1.0.0"}
	cfg.Caller.Actor.Kind, cfg.Caller.Actor.ID = "user", "ada"
	server, err := mcp.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"request","arguments":{"ops":"greet()"}}}`)
	var out bytes.Buffer
	if err := server.ServeStdio(context.Background(), in, &out); err != nil {
		fmt.Println(err)
		return
	}
	var answer struct {
		Result struct {
			StructuredContent struct {
				Results []struct{ Result string }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Result.StructuredContent.Results[0].Result)
	// Output: hello ada
}
