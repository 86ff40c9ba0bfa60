package opa_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// library opens one gate for each policy of testdata/policies, all with the same data.
func library(t testing.TB) map[string]*opa.Gate {
	t.Helper()
	names, err := filepath.Glob("testdata/policies/*.rego")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(names), 10)
	data, err := os.ReadFile("testdata/policies/data.json")
	require.NoError(t, err)
	gates := map[string]*opa.Gate{}
	for _, name := range names {
		rego, err := os.ReadFile(name)
		require.NoError(t, err)
		m := files("", "data.json", string(data))
		m["gate.rego"].Data = rego
		g, err := opa.New(opa.Config{FS: fs.FS(m), Timeout: 100 * time.Millisecond, Grace: 50 * time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, g.Open(t.Context()), name)
		t.Cleanup(func() { // an evaluation that was given up may still take a while
			require.Eventually(t, func() bool { return g.Close() == nil }, time.Minute, 10*time.Millisecond)
		})
		gates[strings.TrimSuffix(filepath.Base(name), ".rego")] = g
	}
	return gates
}

var hostileParams = []string{
	`{}`,
	`null`,
	`{"a":1,"b":2,"k":"a","i":0,"list":[1,"x"],"s":"x","r":"[a-z]+","sub":{},"patch":[]}`,
	`{"a":0,"b":0,"list":[0,0,0],"s":"1e3000000","r":"(","k":"params"}`,
	`{"a":1e300,"b":-1e300,"list":[1e300,1e300,1e300,1e308],"s":"1e3000000"}`,
	`{"a":1e3000000}`,
	`{"a":-1e-3000000}`,
	`{"a":18446744073709551617,"b":9007199254740993,"list":[99999999999999999999999999999999999999]}`,
	`{"a":9223372036854775807,"b":9223372036854775807,"s":"9223372036854775807h"}`,
	`{"a":1000000000000,"b":1000000,"s":"0.0.0.0/0","k":"k"}`,
	`{"a":100000000,"b":1,"s":"::/0"}`,
	`{"s":"{\"a\":1e3000000}"}`,
	`{"s":"a: &a [*a, *a]\nb: *a"}`,
	`{"s":"1e300000000Gi"}`,
	`{"s":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ."}`,
	`{"s":"a\u0000b\ud800","r":"\u202e","k":"` + "\u212a" + `"}`,
	`{"r":"(a?){100}a{100}","s":"` + strings.Repeat("a", 2000) + `"}`,
	`{"r":"(((a{10}){10}){10}){10}","s":"a"}`,
	`{"r":"{a,b{c,d}}**[!x]","s":"a:b"}`,
	`{"r":"a{1000}{1000}","s":"a"}`,
	`{"list":[[[[[[[[[[[[[[[[[[[[[["x"]]]]]]]]]]]]]]]]]]]]]],"i":"list"}`,
	`{"a":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}`,
	`{"list":[` + strings.Repeat(`{"a":[1,2,3]},`, 500) + `1]}`,
	`{"a":null,"b":[],"k":{},"list":{"x":1},"s":["s"],"r":7,"i":-1,"sub":null,"patch":{}}`,
	`{"patch":[{"op":"add","path":"/a","value":1},{"op":"move","from":"/a","path":"/a/b"},{"op":"remove","path":""}],"a":{}}`,
	`{"decision":"allow"}`,
	`{"decision":"allow","reason":7}`,
	`{"decision":{"decision":"deny","reason":"x"},"a":3}`,
	`{"decision":"deny","reason":"` + strings.Repeat(`\n`, 5000) + `"}`,
	`{"s":"%!s(BADINDEX)%999999999999d","a":1,"b":1e20,"list":["%s"]}`,
	`{"":"","\"]; data.secret[\"":1,"a.b[_]":2,"k":"\"]; data.secret[\""}`,
	`{"a":true,"b":false,"list":[true,false,null],"s":"true"}`,
}

// No params whatever, under no policy, make the gate unavailable, panic, or outstay its time by more
// than the evaluation of one built-in function that the gate walks away from (dispatch.md 4).
func FuzzDecide(f *testing.F) {
	for _, text := range hostileParams {
		f.Add(text)
	}
	gates := library(f)
	f.Fuzz(func(t *testing.T, text string) {
		var m map[string]any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&m) != nil {
			m = map[string]any{"s": text, "a": json.Number(text), text: []any{text}}
		}
		in := call(m)
		in.Verb, in.Context.DecisionID = text, ""
		for name, g := range gates {
			start := time.Now()
			d := g.Decide(t.Context(), in)
			require.Less(t, time.Since(start), 30*time.Second, "%s: waits for ever, and not just on a slow machine", name)
			switch d.Verdict {
			case policy.Allow:
				require.NoError(t, d.Cause, name)
				require.False(t, d.PolicyError, name)
			case policy.Deny:
				require.NotEmpty(t, d.Reason, name)
				require.Equal(t, d.PolicyError, d.Cause != nil, name)
			case policy.Unavailable, policy.Stopped:
				t.Fatalf("%s: %+v", name, d)
			default:
				t.Fatalf("%s: no verdict: %+v", name, d)
			}
			require.Equal(t, g.Status().Revision, d.Revision, name)
			for _, r := range d.Reason {
				require.GreaterOrEqual(t, r, ' ', "%s: %q", name, d.Reason)
			}
		}
	})
}

// The number check lets through what the engine can work with, and that alone.
func FuzzIsSoundNumber(f *testing.F) {
	for _, s := range []string{"0", "-1.50e+3", "1e3000000", "1e-3000000", "01", "0x1", "9007199254740993"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !opa.IsSoundNumber(s) {
			return
		}
		require.True(t, json.Valid([]byte(s)), s)
		n, err := json.Number(s).Float64()
		require.NoError(t, err, s)
		require.LessOrEqual(t, len(s), 128)
		require.False(t, n == 0 && strings.ContainsAny(strings.FieldsFunc(s, func(r rune) bool { return r == 'e' || r == 'E' })[0], "123456789"), s)
	})
}
