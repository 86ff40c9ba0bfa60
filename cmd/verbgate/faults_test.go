package main

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/sqlite"
)

// A data folder that a newer program wrote is left alone.
func TestNewerDatabase(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, verbgateCommand(t, "--data-dir", dir, "request", "stats()").Run())
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "main.db"), nil)
	require.NoError(t, err)
	known := kg.Pack{}.Manifest().Schema.Migrations
	require.NoError(t, db.Migrate(context.Background(), "kg", append(slices.Clone(known), "CREATE TABLE tomorrow (x TEXT)")))
	require.NoError(t, db.Close())

	cmd := verbgateCommand(t, "--data-dir", dir, "request", "stats()")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitStart, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "main.db: written by a newer version of kg")
	require.Contains(t, string(out), "run the newer program, or choose another data folder")
}

// A database that another process holds is waited for, and then the start is refused with its name.
// Nothing is half-written.
func TestLockedDatabase(t *testing.T) {
	cases := []struct{ name, file string }{
		{"ErrRecords", "main.db"},
		{"ErrAudit", auditFile},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(ops string) (int, string, string) {
				cmd := verbgateCommand(t, "--data-dir", dir, "request", ops)
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run() // the exit code says it
				return cmd.ProcessState.ExitCode(), out.String(), errs.String()
			}
			code, _, errs := run(`create(kind="note", content="before")`)
			require.Equal(t, exitOK, code, errs)

			db, err := sqlite.Open(context.Background(), filepath.Join(dir, c.file), nil)
			require.NoError(t, err)
			err = db.Write(context.Background(), func(*sql.Tx) error {
				code, out, errs := run(`create(kind="note", content="meanwhile")`)
				require.Equal(t, exitStart, code, out+errs)
				require.Empty(t, out)
				require.Contains(t, errs, c.file+": locked by another program; wait")
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, db.Close())

			// Nothing was half-written, and the way out works.
			code, out, errs := run(`stats()`)
			require.Equal(t, exitOK, code, errs)
			require.Contains(t, out, `"notes":1,`)
		})
	}
}
