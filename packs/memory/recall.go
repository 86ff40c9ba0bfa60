package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/verbgate/verbgate/packs"
)

// memory is one as it is shown.
type memory struct {
	ID        string   `json:"id"`
	Content   string   `json:"content"`
	About     string   `json:"about,omitempty"`
	Tags      []string `json:"tags"`
	Salience  float64  `json:"salience"`
	Namespace string   `json:"namespace"`
	CreatedAt string   `json:"created_at"`
	Score     *float64 `json:"score,omitempty"`
}

func showTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// recalled is the answer to memory.recall.
type recalled struct {
	Items []memory `json:"items"`
	Count int      `json:"count"`
}

// recall finds memories by their words, best first; among equals the newest comes first.
func (m *memories) recall(ctx context.Context, call *packs.Call) (any, error) {
	wanted, err := readQuery(call.Params)
	if err != nil {
		return nil, err
	}
	limit, err := readLimit(call.Params)
	if err != nil {
		return nil, err
	}
	return packs.Within(ctx, m.store.Read, func(tx *sql.Tx) (recalled, error) {
		s, err := take(ctx, tx, wanted, call.Token.Readable())
		if err != nil {
			return recalled{}, err
		}
		// The tag decides who is shown, not what a word weighs: a score is the same with it and without.
		if call.Params.Has("tag") {
			if err := s.keepTagged(ctx, tx, call.Params.String("tag")); err != nil {
				return recalled{}, err
			}
		}
		best := s.best(call.Time, limit)
		items, err := load(ctx, tx, best)
		return recalled{Items: items, Count: len(items)}, err
	})
}

func (s *survey) keepTagged(ctx context.Context, tx *sql.Tx, tag string) error {
	rows, err := tx.QueryContext(ctx, "SELECT record FROM memory_tags WHERE tag = ?", tag)
	if err != nil {
		return err
	}
	defer rows.Close()
	kept := map[int64]*candidate{}
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		if c := s.found[seq]; c != nil {
			kept[seq] = c
		}
	}
	s.found = kept
	return rows.Err()
}

type ranked struct {
	seq    int64
	points int64
}

func (s *survey) best(now time.Time, limit int) []ranked {
	all := make([]ranked, 0, len(s.found))
	for _, c := range s.found {
		all = append(all, ranked{c.seq, s.parts(c, now).points()})
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.points, a.points), cmp.Compare(b.seq, a.seq)) })
	return all[:min(limit, len(all))]
}

// load reads the memories in the order given.
func load(ctx context.Context, tx *sql.Tx, which []ranked) ([]memory, error) {
	items := make([]memory, 0, len(which))
	if len(which) == 0 {
		return items, nil
	}
	stmt, err := tx.PrepareContext(ctx, "SELECT id, content, coalesce(about, ''), tags, salience, namespace, created FROM memory_records WHERE seq = ?")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	for _, w := range which {
		var one memory
		var tags string
		var created int64
		err := stmt.QueryRowContext(ctx, w.seq).Scan(&one.ID, &one.Content, &one.About, &tags, &one.Salience, &one.Namespace, &created)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(tags), &one.Tags); err != nil {
			return nil, fmt.Errorf("stored tags of %s: %w", one.ID, err)
		}
		score := float64(w.points) / million
		one.Score, one.CreatedAt = &score, showTime(time.UnixMicro(created))
		items = append(items, one)
	}
	return items, nil
}

// explanation is the answer to memory.recall_score.
type explanation struct {
	ID        string       `json:"id"`
	Namespace string       `json:"namespace"`
	Recalled  bool         `json:"recalled"`
	Score     float64      `json:"score"`
	Parts     parts        `json:"parts"`
	AgeDays   float64      `json:"age_days"`
	Terms     []termResult `json:"terms"`
}

type termResult struct {
	Term   string  `json:"term"`
	Match  string  `json:"match"`
	Weight float64 `json:"weight"` // its share of the text's value; of all terms together 1
}

// recallScore explains a score.
func (m *memories) recallScore(ctx context.Context, call *packs.Call) (any, error) {
	ref, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	wanted, err := readQuery(call.Params)
	if err != nil {
		return nil, err
	}
	return packs.Within(ctx, m.store.Read, func(tx *sql.Tx) (explanation, error) {
		at, err := find(ctx, tx, ref, call.Token.Readable())
		if err != nil {
			return explanation{}, err
		}
		s, err := take(ctx, tx, wanted, call.Token.Readable())
		if err != nil {
			return explanation{}, err
		}
		c, found := s.found[at.seq]
		if !found {
			// It has none of the words, or is in a namespace the caller's recall does not search.
			c = &candidate{seq: at.seq, matches: make([]match, len(wanted))}
			err := tx.QueryRowContext(ctx, "SELECT created, salience FROM memory_records WHERE seq = ?", at.seq).Scan(&c.created, &c.salience)
			if err != nil {
				return explanation{}, err
			}
		}
		e := explanation{
			ID: at.id, Namespace: at.namespace, Recalled: found, Parts: s.parts(c, call.Time),
			AgeDays: round(age(c.created, call.Time).Hours() / 24), Terms: make([]termResult, len(wanted)),
		}
		e.Score = float64(e.Parts.points()) / million
		total := 0.0
		for _, w := range s.weights {
			total += w
		}
		for i, t := range wanted {
			e.Terms[i] = termResult{Term: t.text, Match: c.matches[i].String(), Weight: round(s.weights[i] / total)}
		}
		return e, nil
	})
}

// readQuery returns the words of the query.
func readQuery(params packs.Params) ([]term, error) {
	query := params.String("query")
	if len(query) > maxQuery {
		return nil, &packs.InvalidError{Param: "query", Message: fmt.Sprintf("has %d bytes, more than the %d allowed; keep the telling words", len(query), maxQuery)}
	}
	wanted := terms(query)
	switch {
	case len(wanted) == 0:
		return nil, &packs.InvalidError{Param: "query", Message: `holds no word to look for; write at least one, as in query="build"`}
	case len(wanted) > maxTerms:
		return nil, &packs.InvalidError{Param: "query", Message: fmt.Sprintf("has %d words, more than the %d allowed; keep the telling ones", len(wanted), maxTerms)}
	}
	return wanted, nil
}

func readLimit(params packs.Params) (int, error) {
	if !params.Has("limit") {
		return defaultLimit, nil
	}
	limit := params.Int("limit")
	if limit < 1 || limit > maxLimit {
		return 0, &packs.InvalidError{Param: "limit", Message: fmt.Sprintf("must be a whole number from 1 to %d", maxLimit)}
	}
	return int(limit), nil
}

// place is where a memory is.
type place struct {
	seq           int64
	id, namespace string
}

// find resolves an id: a full one wherever the memory is, a prefix among the readable namespaces.
func find(ctx context.Context, tx *sql.Tx, ref packs.IDRef, readable []string) (place, error) {
	if ref.Full {
		var p place
		err := tx.QueryRowContext(ctx, "SELECT seq, id, namespace FROM memory_records WHERE id = ?", ref.Text).Scan(&p.seq, &p.id, &p.namespace)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = ref.One("memory", nil)
		}
		return p, err
	}
	namespaces, err := json.Marshal(readable)
	if err != nil {
		return place{}, err
	}
	from, to := ref.Range()
	rows, err := tx.QueryContext(ctx, `SELECT seq, id, namespace FROM memory_records WHERE id >= ? AND id < ?
		AND namespace IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`, from, to, string(namespaces), packs.ShownMatches+1)
	if err != nil {
		return place{}, err
	}
	defer rows.Close()
	var p place
	var ids []string
	for rows.Next() {
		if err := rows.Scan(&p.seq, &p.id, &p.namespace); err != nil {
			return place{}, err
		}
		ids = append(ids, p.id)
	}
	if err := rows.Err(); err != nil {
		return place{}, err
	}
	if _, err := ref.One("memory", ids); err != nil {
		return place{}, err
	}
	return p, nil
}
