package wire_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVetObjects runs go vet on code that copies gates in every way it looks for. The code is read
// here so that a cached result does not outlive a change of it.
func TestVetObjects(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: ", err)
	}
	source, err := os.ReadFile("testdata/vet/copies.go")
	require.NoError(t, err)
	out, err := exec.Command(tool, "vet", "-copylocks", "./testdata/vet").CombinedOutput()
	require.Error(t, err)
	objections := 0
	for i, line := range bytes.Split(source, []byte("\n")) {
		place := fmt.Sprintf("copies.go:%d:", i+1)
		if bytes.Contains(line, []byte("// copies")) {
			objections++
			require.Contains(t, string(out), place)
		} else {
			require.NotContains(t, string(out), place)
		}
	}
	require.Equal(t, 3, objections)
}
