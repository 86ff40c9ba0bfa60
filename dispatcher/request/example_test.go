package request_test

import (
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/dispatcher/request"
)

func ExampleParse() {
	req, err := request.Parse(`create(kind="entity", name="LoRA") | link(source_id=$prev.id, relation="uses")`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(req.Mode)
	for _, op := range req.Ops {
		for _, arg := range op.Args {
			if arg.Value.Kind() == request.Reference {
				fmt.Println(op.Tool, arg.Name, "is a reference:", arg.Value.Ref().DSL())
				continue
			}
			fmt.Println(op.Tool, arg.Name, arg.Value.Text())
		}
	}
	// Output:
	// chain
	// create kind entity
	// create name LoRA
	// link source_id is a reference: $prev.id
	// link relation uses
}

func ExampleError_Caret() {
	_, err := request.Parse("search(query=LoRA)")
	var parse *request.Error
	if errors.As(err, &parse) {
		fmt.Println(parse.Kind, parse.Pos)
		fmt.Println(parse.Caret())
	}
	// Output:
	// InvalidValue 13
	// line 1, column 14: `LoRA` is a bareword; a text needs double quotes: write query="LoRA"
	//   search(query=LoRA)
	//                ^
}

func ExampleRequest_String() {
	req, err := request.Parse(`{"tool": "list", "args": {"kind": "entity", "limit": 10}}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(req)
	// Output: list(kind="entity", limit=10)
}
