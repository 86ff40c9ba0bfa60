-- What seals the places in cursors, which count records of every namespace. Made once, kept for good: a cursor
-- outlives the process that gave it.
CREATE TABLE kg_cursor_key (
    key BLOB NOT NULL CHECK (length(key) = 16)
) STRICT;

INSERT INTO kg_cursor_key (key) VALUES (randomblob(16));
