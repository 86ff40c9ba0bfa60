package policytests_test

import (
	"fmt"
	"io/fs"

	"github.com/verbgate/verbgate/policytests"
)

func ExampleStarter() {
	files, err := fs.Glob(policytests.Starter, "starter/*")
	fmt.Println(files, err)
	// Output: [starter/gate.rego starter/gate_test.rego] <nil>
}
