package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	files := sqlite.New(dir, nil)
	defer files.Close()
	backend, err := files.OpenBackend(ctx, "main", "memory", memory.Pack{}.Manifest().Schema)
	if err != nil {
		panic(err)
	}
	instance, err := memory.Pack{}.Open(ctx, packs.Env{Backend: backend})
	if err != nil {
		panic(err)
	}
	defer instance.Close()

	// The dispatcher does this, after the checks and the gate.
	call := func(verb string, params packs.Params) any {
		result, err := instance.Handlers()[verb](ctx, &packs.Call{
			Verb: verb, Params: params, Token: token{"local"}, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Emit: func(string, any) error { return nil }, // nobody listens
		})
		if err != nil {
			panic(err)
		}
		return result
	}
	call("memory.remember", packs.Params{"content": "The build needs Go 1.26", "salience": json.Number("0.8")})
	call("memory.remember", packs.Params{"content": "The build is slow on Mondays"})
	text, _ := json.Marshal(call("memory.recall", packs.Params{"query": "go build"}))
	var answer struct {
		Items []struct {
			Content string
			Score   float64
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		panic(err)
	}
	for _, item := range answer.Items {
		fmt.Printf("%.2f %s\n", item.Score, item.Content)
	}
	// Output:
	// 0.96 The build needs Go 1.26
	// 0.42 The build is slow on Mondays
}
