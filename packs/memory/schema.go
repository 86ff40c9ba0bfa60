package memory

import "github.com/verbgate/verbgate/packs"

// schema is what the pack keeps. seq is the order of creation. created is in microseconds since 1970,
// because every recall reckons with it. The index holds the words of content and tags as words.go
// cuts them, and no second copy of the text.
func schema() packs.Schema {
	return packs.Schema{
		Tables: []string{
			"memory_records", "memory_tags", "memory_words",
			// What FTS5 makes for memory_words.
			"memory_words_data", "memory_words_idx", "memory_words_docsize", "memory_words_config",
		},
		Migrations: []string{`
CREATE TABLE memory_records (
	seq       INTEGER PRIMARY KEY AUTOINCREMENT,
	id        TEXT    NOT NULL UNIQUE,
	namespace TEXT    NOT NULL,
	created   INTEGER NOT NULL,
	salience  REAL    NOT NULL CHECK (salience BETWEEN 0 AND 1),
	about     TEXT,
	tags      TEXT    NOT NULL,
	content   TEXT    NOT NULL
) STRICT;
CREATE INDEX memory_records_namespace ON memory_records (namespace);
CREATE TABLE memory_tags (
	tag    TEXT    NOT NULL,
	record INTEGER NOT NULL REFERENCES memory_records (seq) ON DELETE CASCADE,
	PRIMARY KEY (tag, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tags_record ON memory_tags (record);
CREATE VIRTUAL TABLE memory_words USING fts5 (
	content, tags, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
`},
	}
}
