package cel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
)

func Example() {
	notes := packs.Manifest{
		Name: "notes",
		Verbs: []packs.Verb{{Name: "notes.list", Category: packs.Assertive, Params: []packs.Param{
			{Name: "from", Type: packs.Datetime}, {Name: "to", Type: packs.Datetime}, {Name: "limit", Type: packs.Integer},
		}}},
		Checks: []packs.Check{
			{Name: "order", Rule: `!has(params.from) || !has(params.to) || params.from <= params.to`, Message: "from must not be after to"},
			{Name: "limit", Rule: `!has(params.limit) || params.limit <= 100`, MessageRule: `"limit " + string(params.limit) + " is too much; ask for at most 100"`},
		},
	}
	checks, err := cel.Compile([]packs.Manifest{notes}, cel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = checks.Check(context.Background(), &policy.Input{Verb: "notes.list", Params: map[string]any{"limit": json.Number("500")}})
	fmt.Println(err)

	notes.Checks[1].Rule = `params.limitt <= 100`
	_, err = cel.Compile([]packs.Manifest{notes}, cel.Config{})
	fmt.Println(err)
	// Output:
	// check limit: limit 500 is too much; ask for at most 100
	// pack notes, check "limit" (verb notes.list): 1:7: reads the undeclared param limitt; the verb's params are from, to, limit
}
