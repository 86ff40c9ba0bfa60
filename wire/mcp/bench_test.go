package mcp_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// BenchmarkCall is what a call costs around the runner, from the client's bytes to the server's.
func BenchmarkCall(b *testing.B) {
	b.Run("stdio", func(b *testing.B) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- newServer(b, greeter{}).ServeStdio(b.Context(), inR, outW) }()
		out := bufio.NewReader(outR)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := io.WriteString(inW, goodCall+"\n"); err != nil {
				b.Fatal(err)
			}
			if _, err := out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, inW.Close())
		require.NoError(b, <-done)
	})
	b.Run("http", func(b *testing.B) {
		h, err := newServer(b, greeter{}).Handler(mcp.HTTPConfig{Token: token})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(goodCall))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
		}
	})
}
