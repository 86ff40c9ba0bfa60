package kg

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
)

// A score is made here and not by FTS5, whose bm25 counts over every row of the file: by what it says
// of his own records a caller could tell which words those of others hold. Here a score depends on the
// record, the query, and how many readable records have each word; how many there are elsewhere, and
// of what, changes nothing.
//
// What counts of a word is the best place where a record has it: its name, its tags or its text, there
// as it is or as the beginning of a longer word. Rare words count more, long records a little less.

// spot is where a record has a word. The zero value is nowhere.
type spot uint8

const (
	nowhere spot = iota
	begunInBody
	begunInTags
	begunInName
	inBody
	inTags
	inName
	spots
)

// worth is what a place counts before it is weighed against the record's length.
var worth = [spots]float64{begunInBody: 0.1, begunInTags: 0.4, begunInName: 0.8, inBody: 1, inTags: 4, inName: 8}

// column is the place's column of kg_fts, and whether a longer word counts.
var column = [spots]struct {
	name  string
	begun bool
}{
	begunInBody: {"body", true}, begunInTags: {"tags", true}, begunInName: {"name", true},
	inBody: {"body", false}, inTags: {"tags", false}, inName: {"name", false},
}

const (
	// maxRanked is how many records are ranked at most. When more have the words, it is the newest of
	// them, and the newest of those that have the words in name and tags.
	maxRanked    = 20_000
	usualLength  = 400 // bytes of name and text of a record of usual length
	longest      = 4   // how many times longer still counts less
	muchMore     = 4   // how many times commoner than the rarest a term is to be narrowed by it
	scoreDecimal = 1e4
)

// candidate is a record that has the words.
type candidate struct {
	seq   int64
	bytes int64  // of name and text
	spots []spot // by term
	score float64
}

// ranking puts the records of the readable namespaces that have the words in order.
type ranking struct {
	tx       *sql.Tx
	readable []string
	terms    []term
	all      bool // a record must have every term

	having  []int64   // by term: how many readable records have it
	weights []float64 // by term
	found   map[int64]*candidate
}

// best returns the best ones with their scores, the best first, the newest first among equals.
func (r *ranking) best(ctx context.Context, only filter, limit int) ([]candidate, error) {
	if err := r.find(ctx, only); err != nil || len(r.found) == 0 {
		return nil, err
	}
	if err := r.weigh(ctx); err != nil {
		return nil, err
	}
	if err := r.place(ctx); err != nil {
		return nil, err
	}
	out := make([]candidate, 0, len(r.found))
	for _, c := range r.found {
		c.score = r.score(c)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq)) })
	return out[:min(limit, len(out))], nil
}

// find collects the candidates.
func (r *ranking) find(ctx context.Context, only filter) error {
	r.found = map[int64]*candidate{}
	full := match(r.terms, r.all)
	for _, expression := range []string{full, "{name tags} : (" + full + ")"} {
		q := &query{}
		// CROSS: the index of the words first, whatever SQLite guesses of the namespaces' sizes.
		q.add(`SELECT r.seq, coalesce(octet_length(r.name), 0) + coalesce(octet_length(r.body), 0)
			FROM kg_fts CROSS JOIN kg_records r ON r.seq = kg_fts.rowid WHERE kg_fts MATCH ?`, expression)
		q.readable("+r.namespace", r.readable)
		only.apply(q)
		q.add(`ORDER BY kg_fts.rowid DESC LIMIT ?`, maxRanked)
		n, err := r.collect(ctx, q)
		if err != nil {
			return err
		}
		if n < maxRanked {
			return nil
		}
	}
	return nil
}

func (r *ranking) collect(ctx context.Context, q *query) (n int, err error) {
	rows, err := r.tx.QueryContext(ctx, q.sql.String(), q.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var seq, bytes int64
	for ; rows.Next(); n++ {
		if err := rows.Scan(&seq, &bytes); err != nil {
			return 0, err
		}
		if r.found[seq] == nil {
			r.found[seq] = &candidate{seq: seq, bytes: bytes, spots: make([]spot, len(r.terms))}
		}
	}
	return n, rows.Err()
}

// weigh finds out how rare the terms are among all that the caller may read, whatever the filters: a
// filter decides who is shown, not what a word weighs.
func (r *ranking) weigh(ctx context.Context) error {
	r.having, r.weights = make([]int64, len(r.terms)), make([]float64, len(r.terms))
	for i, t := range r.terms {
		if len(r.terms) > 1 { // else there is nothing to weigh it against
			q := &query{}
			q.add(`SELECT count(*) FROM kg_fts CROSS JOIN kg_records r ON r.seq = kg_fts.rowid WHERE kg_fts MATCH ?`, t.match())
			q.readable("+r.namespace", r.readable)
			if err := r.tx.QueryRowContext(ctx, q.sql.String(), q.args...).Scan(&r.having[i]); err != nil {
				return err
			}
		}
		r.weights[i] = 1 / math.Log(math.E+float64(r.having[i]))
	}
	return nil
}

// place notes the best place of each term in each candidate.
func (r *ranking) place(ctx context.Context) error {
	stmt, err := r.tx.PrepareContext(ctx, `SELECT rowid FROM kg_fts WHERE kg_fts MATCH ?`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	rarest := 0
	for i := range r.terms {
		if r.having[i] < r.having[rarest] {
			rarest = i
		}
	}
	for i, t := range r.terms {
		// Where every candidate has every term, a common one need not be looked up beyond a rare one.
		narrow := ""
		if r.all && r.having[i] > muchMore*r.having[rarest] {
			narrow = " AND " + r.terms[rarest].match()
		}
		for at := begunInBody; at < spots; at++ { // the best one last, so that it stays
			col := column[at]
			if col.begun && !t.begins() {
				continue
			}
			expression := col.name + " : " + t.whole()
			if col.begun {
				expression += "*"
			}
			if err := r.mark(ctx, stmt, expression+narrow, i, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark notes a place of term i in the candidates that an FTS5 query finds.
func (r *ranking) mark(ctx context.Context, stmt *sql.Stmt, expression string, i int, at spot) error {
	rows, err := stmt.QueryContext(ctx, expression)
	if err != nil {
		return err
	}
	defer rows.Close()
	var seq int64
	for rows.Next() {
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		if c := r.found[seq]; c != nil {
			c.spots[i] = at
		}
	}
	return rows.Err()
}

// score is the sum over the terms, each place against the length of the record: what is long has many
// words, so that each says less about it.
func (r *ranking) score(c *candidate) float64 {
	length := 0.25 + 0.75*min(float64(c.bytes)/usualLength, longest)
	sum := 0.0
	for i, at := range c.spots {
		sum += r.weights[i] * worth[at] / (worth[at] + length)
	}
	return sum
}

// share is a score against the best one.
func share(score, best float64) float64 {
	if best == 0 {
		return 1
	}
	return math.Round(score/best*scoreDecimal) / scoreDecimal
}
