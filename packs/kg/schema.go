package kg

import (
	_ "embed"

	"github.com/verbgate/verbgate/packs"
)

//go:embed migrations/0001_graph.sql
var migration1 string

//go:embed migrations/0002_cursors.sql
var migration2 string

// schema is what the pack keeps. Migrations are only ever appended to: folders in the field have run
// the ones before.
func schema() packs.Schema {
	return packs.Schema{
		Tables: []string{
			"kg_records", "kg_tags", "kg_edges", "kg_fts", "kg_cursor_key",
			// What FTS5 makes for kg_fts.
			"kg_fts_data", "kg_fts_idx", "kg_fts_docsize", "kg_fts_config",
		},
		Migrations: []string{migration1, migration2},
	}
}
