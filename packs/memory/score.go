package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"time"
)

// The weights of a score's parts, in points: a score of 1 is million points. Counted in whole points,
// the parts of an explanation add up to the score exactly.
const (
	million       = 1_000_000
	textPoints    = 600_000
	recencyPoints = 200_000
	salientPoints = 200_000
)

// halfLife is the age at which half of the recency is left.
const halfLife = 30 * 24 * time.Hour

// match is how a memory has a term. The zero value is not at all.
type match uint8

const (
	absent match = iota
	prefix       // it has a longer word that begins with it
	exact
)

// String is the match as memory.recall_score spells it.
func (m match) String() string {
	switch m {
	case exact:
		return "word"
	case prefix:
		return "prefix"
	case absent:
	}
	return "none"
}

// share is how much of a term's weight a match earns.
func (m match) share() float64 {
	switch m {
	case exact:
		return 1
	case prefix:
		return 0.5
	case absent:
	}
	return 0
}

// part is one of the things a score is made of.
type part struct {
	Value  float64 `json:"value"`  // from 0 to 1
	Weight float64 `json:"weight"` // of all parts together 1
	Points float64 `json:"points"`
	points int64
}

func newPart(value float64, weight int64) part {
	points := int64(math.Round(value * float64(weight)))
	return part{Value: round(value), Weight: float64(weight) / million, Points: float64(points) / million, points: points}
}

func round(f float64) float64 { return math.Round(f*million) / million }

// parts are all of them.
type parts struct {
	Text     part `json:"text"`
	Recency  part `json:"recency"`
	Salience part `json:"salience"`
}

func (p parts) points() int64 { return p.Text.points + p.Recency.points + p.Salience.points }

// candidate is a memory that has at least one term of a query.
type candidate struct {
	seq      int64
	created  int64 // microseconds since 1970
	salience float64
	matches  []match // by term
}

// survey is what the readable namespaces hold of a query's terms: the whole ground of every score.
type survey struct {
	terms   []term
	weights []float64 // by term: the rarer, the heavier
	found   map[int64]*candidate
}

// take asks the index, term by term, which readable memories have it.
func take(ctx context.Context, tx *sql.Tx, wanted []term, readable []string) (*survey, error) {
	namespaces, err := json.Marshal(readable)
	if err != nil {
		return nil, err
	}
	s := &survey{terms: wanted, weights: make([]float64, len(wanted)), found: map[int64]*candidate{}}
	var all int64
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM memory_records WHERE namespace IN (SELECT value FROM json_each(?))", string(namespaces)).Scan(&all)
	if err != nil {
		return nil, err
	}
	for i, t := range wanted {
		if err := s.mark(ctx, tx, i, exact, t.whole(), string(namespaces)); err != nil {
			return nil, err
		}
		if beginning := t.beginning(); beginning != "" {
			if err := s.mark(ctx, tx, i, prefix, beginning, string(namespaces)); err != nil {
				return nil, err
			}
		}
	}
	for i := range wanted {
		var with int64
		for _, c := range s.found {
			if c.matches[i] != absent {
				with++
			}
		}
		s.weights[i] = math.Log1p((float64(all-with) + 0.5) / (float64(with) + 0.5))
	}
	return s, nil
}

// mark notes how the memories that the FTS5 query finds have term i. A memory is found for a term once.
func (s *survey) mark(ctx context.Context, tx *sql.Tx, i int, how match, query, namespaces string) error {
	// CROSS: the index first, whatever SQLite guesses of the namespaces' sizes.
	rows, err := tx.QueryContext(ctx, `
		SELECT r.seq, r.created, r.salience FROM memory_words CROSS JOIN memory_records r ON r.seq = memory_words.rowid
		WHERE memory_words MATCH ? AND r.namespace IN (SELECT value FROM json_each(?))`, query, namespaces)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.seq, &c.created, &c.salience); err != nil {
			return err
		}
		known := s.found[c.seq]
		if known == nil {
			known = &c
			known.matches = make([]match, len(s.terms))
			s.found[c.seq] = known
		}
		known.matches[i] = how
	}
	return rows.Err()
}

// parts are the parts of c's score at the given time.
func (s *survey) parts(c *candidate, now time.Time) parts {
	var got, most float64
	for i, w := range s.weights {
		got += w * c.matches[i].share()
		most += w
	}
	text := 0.0
	if most > 0 {
		text = got / most
	}
	return parts{
		Text:     newPart(text, textPoints),
		Recency:  newPart(math.Exp2(-float64(age(c.created, now))/float64(halfLife)), recencyPoints),
		Salience: newPart(c.salience, salientPoints),
	}
}

// age of a memory; one from the future, after the clock was set back, is new.
func age(created int64, now time.Time) time.Duration {
	return max(0, now.Sub(time.UnixMicro(created)))
}
