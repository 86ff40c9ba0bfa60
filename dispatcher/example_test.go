package dispatcher_test

import (
	"context"
	"fmt"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// greeter is a pack of one verb.
type greeter struct{}

func (greeter) Manifest() packs.Manifest {
	return packs.Manifest{Name: "greet", Description: "Greets.", Verbs: []packs.Verb{{
		Name: "greet.hello", Description: "Say hello.", Category: packs.Assertive, Visibility: packs.Public,
		Params: []packs.Param{{Name: "name", Type: packs.String, Required: true, Description: "Whom to greet."}},
	}}}
}

func (greeter) Open(context.Context, packs.Env) (packs.Instance, error) { return greeter{}, nil }
func (greeter) Close() error                                            { return nil }
func (greeter) Handlers() map[string]packs.Handler {
	return map[string]packs.Handler{"greet.hello": func(_ context.Context, call *packs.Call) (any, error) {
		return "hello " + call.Params.String("name"), nil
	}}
}

// onlyAnn is a gate that lets one person in. The real one is in policy/opa.
type onlyAnn struct{}

func (onlyAnn) Decide(_ context.Context, in *policy.Input) policy.Decision {
	if in.Token.Actor.ID == "ann" {
		return policy.Decision{Verdict: policy.Allow}
	}
	return policy.Decision{Reason: "only ann may greet"}
}

func Example() {
	d, err := dispatcher.New(dispatcher.Config{Packs: []packs.Pack{greeter{}}, Gate: onlyAnn{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Open(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()

	req, err := request.Parse(`greet.hello(name="world") | greet.hello(name=$prev)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, who := range []string{"ann", "bob"} {
		env := d.Run(context.Background(), dispatcher.Caller{Source: dispatcher.MCP, Actor: policy.Actor{Kind: "user", ID: who}}, req)
		for _, e := range env.Results {
			fmt.Println(who, e.OK, string(e.Result), e.Code, e.Aborted)
		}
	}
	// Output:
	// ann true "hello world"  false
	// ann true "hello hello world"  false
	// bob false  permission_denied false
	// bob false   true
}
