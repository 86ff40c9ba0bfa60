package audit_test

import (
	"context"
	"encoding/json"
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
	}, {
		ID: "r2", Kind: policy.KindDecision, Time: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), RequestID: "q2", Count: 1,
		Source: "cli", Actor: "user:bob", Namespace: "local", Verb: "create", Decision: "allow", Effect: "allowed", Outcome: "success",
		Events: []policy.Event{{Topic: "kg.created", Payload: json.RawMessage(`{"id":"1b4e28ba","kind":"note"}`)}},
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
	// A follower takes the channel, reads, and waits: whatever comes after the reading closes it.
	for after, changed := uint64(0), store.Changed(); ; changed = store.Changed() {
		events, err := store.Events(ctx, "kg.created", after, 100)
		if err != nil {
			panic(err)
		}
		for _, e := range events {
			fmt.Println(e.Topic, e.Cursor, e.Namespace, string(e.Payload))
			after = e.Cursor
		}
		if after == 1 { // enough for an example
			break
		}
		<-changed
	}
	// Output:
	// 2026-03-01T12:00:00Z decision deny "delete\u202e" effect=denied outcome=not_run actor=user:bob namespace=local reason="read only" duration_us=42 source=cli request_id=q1 id=r1
	// kg.created 1 local {"id":"1b4e28ba","kind":"note"}
}
