package memory_test

import (
	"database/sql"
	"fmt"
	"testing"
)

var benchWords = []string{"attention", "cache", "behaviour", "green", "tea", "build", "needs", "model", "slow", "monday", "adapter", "weights", "query", "token"}

// fill keeps n memories, in one transaction.
func fill(b *testing.B, w *world, n int) {
	b.Helper()
	err := w.backend.Write(b.Context(), func(tx *sql.Tx) error {
		for i := range n {
			content := ""
			for k := range 12 {
				content += benchWords[(i*7+k*k*3+i/11)%len(benchWords)] + fmt.Sprintf(" w%d ", (i*31+k)%997)
			}
			if _, err := tx.Exec("INSERT INTO memory_records (id, namespace, created, salience, tags, content) VALUES (?, 'a', ?, 0.5, '[]', ?)",
				fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), start.UnixMicro()-int64(i)*3600e6, content); err != nil {
				return err
			}
			if _, err := tx.Exec("INSERT INTO memory_words (rowid, content, tags) VALUES (last_insert_rowid(), ?, '')", content); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRecall(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		w := open(b)
		fill(b, w, n)
		for name, query := range map[string]string{"common": "attention cache behaviour", "rare": "w17 w501"} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.direct(me, "memory.recall", object{"query": query}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRemember(b *testing.B) {
	w := open(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.direct(me, "memory.remember", object{"content": "the attention cache of the model", "tags": []any{"ml"}}); err != nil {
			b.Fatal(err)
		}
	}
}
