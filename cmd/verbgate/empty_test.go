package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An empty value that would quietly mean something else is refused wherever it is given: a script whose
// variable was not set must not leave the starter policy, or everything, in charge.
func TestEmptyValues(t *testing.T) {
	refused := func(c *cli) error {
		t.Helper()
		_, err := c.configuration()
		require.ErrorIs(t, err, errEmpty)
		return err
	}
	others := []string{"data_dir", "packs", "gate.policy", "gate.entrypoint", "http.addr", "log.level"}
	for _, s := range defaults().settings() {
		for _, empty := range []string{"", " ", ","} {
			_, err := cliWith(nil, "--data-dir", "d", "--set", s.key+"="+empty).configuration()
			switch {
			case s.other || slices.Contains(others, s.key):
				require.ErrorIs(t, err, errEmpty, "%s=%q", s.key, empty)
				require.Equal(t, exitBad, exitCode(err), s.key)
			case s.enum != nil || s.key == "namespace":
				require.Error(t, err, "%s=%q", s.key, empty)
			}
		}
	}
	for _, key := range []string{"visible", "backends", "gate.allow_builtins", "gate.allow_hosts"} {
		_, err := cliWith(nil, "--data-dir", "d", "--set", key+"=").configuration()
		require.NoError(t, err, "nothing is nothing, and undoes what the file says")
	}
	for _, short := range shorthands {
		_, err := cliWith(nil, "--"+short.flag, "").configuration()
		require.Error(t, err, short.flag)
		require.Contains(t, err.Error(), "--"+short.flag+": ")
	}
	require.Equal(t, exitBad, exitCode(refused(cliWith(nil, "--policy", ""))))
	require.Equal(t, exitBad, exitCode(refused(cliWith(nil, "--config", ""))))
	for _, name := range mustHave {
		require.Equal(t, exitStart, exitCode(refused(cliWith([]string{name + "="}))))
		require.ErrorContains(t, refused(cliWith([]string{name + "="})), name)
	}

	t.Run("ErrFile", func(t *testing.T) {
		for _, text := range []string{"gate: {policy: \"\"}", "gate: {entrypoint: ''}", "gate:\n  policy: null", "gate:\n  policy:\n"} {
			file := filepath.Join(t.TempDir(), "v.yaml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			_, err := cliWith(nil, "--config", file).configuration()
			require.Error(t, err, text)
			require.Equal(t, exitStart, exitCode(err))
			require.Contains(t, err.Error(), "v.yaml:")
		}
	})
	t.Run("OKVariable", func(t *testing.T) { // empty is not set, for the rest
		for _, s := range defaults().settings() {
			if name := envName(s.key); !slices.Contains(mustHave, name) {
				_, err := cliWith([]string{name + "="}, "--data-dir", "d").configuration()
				require.NoError(t, err, name)
			}
		}
	})
	t.Run("ErrCommands", func(t *testing.T) {
		for _, args := range [][]string{
			{"request", "--server", "", "stats()"}, {"request", "--server", "http://127.0.0.1:1/", "--token-file", "", "stats()"},
			{"serve", "--http", ""}, {"--set", "http.addr=127.0.0.1:0", "serve", "--http", ""}, {"serve", "--stdio", "--http="},
		} {
			cmd := verbgateCommand(t, args...)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, args)
			require.Equal(t, exitBad, cmd.ProcessState.ExitCode(), "%s: %s", strings.Join(args, " "), out)
			require.Contains(t, string(out), errEmpty.Error())
		}
	})
}
