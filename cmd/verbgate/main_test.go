package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestMain makes the test binary double as the program: run under the name verbgate, it is verbgate,
// with the probe pack in it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"verbgate": main})
}

// gateTimeout is the variable that gives the gate the time that busy machines and the race detector need.
// What is tested about the time limit sets another by a flag, which beats it.
var gateTimeout = [2]string{envName("gate.timeout"), "1m"}

// verbgateCommand prepares the program as a process of its own, with a state folder and a home
// nobody else uses and none of the surrounding VERBGATE_ variables.
func verbgateCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("verbgate")
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	home := t.TempDir()
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "VERBGATE_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, strings.Join(gateTimeout[:], "="), "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"))
	return cmd
}
