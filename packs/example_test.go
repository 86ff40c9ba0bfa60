package packs_test

import (
	"encoding/json"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// A verb is data: what it is called, what it takes, what it writes.
var greet = packs.Verb{
	Name: "hello.greet", Description: "Greets somebody.", Category: packs.Assertive, Visibility: packs.Public,
	Params: []packs.Param{
		{Name: "name", Type: packs.String, Required: true, Description: "Who to greet."},
		{Name: "times", Type: packs.Integer, Min: "1", Max: "3", Default: json.Number("1"), Description: "How often."},
	},
	WriteKeys: []string{"greeting:{name}"},
}

func ExampleVerb_Resolve() {
	params, _ := greet.Resolve(map[string]any{"name": "Ada"})
	fmt.Println(params.String("name"), params.Int("times"))

	_, err := greet.Resolve(map[string]any{"name": "Ada", "tiems": json.Number("2")})
	fmt.Println(err)
	_, err = greet.Resolve(map[string]any{"name": "Ada", "times": json.Number("2.0")})
	fmt.Println(err)
	// Output:
	// Ada 1
	// unknown param "tiems", did you mean times?; the params of hello.greet are name, times
	// times: must be an integer without point or exponent, got 2.0; write 2
}

func ExampleManifest_Validate() {
	m := packs.Manifest{Name: "hello", Verbs: []packs.Verb{greet, {Name: "wave", Category: "gesture"}}}
	fmt.Println(m.Validate())
	// Output:
	// pack "hello": verb "wave": lacks the pack's prefix; write hello.wave
	// pack "hello": verb "wave": the category is "gesture"; it must be one of assertive, commissive, declaration, directive
}

func ExampleVerb_Signature() {
	fmt.Println(greet.Signature())
	fmt.Println(greet.WriteKeyTuples(map[string]any{"name": "Ada"}))
	// Output:
	// hello.greet(name: string, times?: integer)
	// [greeting:"Ada"]
}
