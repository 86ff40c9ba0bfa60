package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	files := sqlite.New(dir, nil)
	defer files.Close()
	backend, err := files.OpenBackend(ctx, "notes", "diary", packs.Schema{
		Tables:     []string{"entries"},
		Migrations: []string{"CREATE TABLE entries (day TEXT PRIMARY KEY, text TEXT) STRICT"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	write := func(text string) error {
		return backend.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO entries VALUES ('monday', ?)", text)
			return err
		})
	}
	fmt.Println(write("rain"))
	fmt.Println(write("sun"))
	// Output:
	// <nil>
	// conflict: a record with the same key exists already
}
