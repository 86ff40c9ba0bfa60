package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// block is one fenced block of the README.
type block struct{ lang, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)\\n(.*?)^```$")

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	var out []block
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// testsCommand is the README's command for the tests. It cannot be run by one of them; .ci/run does.
const testsCommand = "go test ./...\n"

// readmePort is the port that the README serves on. The test serves on one that the system chooses.
const readmePort = "7433"

// TestREADME runs every command of the README in a checkout, with a state folder of its own, in the
// order of the text: testdata/readme/readme.txtar asks for the blocks one by one and looks at what
// they print.
func TestREADME(t *testing.T) {
	var commands []string
	for _, b := range readmeBlocks(t) {
		if b.lang == "sh" && b.text != testsCommand {
			commands = append(commands, b.text)
		}
	}
	script, err := os.ReadFile(filepath.Join("testdata", "readme", "readme.txtar"))
	require.NoError(t, err)
	for i := range commands {
		require.Regexp(t, `(?m)^block `+strconv.Itoa(i+1)+` `, string(script), "no line of the script runs this block:\n%s", commands[i])
	}

	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "readme"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			root, err := filepath.Abs(filepath.Join("..", ".."))
			if err != nil {
				return err
			}
			env.Setenv("ROOT", root)
			return realGo(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// block N FILE writes the N-th block of commands into FILE. In place of the README's port they
			// have the one that was found to be listened on, and before that the one that means any.
			"block": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: block N FILE")
				}
				n, err := strconv.Atoi(args[0])
				ts.Check(err)
				if n < 1 || n > len(commands) {
					ts.Fatalf("the README has %d blocks of commands", len(commands))
				}
				text := strings.ReplaceAll(commands[n-1], readmePort, cmp.Or(ts.Getenv("PORT"), "0"))
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
			},
			"exits":   scriptCommands()["exits"],
			"waitfor": scriptCommands()["waitfor"],
			"listen":  listen,
		},
	})
}

// realGo lets the script build: with the caches of this machine, and a folder for programs of its own,
// which comes first in PATH, so that verbgate is what go install made of the checkout.
func realGo(env *testscript.Env) error {
	if err := scriptSetup(env); err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOROOT").Output()
	if err != nil {
		return err
	}
	lines := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOROOT"} {
		env.Setenv(name, strings.TrimSpace(lines[i]))
	}
	bin := filepath.Join(env.WorkDir, "gobin")
	env.Setenv("GOBIN", bin)
	env.Setenv("GOFLAGS", "-buildvcs=false") // the checkout may belong to another user
	env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
	return nil
}

var servedPort = regexp.MustCompile(`url=http://127\.0\.0\.1:(\d+)/mcp`)

// listen LOG waits until a server has written into LOG where it listens, and makes its port $PORT.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen LOG")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if m := servedPort.FindSubmatch(text); err == nil && m != nil {
			ts.Setenv("PORT", string(m[1]))
			return
		}
	}
	ts.Fatalf("no server says where it listens")
}

// The block for MCP clients names a command that speaks MCP.
func TestREADMEClientBlock(t *testing.T) {
	found := false
	for _, b := range readmeBlocks(t) {
		if b.lang != "json" || !strings.Contains(b.text, "mcpServers") {
			continue
		}
		found = true
		var client struct {
			Servers map[string]struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcpServers"`
		}
		require.NoError(t, json.Unmarshal([]byte(b.text), &client))
		server := client.Servers["verbgate"]
		require.Equal(t, "verbgate", server.Command)
		cmd := verbgateCommand(t, server.Args...)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), `"name":"verbgate"`)
	}
	require.True(t, found)
}

// CI calls the README's command for the tests, word for word, and there is one.
func TestREADMETestsCommand(t *testing.T) {
	count := 0
	for _, b := range readmeBlocks(t) {
		if b.lang == "sh" && b.text == testsCommand {
			count++
		}
	}
	require.Equal(t, 1, count)
	script, err := os.ReadFile(filepath.Join("..", "..", ".ci", "run"))
	require.NoError(t, err)
	require.Contains(t, string(script), "\n"+testsCommand)

	// And everything else that a change has to pass, each as a command of its own.
	for _, step := range []string{
		`go vet \./\.\.\.`,
		`unformatted=\$\(gofmt -l .+\)`,
		`go tool staticcheck \./\.\.\.`,
		`GOOS=darwin go vet \./\.\.\.`,
		`\t+go test -run '\^\$' -fuzz "\^\$\{target\}\\\$" -fuzztime "\$\{FUZZTIME:-5s\}" "\$package" </dev/null`,
		`CGO_ENABLED=1 go test -race -timeout 30m \./\.\.\.`,
	} {
		require.Regexp(t, `(?m)^`+step+`$`, string(script))
	}
	require.Contains(t, string(script), "\nset -euo pipefail\n", "a step that fails is the end")
	rooms := regexp.MustCompile(`gofmt -l ([a-z ]+)\)`).FindStringSubmatch(string(script))
	require.NotNil(t, rooms)
	for _, room := range topLevel {
		if info, err := os.Stat(filepath.Join("..", "..", room)); err == nil && info.IsDir() {
			require.Contains(t, strings.Fields(rooms[1]), room, "gofmt sees it")
		}
	}
	info, err := os.Stat(filepath.Join("..", "..", ".ci", "run"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100, "it can be run")
}
