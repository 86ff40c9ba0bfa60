package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	store, err := audit.New(audit.Config{Path: filepath.Join(dir, "audit.db")})
	if err != nil {
		panic(err)
	}
	if err := store.Open(ctx); err != nil {
		panic(err)
	}
	defer store.Close()

	err = store.Append(ctx, []policy.Record{{
		ID: "r1", Kind: policy.KindDecision, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), RequestID: "q1", Count: 1,
		Source: "cli", Actor: "user:bob", Namespace: "local", Verb: "delete\u202e", Decision: "deny", Effect: "denied",
		Reason: "read only", Outcome: "not_run", Duration: 42 * time.Microsecond,
	}})
	if err != nil {
		panic(err)
	}
	for r, err := range store.Records(ctx, audit.Filter{Decision: "deny"}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(audit.Line(r))
	}
	// Output:
	// 2026-03-01T12:00:00Z decision deny "delete\u202e" effect=denied outcome=not_run actor=user:bob namespace=local reason="read only" duration_us=42 source=cli request_id=q1 id=r1
}
