// Command verbgate serves one tool, request, whose operations are parsed, checked, judged by a
// policy, run by a pack and audited: to MCP clients, and with the events that come of it over sockets. On
// the command line it runs the same requests itself, or is a client of a server.
//
// The package is the edge: it reads the command line and the configuration, wires the rooms of the
// house together, and turns errors into exit codes. It parses no ops, judges nothing and stores
// nothing.
//
// Invariants. Results go to stdout and everything else to stderr; under serve --stdio stdout carries
// the protocol and nothing else. Log lines never hold params or tokens. No listener opens before the
// gate's first activation ended. Exit codes are decided in one place, exitCode.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
