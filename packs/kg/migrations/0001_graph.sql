-- Entities and notes. seq is the order of creation and the key everything inside refers to; AUTOINCREMENT, so
-- that a cursor never points at a number that was given to another record since. Long columns stand last:
-- a row can be filtered without reading its overflow pages.
CREATE TABLE kg_records (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL CHECK (kind IN ('entity', 'note')),
    sub_kind   TEXT,
    namespace  TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    name       TEXT,          -- an entity's name, a note's title
    name_fold  TEXT,          -- the same in lower case, for name_prefix
    tags       TEXT NOT NULL, -- JSON array, as shown
    properties TEXT NOT NULL, -- JSON object, numbers as the caller spelt them
    body       TEXT           -- an entity's description, a note's content
) STRICT;

CREATE INDEX kg_records_by_namespace ON kg_records (namespace);
CREATE INDEX kg_records_by_kind ON kg_records (namespace, kind, sub_kind);
CREATE INDEX kg_records_by_name ON kg_records (namespace, name_fold);

-- The tags of kg_records.tags once more, to filter by.
CREATE TABLE kg_tags (
    record INTEGER NOT NULL REFERENCES kg_records (seq),
    tag    TEXT NOT NULL,
    PRIMARY KEY (record, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX kg_tags_by_tag ON kg_tags (tag);

-- An edge belongs to the namespace it was written in, which need not be that of its ends. Each namespace may
-- say the same thing once: whether another one has said it already is not visible from outside.
CREATE TABLE kg_edges (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    source     INTEGER NOT NULL REFERENCES kg_records (seq),
    target     INTEGER NOT NULL REFERENCES kg_records (seq),
    relation   TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    created_at TEXT NOT NULL,
    weight     TEXT,          -- a JSON number as the caller spelt it
    properties TEXT NOT NULL,
    UNIQUE (source, target, relation, namespace),
    CHECK (source <> target)
) STRICT;

CREATE INDEX kg_edges_by_target ON kg_edges (target);
CREATE INDEX kg_edges_by_namespace ON kg_edges (namespace);

-- rowid is kg_records.seq. The text is cut into words before it comes here (text.go) and is not kept twice.
CREATE VIRTUAL TABLE kg_fts USING fts5 (
    name, body, tags,
    content = '', contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);
