package audit_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/sqlite"
	"github.com/verbgate/verbgate/policy"
)

func TestFilter(t *testing.T) {
	store, _ := open(t)
	batch := records(0, 1000)
	for i := range batch {
		r := &batch[i]
		r.Time = start.Add(time.Duration(i^1) * time.Second) // neighbours are stored in the wrong order of time
		r.Actor = fmt.Sprintf("user:%d", i%7)
		r.Namespace, r.Pack = fmt.Sprintf("ns-%d", i%3), fmt.Sprintf("pack-%d", i%5)
		r.Decision, r.Effect = []string{"allow", "deny"}[i%2], []string{"allowed", "denied"}[i%2]
		r.Outcome, r.ErrorCode = []string{"success", "error"}[i%2], []string{"", "internal"}[i%2]
		r.SessionID = fmt.Sprintf("s-%d", i%11)
		if i%4 == 0 {
			r.Kind, r.DecisionID = policy.KindRefusal, ""
		}
	}
	require.NoError(t, store.Append(t.Context(), batch[:400]))
	require.NoError(t, store.Append(t.Context(), batch[400:]))

	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	in := func(from, to int) func(int, policy.Record) bool {
		return func(_ int, r policy.Record) bool { return !r.Time.Before(at(from)) && r.Time.Before(at(to)) }
	}
	every := func(int, policy.Record) bool { return true }
	for _, c := range []struct {
		name   string
		filter audit.Filter
		want   func(int, policy.Record) bool
		cut    func([]policy.Record) []policy.Record
	}{
		{name: "OK all", want: every},
		{name: "OK kind", filter: audit.Filter{Kind: policy.KindRefusal}, want: func(i int, _ policy.Record) bool { return i%4 == 0 }},
		{name: "OK request", filter: audit.Filter{RequestID: "request-7"}, want: func(i int, _ policy.Record) bool { return i/10 == 7 }},
		{name: "OK decision", filter: audit.Filter{DecisionID: "decision-77"}, want: func(i int, _ policy.Record) bool { return i == 77 }},
		{name: "OK session", filter: audit.Filter{SessionID: "s-3"}, want: func(i int, _ policy.Record) bool { return i%11 == 3 }},
		{name: "OK actor", filter: audit.Filter{Actor: "user:3"}, want: func(i int, _ policy.Record) bool { return i%7 == 3 }},
		{name: "OK namespace and pack", filter: audit.Filter{Namespace: "ns-1", Pack: "pack-2"}, want: func(i int, _ policy.Record) bool { return i%3 == 1 && i%5 == 2 }},
		{name: "OK verb", filter: audit.Filter{Verb: "create"}, want: func(i int, _ policy.Record) bool { return i%2 == 1 }},
		{name: "OK outcome", filter: audit.Filter{Decision: "deny", Effect: "denied", Outcome: "error", ErrorCode: "internal"}, want: func(i int, _ policy.Record) bool { return i%2 == 1 }},
		{name: "OK time", filter: audit.Filter{Since: at(101), Until: at(701)}, want: in(101, 701)},
		{name: "OK since", filter: audit.Filter{Since: at(900)}, want: in(900, 1000)},
		{name: "OK until", filter: audit.Filter{Until: at(5)}, want: in(0, 5)},
		{name: "OK until in another zone", filter: audit.Filter{Until: at(5).In(time.FixedZone("", -7200))}, want: in(0, 5)},
		{name: "OK time and verb", filter: audit.Filter{Since: at(10), Until: at(20), Verb: "get"}, want: func(i int, r policy.Record) bool { return i%2 == 0 && in(10, 20)(i, r) }},
		{name: "OK no such time", filter: audit.Filter{Since: at(5000)}, want: func(int, policy.Record) bool { return false }},
		{name: "OK empty range", filter: audit.Filter{Since: at(20), Until: at(10)}, want: func(int, policy.Record) bool { return false }},
		{name: "OK no match", filter: audit.Filter{Verb: "' OR 1=1 --"}, want: func(int, policy.Record) bool { return false }},
		{name: "OK after", filter: audit.Filter{After: "id-990"}, want: func(i int, _ policy.Record) bool { return i > 990 }},
		{name: "OK after the last", filter: audit.Filter{After: "id-999"}, want: func(int, policy.Record) bool { return false }},
		{name: "OK limit", filter: audit.Filter{Limit: 3}, want: every, cut: func(r []policy.Record) []policy.Record { return r[:3] }},
		{name: "OK limit over pages", filter: audit.Filter{Limit: 600}, want: every, cut: func(r []policy.Record) []policy.Record { return r[:600] }},
		{name: "OK limit of one page", filter: audit.Filter{Limit: 256}, want: every, cut: func(r []policy.Record) []policy.Record { return r[:256] }},
		{name: "OK limit above all", filter: audit.Filter{Limit: 5000}, want: every},
		{name: "OK newest", filter: audit.Filter{Limit: 3, Newest: true}, want: every, cut: func(r []policy.Record) []policy.Record { return r[997:] }},
		{name: "OK newest of a verb", filter: audit.Filter{Limit: 300, Newest: true, Verb: "get"}, want: func(i int, _ policy.Record) bool { return i%2 == 0 },
			cut: func(r []policy.Record) []policy.Record { return r[200:] }},
		{name: "OK newest, fewer than the limit", filter: audit.Filter{Limit: 50, Newest: true, RequestID: "request-7"}, want: func(i int, _ policy.Record) bool { return i/10 == 7 }},
		{name: "OK after, limit", filter: audit.Filter{After: "id-4", Limit: 2}, want: func(i int, _ policy.Record) bool { return i > 4 }, cut: func(r []policy.Record) []policy.Record { return r[:2] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []policy.Record{}
			for i, r := range batch {
				if c.want(i, r) {
					want = append(want, r)
				}
			}
			if c.cut != nil {
				want = c.cut(want)
			}
			require.Equal(t, ids(want), ids(read(t, store, c.filter)))
		})
	}
}

func TestFilterErrors(t *testing.T) {
	store, _ := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 1)))
	for name, f := range map[string]audit.Filter{"negative": {Limit: -1}, "newest without limit": {Newest: true}} {
		for _, err := range store.Records(t.Context(), f) {
			require.ErrorContains(t, err, "limit", name)
		}
	}
	for _, err := range store.Records(t.Context(), audit.Filter{After: "nosuch"}) {
		var none *packs.NotFoundError
		require.ErrorAs(t, err, &none)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range store.Records(ctx, audit.Filter{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// What is stored while a reading is under way is not part of it, so it ends; and a loop that stops
// early or writes in its body is fine.
func TestReadWhileWriting(t *testing.T) {
	store, _ := open(t)
	require.NoError(t, store.Append(t.Context(), records(0, 600)))
	n := 0
	for _, err := range store.Records(t.Context(), audit.Filter{}) {
		require.NoError(t, err)
		require.NoError(t, store.Append(t.Context(), records(1000+n, 1001+n)))
		n++
	}
	require.Equal(t, 600, n)
	for r, err := range store.Records(t.Context(), audit.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, "id-0", r.ID)
		break
	}
}

// Reading by request, decision or time must not walk through the whole store.
func TestReadsUseIndexes(t *testing.T) {
	_, path := open(t)
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer db.Close()
	for query, index := range map[string]string{
		"SELECT * FROM records WHERE cursor > 1 AND cursor <= 9 AND request_id = 'x' ORDER BY cursor LIMIT 9":                             "records_request",
		"SELECT * FROM records WHERE cursor > 1 AND cursor <= 9 AND decision_id = 'x' AND decision_id <> '' ORDER BY cursor LIMIT 9":      "records_decision",
		"SELECT * FROM records WHERE cursor > 1 AND cursor <= 9 AND verb = 'x' AND +time >= 'x' ORDER BY cursor LIMIT 9":                  "records_verb",
		"SELECT coalesce(min(cursor), 0), coalesce(max(cursor), 0) FROM records WHERE time >= 'x' AND time < 'y'":                         "COVERING INDEX records_time",
		"SELECT * FROM records WHERE cursor > 1 AND cursor <= 9 AND +time >= 'x' AND +time < 'y' ORDER BY cursor LIMIT 9":                 "INTEGER PRIMARY KEY",
		"SELECT cursor - 1 FROM records WHERE cursor > 1 AND cursor <= 9 AND TRUE AND verb = 'x' ORDER BY cursor DESC LIMIT 1 OFFSET 100": "records_verb",
	} {
		var plan []string
		require.NoError(t, db.Read(t.Context(), func(tx *sql.Tx) error {
			rows, err := tx.Query("EXPLAIN QUERY PLAN " + query)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var detail string
				if err := rows.Scan(new(int), new(int), new(int), &detail); err != nil {
					return err
				}
				plan = append(plan, detail)
			}
			return rows.Err()
		}))
		all := strings.Join(plan, "; ")
		require.Contains(t, all, index, query)
		require.NotContains(t, all, "TEMP B-TREE", query)
	}
}
