package kg_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/sqlite"
)

// The dispatcher opens a pack on its backend and calls its handlers with the token it made.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	files := sqlite.New(dir, nil)
	defer files.Close()
	pack := kg.Pack{}
	backend, err := files.OpenBackend(ctx, "main", "kg", pack.Manifest().Schema)
	if err != nil {
		panic(err)
	}
	instance, err := pack.Open(ctx, packs.Env{Backend: backend})
	if err != nil {
		panic(err)
	}
	defer instance.Close()

	call := func(verb string, params packs.Params) map[string]any {
		result, err := instance.Handlers()[verb](ctx, &packs.Call{
			Verb: verb, Params: params, Token: in("local"), Time: time.Now(),
			Emit: func(topic string, _ any) error { fmt.Println(topic); return nil },
		})
		if err != nil {
			panic(err)
		}
		text, _ := json.Marshal(result)
		var shown map[string]any
		_ = json.Unmarshal(text, &shown)
		return shown
	}
	lora := call("create", packs.Params{"kind": "entity", "entity_kind": "concept", "name": "LoRA"})
	paper := call("create", packs.Params{"kind": "entity", "entity_kind": "paper", "name": "Hu et al. 2021"})
	call("link", packs.Params{"source_id": lora["id"], "target_id": paper["id"], "relation": "introduced_by"})

	hit := call("search", packs.Params{"query": "lora"})["items"].([]any)[0].(map[string]any)
	near := call("neighbors", packs.Params{"id": hit["id"]})["items"].([]any)[0].(map[string]any)
	fmt.Println(hit["name"], near["relation"], near["record"].(map[string]any)["name"])
	// Output:
	// kg.created
	// kg.created
	// kg.linked
	// LoRA introduced_by Hu et al. 2021
}
