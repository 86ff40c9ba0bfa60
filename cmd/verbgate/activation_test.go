package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
)

// auditSQL changes the audit store of a data folder behind the program's back.
func auditSQL(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, auditFile), nil)
	require.NoError(t, err)
	require.NoError(t, db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement)
		return err
	}))
	require.NoError(t, db.Close())
}

// What makes the store refuse the record of an activation, as a full disk would, and takes everything else.
const (
	refuseActivations = `CREATE TRIGGER full BEFORE INSERT ON records WHEN NEW.kind = 'gate_activation' BEGIN SELECT RAISE(ABORT, 'no room'); END`
	takeActivations   = `DROP TRIGGER full`
)

// writePolicy puts a policy of that one decision into the folder, at once.
func writePolicy(t *testing.T, dir, decision string) {
	t.Helper()
	file := filepath.Join(dir, "gate.rego")
	require.NoError(t, os.WriteFile(file+".new", []byte("package verbgate.gate\n\ndecision := "+decision+"\n"), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// Nothing runs under a policy whose activation is not on record.
func TestActivationNotRecorded(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, verbgateCommand(t, "--data-dir", dir, "request", "stats()").Run())
	before := len(auditRecords(t, dir, audit.Filter{}))
	auditSQL(t, dir, refuseActivations)

	broken := t.TempDir()
	writePolicy(t, broken, "nowhere")
	cases := []struct {
		name string
		args []string
		also string
	}{
		{"ErrRequest", []string{"request", `create(kind="note", content="unrecorded")`}, ""},
		{"ErrServeStdio", []string{"serve", "--stdio"}, ""},
		{"ErrServeHTTP", []string{"serve", "--http", "127.0.0.1:0"}, ""},
		{"ErrPolicyToo", []string{"--policy", broken, "request", "stats()"}, "gate.rego:3"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := verbgateCommand(t, append([]string{"--data-dir", dir}, c.args...)...)
			cmd.Stdin = strings.NewReader(rawCall("1", "stats()") + "\n")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.Error(t, cmd.Run())
			require.Equal(t, exitStart, cmd.ProcessState.ExitCode(), errs.String())
			require.Empty(t, out.String())
			require.Contains(t, errs.String(), "the activation of the policy could not be recorded in "+filepath.Join(dir, auditFile))
			require.Contains(t, errs.String(), "choose another folder with data_dir or --data-dir")
			require.Contains(t, errs.String(), c.also)
			require.NotContains(t, errs.String(), "serving MCP")
		})
	}

	auditSQL(t, dir, takeActivations)
	require.Len(t, auditRecords(t, dir, audit.Filter{}), before)
	out, err := verbgateCommand(t, "--data-dir", dir, "request", "stats()").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `"notes":0,`, "the refused start created nothing")
}

// A reload that cannot be recorded leaves the store down: operations are refused until it takes the
// record, which is then there.
func TestReloadNotRecorded(t *testing.T) {
	gate, dir := t.TempDir(), t.TempDir()
	writePolicy(t, gate, "true")
	s := startServer(t, dir, "--policy", gate)
	code, out, _ := s.ask("stats()")
	require.Equal(t, exitOK, code, out)

	auditSQL(t, dir, refuseActivations)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.await("the audit store is down; operations are refused until it takes records again")
	code, out, _ = s.ask("stats()")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `"code":"audit_unavailable"`)

	auditSQL(t, dir, takeActivations)
	require.Eventually(t, func() bool {
		code, _, _ := s.ask("stats()")
		return code == exitOK
	}, patience, 100*time.Millisecond, "the store is asked again once a second")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0.0, s.await("counted by the dispatcher")["records_lost"])
	require.Equal(t, exitOK, s.end())
	require.Len(t, auditRecords(t, dir, audit.Filter{Kind: policy.KindGateActivation}), 2)
}
