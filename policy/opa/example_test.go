package opa_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

func Example() {
	source := `package verbgate.gate

default decision := {"decision": "deny", "reason": "only its owner may touch a record", "code": "not_owner"}

decision if input.resource.namespace == input.token.namespace
`
	gate, err := opa.New(opa.Config{FS: fstest.MapFS{"gate.rego": {Data: []byte(source)}}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := gate.Open(ctx); err != nil {
		log.Fatal(err)
	}
	defer gate.Close()

	for _, namespace := range []string{"team-a", "team-b"} {
		d := gate.Decide(ctx, &policy.Input{
			Verb:     "delete",
			Token:    policy.Token{Namespace: "team-a"},
			Resource: &policy.Resource{Exists: policy.Present, Namespace: namespace},
		})
		fmt.Printf("%s: %s %q %q\n", namespace, d.Verdict, d.Reason, d.Code)
	}
	// Output:
	// team-a: allow "" ""
	// team-b: deny "only its owner may touch a record" "not_owner"
}
