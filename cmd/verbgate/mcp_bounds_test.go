package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// Sixty-four requests run at once over MCP; the next one waits for one of them.
func TestMCPRequestsAtOnce(t *testing.T) {
	const atOnce = 64
	p := newProgram(t)
	l := p.lines()
	for i := range atOnce + 1 {
		l.send(rawCall(fmt.Sprint(i), fmt.Sprintf(`probe.sleep(ms=600000, mark="m%d")`, i)))
	}
	started := func() (marks []string) {
		for i := range atOnce + 1 {
			if _, err := os.Stat(filepath.Join(p.marks, fmt.Sprintf("m%d.started", i))); err == nil {
				marks = append(marks, fmt.Sprintf("m%d", i))
			}
		}
		return marks
	}
	require.Eventually(t, func() bool { return len(started()) >= atOnce }, patience, 5*time.Millisecond)
	l.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	require.Equal(t, `"ping"`, string(l.receive().ID))
	running := started()
	require.Len(t, running, atOnce)
	p.release(running[0])
	require.Contains(t, string(l.receive().Result), "released")
	require.Eventually(t, func() bool { return len(started()) == atOnce+1 }, patience, 5*time.Millisecond)
	for _, mark := range started() {
		p.release(mark)
	}
	for range atOnce {
		require.Contains(t, string(l.receive().Result), "released")
	}
	require.NoError(t, l.in.Close())
	require.NoError(t, l.end())
}

// A text of the largest size arrives and is judged and answered over both transports; one byte more is
// the caller's mistake.
func TestMCPLargestText(t *testing.T) {
	sized := func(n int) string {
		const around = `probe.echo(text="")`
		return strings.Replace(around, `""`, `"`+strings.Repeat("x", n-len(around))+`"`, 1)
	}
	full, more := sized(request.MaxBytes), sized(request.MaxBytes+1)
	require.Len(t, full, 1<<20)
	p := newProgram(t)
	p.flags = []string{"--data-dir", t.TempDir()}

	t.Run("OKStdio", func(t *testing.T) {
		p.t = t
		l := p.lines()
		l.send(rawCall(`1`, full))
		require.Contains(t, string(l.receive().Result), `"succeeded":1`)
		l.send(rawCall(`2`, more))
		require.Equal(t, -32602, l.receive().Error.Code)
		require.NoError(t, l.in.Close())
		require.NoError(t, l.end())
	})
	t.Run("OKHTTP", func(t *testing.T) {
		p.t = t
		p.serveHTTP()
		ask := func(ops string) string {
			req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(rawCall(`1`, ops)))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+p.token)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			return string(text)
		}
		require.Contains(t, ask(full), `"succeeded":1`)
		require.Contains(t, ask(more), `"code":-32602`)
	})
}

// The audit file cannot grow any more in the middle of serving, as on a full disk: operations are refused
// as that, and stdout goes on carrying the protocol and nothing else.
func TestMCPAuditFull(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, verbgateCommand(t, "--data-dir", dir, "request", "stats()").Run())
	p := newProgram(t)
	p.flags = []string{"--data-dir", dir, "--log-level", "debug"}
	cmd := p.command("serve", "--stdio")
	program := cmd.Path
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 1000 && exec "$@"`, "sh", program}, cmd.Args[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	l := &mcpLines{t, in, bufio.NewReader(out), cmd.Wait, cmd.Process.Signal}

	// Each record holds the params.
	fill := `probe.echo(text="` + strings.Repeat("x", 200<<10) + `")`
	refused := false
	for i := 0; i < 50 && !refused; i++ {
		l.send(rawCall(fmt.Sprint(i), fill))
		refused = strings.Contains(string(l.receive().Result), `"code":"audit_unavailable","`)
	}
	require.True(t, refused)
	l.send(rawCall(`"more"`, `[stats(), probe.echo(help=true)]`))
	m := l.receive()
	require.Equal(t, `"more"`, string(m.ID))
	require.Contains(t, string(m.Result), `"code":"audit_unavailable"`)
	require.Contains(t, string(m.Result), `"succeeded":1,"failed":1`, "help runs nothing")
	l.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	require.Equal(t, `"ping"`, string(l.receive().ID))
	require.NoError(t, in.Close())
	rest, err := io.ReadAll(l.out)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	_ = l.end() // records that were never stored are a failure
	require.Contains(t, p.stderr.String(), "the audit store is down")
	require.Contains(t, p.stderr.String(), "refused_without_audit=")
}

// An evaluation that cannot be interrupted is given up, and does not make a failure of a clean end.
func TestMCPEndsOverEvaluations(t *testing.T) {
	gate := t.TempDir()
	stuck := `package verbgate.gate

decision if count(regex.replace(input.params.text, "(a?){100}b", "x")) >= 0
`
	require.NoError(t, os.WriteFile(filepath.Join(gate, "gate.rego"), []byte(stuck), 0o600))
	p := newProgram(t)
	l := p.lines("--policy", gate, "--set", "gate.timeout=1ms")
	for i := range 2 {
		l.send(rawCall(fmt.Sprint(i), `probe.echo(text="`+strings.Repeat("a", 1<<19)+`")`))
		require.Contains(t, string(l.receive().Result), `"code":"policy_error"`)
	}
	require.NoError(t, l.in.Close())
	require.NoError(t, l.end(), p.stderr)
	require.Contains(t, p.stderr.String(), "cannot be interrupted and end with the process")
}
