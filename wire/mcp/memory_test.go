package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// fc-016, fc-119: clients that come and never say goodbye leave nothing behind.
func TestHTTPLeavesNothing(t *testing.T) {
	const clients = 2000
	modern := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	tests := []struct{ name, body, version, method string }{
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, "", ""},
		{"discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + modern + `}`, "2026-07-28", "server/discover"},
		{"listen", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":` + modern + `}`, "2026-07-28", "subscriptions/listen"},
	}
	h, err := newServer(t, newRunner()).Handler(mcp.HTTPConfig{Token: token})
	require.NoError(t, err)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			visit := func() {
				r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(tt.body))
				r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
				if tt.version != "" {
					r.Header.Set("Mcp-Protocol-Version", tt.version)
					r.Header.Set("Mcp-Method", tt.method)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				require.Empty(t, w.Header().Get("Mcp-Session-Id"))
			}
			for range 100 {
				visit()
			}
			before := heap()
			for range clients {
				visit()
			}
			// A session is about 14 KB; a third of that each is noticed, and what else is on the heap
			// is far below it.
			require.Less(t, heap()-before, int64(clients*5000))
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
