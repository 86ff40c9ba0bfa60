package audit

// migrations of the store. What is asked for by value has a column; obligations and params, which
// are only ever read whole, are JSON. Time is text that sorts: exact to the nanosecond, legible in
// any SQLite shell. AUTOINCREMENT keeps cursors rising whatever becomes of old rows.
//
// Migration 2 brings topics. A record is its own event: topic and event say which, and are null for a
// kind that no topic is for. What packs emit has a table of its own. Both take their cursors from
// topics.head. The records of an older file get cursors in the order in which they were stored.
var migrations = []string{`
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
`, `
CREATE TABLE topics (
	id    INTEGER PRIMARY KEY,
	name  TEXT    NOT NULL UNIQUE,
	head  INTEGER NOT NULL DEFAULT 0,
	floor INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO topics (id, name) VALUES
	(1, 'audit.decision'), (2, 'audit.refusal'), (3, 'gate.activation'), (4, 'gate.outage'), (5, 'gate.late_decision');
CREATE TABLE events (
	seq       INTEGER PRIMARY KEY AUTOINCREMENT,
	topic     INTEGER NOT NULL,
	event     INTEGER NOT NULL,
	time      TEXT    NOT NULL,
	namespace TEXT    NOT NULL,
	payload   TEXT    NOT NULL,
	UNIQUE (topic, event)
) STRICT;
ALTER TABLE records ADD COLUMN topic INTEGER;
ALTER TABLE records ADD COLUMN event INTEGER;
UPDATE records SET topic = numbered.topic, event = numbered.event
FROM (
	SELECT at, topic, row_number() OVER (PARTITION BY topic ORDER BY at) AS event
	FROM (
		SELECT cursor AS at, CASE kind
			WHEN 'decision' THEN 1 WHEN 'outcome' THEN 1 WHEN 'plan' THEN 1
			WHEN 'refusal' THEN 2
			WHEN 'gate_activation' THEN 3
			WHEN 'gate_outage' THEN 4
			WHEN 'late_decision' THEN 5
		END AS topic
		FROM records
	)
	WHERE topic IS NOT NULL
) AS numbered
WHERE records.cursor = numbered.at;
UPDATE topics SET head = (SELECT count(*) FROM records WHERE records.topic = topics.id);
CREATE UNIQUE INDEX records_event ON records (topic, event) WHERE topic IS NOT NULL;
`}
