package opa

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Built-in functions that depend on something besides their arguments, and that policies may use all
// the same: the clock, random numbers, and tokens (whose checks read the clock).
var openBuiltins = []string{
	"time.now_ns", "rand.intn", "uuid.rfc4122",
	"io.jwt.decode_verify", "io.jwt.encode_sign", "io.jwt.encode_sign_raw",
}

// Built-in functions that policies may not use though the engine holds them to be pure: some read the
// clock or the process unnoticed, and bits.lsh can run for ever, past every deadline.
var shutBuiltins = []string{
	"bits.lsh", "trace", "opa.runtime", "json.match_schema", "json.verify_schema",
	"crypto.x509.parse_and_verify_certificates", "crypto.x509.parse_and_verify_certificates_with_options",
}

// capabilities is what a policy may use: everything that is a function of its arguments, the clock,
// random numbers and tokens, and what the configuration names. Taking a function out here, not by a
// list of unsafe ones, also refuses it as a replacement by "with".
func capabilities(allow, hosts []string) (*ast.Capabilities, error) {
	caps := ast.CapabilitiesForThisVersion()
	for _, name := range allow {
		if !slices.ContainsFunc(caps.Builtins, func(b *ast.Builtin) bool { return b.Name == name }) {
			return nil, fmt.Errorf("allowed built-in function %q: there is none of that name", name)
		}
	}
	caps.Builtins = slices.DeleteFunc(slices.Clone(caps.Builtins), func(b *ast.Builtin) bool {
		if slices.Contains(allow, b.Name) {
			return false
		}
		return slices.Contains(shutBuiltins, b.Name) || b.Nondeterministic && !slices.Contains(openBuiltins, b.Name)
	})
	// nil would mean every host.
	caps.AllowNet = append([]string{}, hosts...)
	return caps, nil
}

// isShut reports whether the engine has a built-in function of that name that caps withholds.
func isShut(caps *ast.Capabilities, name string) bool {
	known := slices.ContainsFunc(ast.Builtins, func(b *ast.Builtin) bool { return b.Name == name })
	return known && !slices.ContainsFunc(caps.Builtins, func(b *ast.Builtin) bool { return b.Name == name })
}
