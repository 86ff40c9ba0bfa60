// Package policytests holds policies with their tests: the starter policy, which Verbgate runs with
// when nobody configured one and which verbgate init writes, and two realistic ones to start from.
//
//   - starter: the local user does everything in the namespace local and reads below it.
//   - roles: roles from data, per namespace, with verbs that read, write and destroy.
//   - fenced_agent: an agent that stays in one namespace tree and destroys nothing.
//
// Each is a folder that a gate can load as it is, with its Rego tests beside it. The package judges
// nothing; its Go test runs every folder through OPA's tester, and fails for a folder without tests,
// a rule no test reaches, a policy that strict compilation refuses, and a test of a document that the
// gate never makes, unless its name begins with test_impossible_.
//
// Invariant: every policy denies by default, and every refusal has a reason that says what to do;
// no value that a caller chooses makes one fail. What each fences, and what not, its first lines say.
package policytests

import "embed"

// Starter is the starter policy and its tests, in the folder starter.
//
//go:embed starter
var Starter embed.FS
