package session_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// dialRaw is a connection to a Unix socket, closed at the end of the test.
func dialRaw(tb testing.TB, path string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}
