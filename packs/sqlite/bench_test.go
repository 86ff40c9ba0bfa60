package sqlite_test

import (
	"database/sql"
	"strconv"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	db := open(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := db.Read(b.Context(), func(tx *sql.Tx) error { return tx.QueryRow("SELECT count(*) FROM t").Scan(new(int)) }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	db := open(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if err := db.Write(b.Context(), insert(b.Context(), strconv.Itoa(n))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := open(b).Path()
	b.ReportAllocs()
	for b.Loop() {
		if err := openAt(b, path).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
