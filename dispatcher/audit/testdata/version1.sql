
CREATE TABLE records (
	cursor      INTEGER PRIMARY KEY AUTOINCREMENT,
	id          TEXT    NOT NULL UNIQUE,
	kind        TEXT    NOT NULL,
	time        TEXT    NOT NULL,
	request_id  TEXT    NOT NULL,
	decision_id TEXT    NOT NULL,
	op_index    INTEGER NOT NULL,
	op_count    INTEGER NOT NULL,
	source      TEXT    NOT NULL,
	session_id  TEXT    NOT NULL,
	actor       TEXT    NOT NULL,
	namespace   TEXT    NOT NULL,
	verb        TEXT    NOT NULL,
	pack        TEXT    NOT NULL,
	decision    TEXT    NOT NULL,
	effect      TEXT    NOT NULL,
	reason      TEXT    NOT NULL,
	code        TEXT    NOT NULL,
	obligations TEXT    NOT NULL,
	outcome     TEXT    NOT NULL,
	error_code  TEXT    NOT NULL,
	duration_us INTEGER NOT NULL,
	gate        TEXT    NOT NULL,
	revision    TEXT    NOT NULL,
	params      TEXT
) STRICT;
CREATE INDEX records_time ON records (time);
CREATE INDEX records_request ON records (request_id);
CREATE INDEX records_decision ON records (decision_id) WHERE decision_id <> '';
CREATE INDEX records_verb ON records (verb);
CREATE TABLE probes (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
INSERT INTO probes VALUES (1, 0);
