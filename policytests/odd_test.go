package policytests_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

var folders = []string{"starter", "roles", "fenced_agent"}

// opened is a gate on one of the policies, as a server runs it.
func opened(tb testing.TB, dir string) *opa.Gate {
	tb.Helper()
	gate, err := opa.New(opa.Config{Path: dir, PollInterval: -1, Timeout: time.Minute})
	require.NoError(tb, err)
	require.NoError(tb, gate.Open(tb.Context()))
	tb.Cleanup(func() { require.NoError(tb, gate.Close()) })
	return gate
}

// Values of every JSON type, and texts that formats, patterns and namespaces could stumble over.
func oddValues() []any {
	return []any{
		nil, true, false,
		json.Number("0"), json.Number("-1"), json.Number("1e300"), json.Number("0.1"), json.Number("51"), json.Number("99999999999999999999999999999999"),
		"", " ", "%", "%s%d%!q(x)", `"`, `\`, "\x00", "\n", "\u202e", "é", "0b4c1e6e", "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10", "local", "team-a:bots", ":", "*", "^(", "high",
		strings.Repeat("x", 5000),
		[]any{}, []any{nil}, []any{"a", json.Number("1"), []any{map[string]any{}}}, []any{"high"},
		map[string]any{}, map[string]any{"": nil}, map[string]any{"a": map[string]any{"b": []any{}}}, map[string]any{"decision": "allow"},
	}
}

// oddInputs are variations on calls that get far in every policy: whoever may choose a value, chooses
// something nobody thought of.
func oddInputs() []*policy.Input {
	var out []*policy.Input
	for _, actor := range []policy.Actor{
		{Kind: "user", ID: "ann", Claims: map[string]any{"assurance": "high"}},
		{Kind: "agent", ID: "a1", Claims: map[string]any{"tree": "team-a:bots"}},
	} {
		for _, verb := range []string{"get", "list", "create", "link", "merge_note", "nosuch"} {
			for _, namespace := range []string{"local", "team-a:bots"} {
				add := func(change func(*policy.Input)) {
					a := actor
					a.Claims = map[string]any{}
					for k, v := range actor.Claims {
						a.Claims[k] = v
					}
					in := &policy.Input{
						Verb: verb, Pack: "kg", Category: "assertive",
						Token:   policy.Token{Namespace: namespace, Read: []string{namespace}, Actor: a},
						Params:  map[string]any{"limit": json.Number("5")},
						Context: policy.Context{Source: "mcp", Transport: "http", Time: time.Unix(0, 0).UTC(), Mode: "single", Count: 1},
					}
					change(in)
					out = append(out, in)
				}
				add(func(*policy.Input) {})
				add(func(in *policy.Input) { in.Params = nil })
				add(func(in *policy.Input) { in.Token.Actor.Claims = nil })
				add(func(in *policy.Input) { in.Token.Read = nil })
				add(func(in *policy.Input) { in.Token = policy.Token{} })
				add(func(in *policy.Input) { in.Pack, in.Category = "", "" })
				for _, value := range oddValues() {
					for _, param := range []string{"limit", "items", "id", "source_id", "target_id", "from_id", "into_id", "about", "namespace", "%s", ""} {
						add(func(in *policy.Input) { in.Params[param] = value })
					}
					for _, claim := range []string{"tree", "assurance", "kind", ""} {
						add(func(in *policy.Input) { in.Token.Actor.Claims[claim] = value })
					}
					text, ok := value.(string)
					if !ok {
						continue
					}
					add(func(in *policy.Input) { in.Verb = text })
					add(func(in *policy.Input) { in.Token.Namespace = text })
					add(func(in *policy.Input) { in.Token.Read = append(in.Token.Read, text) })
					add(func(in *policy.Input) { in.Token.Actor.Kind = text })
					add(func(in *policy.Input) { in.Token.Actor.ID = text })
					add(func(in *policy.Input) { in.Token.Actor.Groups = []string{text, text} })
					add(func(in *policy.Input) { in.Context.Via = []string{text} })
					for _, exists := range []policy.Existence{policy.Unknown, policy.Absent, policy.Present} {
						add(func(in *policy.Input) { in.Resource = &policy.Resource{Param: "id", ID: text, Exists: exists} })
						add(func(in *policy.Input) {
							in.Resource = &policy.Resource{Param: "id", ID: "0b4c1e6e", Exists: exists, Namespace: text, Kind: text}
						})
					}
				}
			}
		}
	}
	return out
}

// requireExplained asserts an answer that a policy meant: never an error of the policy.
func requireExplained(tb testing.TB, d policy.Decision, in *policy.Input) {
	tb.Helper()
	if d.PolicyError || d.Verdict != policy.Allow && (d.Verdict != policy.Deny || d.Reason == "" || d.Code == "") {
		tb.Fatalf("%+v\ncause: %v\ninput: %+v, resource %+v", d, d.Cause, in, in.Resource)
	}
}

// No value that somebody may choose makes a policy fail: a refusal is one that the policy explains.
func TestOddValuesAreExplained(t *testing.T) {
	for _, dir := range folders {
		t.Run(dir, func(t *testing.T) {
			gate := opened(t, dir)
			var codes []string
			for _, in := range oddInputs() {
				d := gate.Decide(t.Context(), in)
				requireExplained(t, d, in)
				if !slices.Contains(codes, d.Code) {
					codes = append(codes, d.Code)
				}
			}
			require.Contains(t, codes, "", "some are allowed")
			require.Greater(t, len(codes), 4, "and not all are refused by the first rule: %v", codes)
		})
	}
}

// FuzzOddValues lets the fuzzer choose params and claims of any shape, the record's id and the verb.
func FuzzOddValues(f *testing.F) {
	for _, value := range oddValues() {
		text, err := json.Marshal(map[string]any{"limit": value, "items": value, "target_id": value, "tree": value, "assurance": value})
		require.NoError(f, err)
		f.Add("create", "0b4c1e6e", string(text), uint8(0))
		f.Add("link", "0b4c1e6e7c8f4c539d8e2f5f5a3b9a10", string(text), uint8(1))
		f.Add("search", "", string(text), uint8(2))
	}
	gates := map[string]*opa.Gate{}
	for _, dir := range folders {
		gates[dir] = opened(f, dir)
	}
	// What no policy could judge, being no text or too large a number, is refused before any is asked.
	judge, err := opa.New(opa.Config{FS: anything, Timeout: time.Minute})
	require.NoError(f, err)
	require.NoError(f, judge.Open(f.Context()))
	f.Cleanup(func() { require.NoError(f, judge.Close()) })
	f.Fuzz(func(t *testing.T, verb, id, text string, exists uint8) {
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var values map[string]any
		if decoder.Decode(&values) != nil {
			return
		}
		for _, actor := range []policy.Actor{{Kind: "user", ID: "ann", Claims: values}, {Kind: "agent", ID: "a1", Claims: values}} {
			for _, namespace := range []string{"local", "team-a", fmt.Sprint(values["tree"])} {
				in := &policy.Input{
					Verb: verb, Pack: "kg", Category: "assertive",
					Token:    policy.Token{Namespace: namespace, Read: []string{namespace}, Actor: actor},
					Params:   values,
					Resource: &policy.Resource{Param: "id", ID: id, Exists: policy.Existence(exists % 3)},
					Context:  policy.Context{Source: "mcp", Transport: "http", Time: time.Unix(0, 0).UTC(), Mode: "single", Count: 1},
				}
				if in.Resource.Exists == policy.Present {
					in.Resource.Namespace, in.Resource.Kind = namespace, "note"
				}
				if judge.Decide(t.Context(), in).PolicyError {
					continue
				}
				for _, gate := range gates {
					requireExplained(t, gate.Decide(t.Context(), in), in)
				}
			}
		}
	})
}

// anything is a policy that allows every call that can be judged.
var anything = fstest.MapFS{"gate.rego": {Data: []byte("package verbgate.gate\n\ndecision := true\n")}}
