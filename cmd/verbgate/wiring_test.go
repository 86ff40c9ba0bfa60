package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the configuration says of the dispatcher reaches it.
func TestDispatcherConfig(t *testing.T) {
	configured := func(flags ...string) *config {
		cfg, err := cliWith(nil, append(flags, "--data-dir", t.TempDir())...).configuration()
		require.NoError(t, err)
		return cfg
	}
	t.Run("OKDefault", func(t *testing.T) {
		d := dispatcherConfig(configured())
		require.True(t, d.FailOpen, "gate.on_error is open unless configured")
		require.True(t, d.RecordParams)
		require.Equal(t, time.Minute, d.Limits.RequestTimeout)
		require.NotNil(t, d.Checks)
		require.NotEmpty(t, d.Packs)
		require.Empty(t, d.BackendOf)
	})
	t.Run("OKOpen", func(t *testing.T) {
		require.True(t, dispatcherConfig(configured("--set", "gate.on_error=open")).FailOpen)
	})
	t.Run("OKClosed", func(t *testing.T) {
		require.False(t, dispatcherConfig(configured("--set", "gate.on_error=closed")).FailOpen)
	})
	t.Run("OKZeroIsClosed", func(t *testing.T) {
		require.False(t, dispatcherConfig(&config{}).FailOpen)
	})
	t.Run("OKOthers", func(t *testing.T) {
		d := dispatcherConfig(configured("--set", "audit.params=none", "--set", "limits.request_timeout=5s", "--set", "backends=kg=notes", "--set", "packs=kg"))
		require.False(t, d.RecordParams)
		require.Equal(t, 5*time.Second, d.Limits.RequestTimeout)
		require.Equal(t, map[string]string{"kg": "notes"}, d.BackendOf)
		require.Len(t, d.Packs, 1)
	})
}
