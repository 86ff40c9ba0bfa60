package opa

import (
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

//go:embed input.schema.json
var inputSchema []byte

// InputSchema is the JSON Schema (draft 7) of the document a policy sees as input. Policies are
// type-checked against it when they are activated, so a misspelt member is found then.
func InputSchema() []byte { return slices.Clone(inputSchema) }

// schemas makes a fresh set: the engine changes a schema while it reads it.
func schemas() (*ast.SchemaSet, error) {
	var schema any
	if err := json.Unmarshal(inputSchema, &schema); err != nil {
		return nil, err
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	return set, nil
}
