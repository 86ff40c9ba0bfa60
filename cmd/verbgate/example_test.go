package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

func Example() {
	code := run(context.Background(), []string{"parse", `a(x=1) | b(y=$prev.id)`}, strings.NewReader(""), os.Stdout, os.Stderr)
	fmt.Println("exit code", code)
	// Output:
	// {"mode":"chain","ops":[{"tool":"a","args":{"x":1},"refs":{}},{"tool":"b","args":{},"refs":{"y":"id"}}]}
	// exit code 0
}
