package main

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs/sqlite"
)

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
