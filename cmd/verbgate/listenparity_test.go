package main

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What differs from run to run: ids and times, and the order that equal times leave open.
var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// sameText replaces ids by the order in which they appear, and times by a word.
func sameText(text string) string {
	seen := map[string]string{}
	text = anyID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("id-%d", len(seen)+1)
		}
		return seen[id]
	})
	return anyTime.ReplaceAllString(text, "time")
}

// The same requests have the same answers and exit codes in this process, over MCP and over a socket.
func TestListenParity(t *testing.T) {
	requests := []string{
		`create(kind="entity", entity_kind="concept", name="LoRA") | get(id=$prev.id)`,
		`[create(kind="note", content="a <b> & \"c\" é ☃"), create(kind="note", content="second"), get(help=true)]`,
		`stats()`,
		`search(kind="entity", query="LoRA")`,
		`{"tool":"memory.remember","args":{"content":"The demo is on Friday."}}`,
		`memory.recall(query="demo", limit=3)`,
		`verbs()`,
		`get(help=true)`,
		`get(id="00000000-0000-4000-8000-000000000000")`,
		`create(kind="note", content="x", namespace="team-a")`,
		`create(kind="note", content="x", namespace="a b")`,
		`nothing(a=1)`,
		`probe.echo(value={"n":18446744073709551616,"f":1.50e+2,"t":[null,true,{}]}, text="a\n\t\u2028", n=7)`,
		`probe.echo(nosuch=1)`,
		`[probe.fail(), probe.fail(as="not_found"), probe.fail(as="conflict"), probe.fail(as="invalid"), probe.fail(as="unavailable"), probe.panic()]`,
		`probe.fail() | probe.echo(value=$prev.x)`,
		`probe.echo(value={"a":1}) | probe.echo(value=$prev.nosuch)`,
		`probe.nest(verb="probe.echo", params={"text":"inner"})`,
		`get(id=abc)`,
		`[`,
		``,
	}
	type way func(ops string) (code int, stdout, stderr string)
	here := func(dir string) way {
		return func(ops string) (int, string, string) {
			cmd := verbgateCommand(t, "--data-dir", dir, "--log-level", "error", "request", ops)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run() // the exit code says it
			return cmd.ProcessState.ExitCode(), out.String(), errs.String()
		}
	}
	overHTTP := startServer(t, t.TempDir())
	overSocket := startSocket(t, t.TempDir(), socketPath(t))
	ways := map[string]way{
		"mcp":    func(ops string) (int, string, string) { return overHTTP.ask(ops) },
		"socket": func(ops string) (int, string, string) { return overSocket.ask(ops) },
	}
	cli := here(t.TempDir())
	for i, ops := range requests {
		t.Run(fmt.Sprintf("OK%d", i), func(t *testing.T) {
			code, out, errs := cli(ops)
			for name, ask := range ways {
				gotCode, gotOut, gotErrs := ask(ops)
				require.Equal(t, code, gotCode, "%s: %s: %s", name, ops, gotErrs)
				require.Equal(t, sameText(out), sameText(gotOut), "%s: %s", name, ops)
				if code == exitBad {
					require.Equal(t, errs, gotErrs, name)
				} else {
					require.Empty(t, gotErrs, name)
				}
			}
		})
	}
	overSocket.stop()
}
