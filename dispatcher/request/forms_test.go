package request_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// jsonForm writes a request without references as JSON form, independently of the package's printer.
func jsonForm(tb testing.TB, req *request.Request) string {
	tb.Helper()
	ops := make([]map[string]any, 0, len(req.Ops))
	for _, op := range req.Ops {
		args := map[string]any{}
		for _, a := range op.Args {
			v, err := a.Value.Any(nil)
			require.NoError(tb, err)
			args[a.Name] = v
		}
		ops = append(ops, map[string]any{"tool": op.Tool, "args": args})
	}
	var out any = ops
	if req.Mode == request.Single {
		out = ops[0]
	}
	text, err := json.Marshal(out)
	require.NoError(tb, err)
	return string(text)
}
