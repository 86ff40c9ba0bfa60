package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs the transcripts in testdata/script against the program. Besides testscript's own,
// they have these commands:
//
//	exits CODE COMMAND…   runs the command, which must end with that exit code
//	repeat FILE TEXT N    writes TEXT N times into FILE
//	bytes FILE QUOTED     writes a Go-quoted string into FILE
//	waitfor FILE [TEXT]   waits until FILE exists, and holds TEXT
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup:               scriptSetup,
		Cmds:                scriptCommands(),
		Condition: func(name string) (bool, error) {
			if name == "root" { // who may write everywhere
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}

// scriptSetup gives each script a home and a state folder of its own.
func scriptSetup(env *testscript.Env) error {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	env.Setenv(probeDir, env.WorkDir)
	env.Setenv(gateTimeout[0], gateTimeout[1])
	return os.Mkdir(filepath.Join(env.WorkDir, "home"), 0o700)
}

func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < 2 {
				ts.Fatalf("usage: exits CODE COMMAND…")
			}
			want, err := strconv.Atoi(args[0])
			ts.Check(err)
			got := 0
			if err := ts.Exec(args[1], args[2:]...); err != nil {
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					ts.Fatalf("%v", err)
				}
				got = exit.ExitCode()
			}
			if got != want {
				ts.Fatalf("exit code %d, want %d", got, want)
			}
		},
		"repeat": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != 3 {
				ts.Fatalf("usage: repeat FILE TEXT N")
			}
			n, err := strconv.Atoi(args[2])
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[1], n)), 0o600))
		},
		"waitfor": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < 1 || len(args) > 2 {
				ts.Fatalf("usage: waitfor FILE [TEXT]")
			}
			holds := func() bool {
				if len(args) == 1 {
					_, err := os.Stat(ts.MkAbs(args[0])) // it may be a socket
					return err == nil
				}
				text, err := os.ReadFile(ts.MkAbs(args[0]))
				return err == nil && strings.Contains(string(text), args[1])
			}
			for end := time.Now().Add(patience); !holds(); {
				if time.Now().After(end) {
					ts.Fatalf("there is no %s", strings.Join(args, " with "))
				}
				time.Sleep(10 * time.Millisecond)
			}
		},
		"bytes": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != 2 {
				ts.Fatalf("usage: bytes FILE QUOTED")
			}
			text, err := strconv.Unquote(args[1])
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
		},
	}
}
