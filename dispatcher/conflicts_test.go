package dispatcher_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/policy"
)

func TestWriteConflicts(t *testing.T) {
	conflict := dispatcher.CodeWriteConflict
	for _, tc := range []struct {
		name, ops string
		want      []dispatcher.Code
	}{
		{"OK different keys", `[probe.put(id="a"), probe.put(id="b")]`, []dispatcher.Code{"", ""}},
		{"Err the same key, all of them", `[probe.put(id="a"), probe.echo(id="a"), probe.put(id="a"), probe.put(id="a")]`, []dispatcher.Code{conflict, "", conflict, conflict}},
		{"Err a key within another's list", `[probe.put(id="a"), probe.put(ids=["b","a"])]`, []dispatcher.Code{conflict, conflict}},
		{"Err with itself", `probe.put(ids=["a","b","a"])`, []dispatcher.Code{conflict}},
		{"OK text is compared as it is", `[probe.put(id="a"), probe.put(id="A"), probe.put(id="a ")]`, []dispatcher.Code{"", "", ""}},
		{"OK JSON form", `[{"tool":"probe.put","args":{"id":"a"}},{"tool":"probe.put","args":{"id":"b"}}]`, []dispatcher.Code{"", ""}},
		{"Err JSON form", `[{"tool":"probe.put","args":{"id":"a"}},{"tool":"probe.put","args":{"id":"\u0061"}}]`, []dispatcher.Code{conflict, conflict}},
		{"OK chains run in order", `probe.put(id="a") | probe.put(id="a")`, []dispatcher.Code{"", ""}},
		{"OK help takes no part", `[probe.put(id="a", help=true), probe.put(id="a")]`, []dispatcher.Code{"", ""}},
		{"Err malformed namespaces have their own answer", `[probe.put(id="a", namespace=null), probe.put(id="a")]`, []dispatcher.Code{dispatcher.CodeInvalidNamespace, ""}},
		{"Err wrong help has its own answer", `[probe.put(id="a", help=1), probe.put(id="a")]`, []dispatcher.Code{dispatcher.CodeInvalidParams, ""}},
		{"Err non-strings give no key", `[probe.put(id=1), probe.put(id=1)]`, []dispatcher.Code{dispatcher.CodeInvalidParams, dispatcher.CodeInvalidParams}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			env := h.run(tc.ops)
			got := make([]dispatcher.Code, len(env.Results))
			for i, e := range env.Results {
				got[i] = e.Code
			}
			require.Equal(t, tc.want, got)
			calls := 0
			for _, s := range h.taken() {
				if s == "call probe.put" || s == "call probe.echo" {
					calls++
				}
			}
			require.LessOrEqual(t, calls, env.Summary.Succeeded, "what conflicts never ran")
		})
	}
}

func TestWriteConflictTeaches(t *testing.T) {
	h := newHouse(t)
	env := h.run(`[probe.put(id="a"), probe.put(id="b"), probe.put(id="a")]`)
	require.Contains(t, env.Results[2].Error, `operations 0, 2 of this request all write record:"a"`)
	require.Contains(t, env.Results[2].Error, "chain")
	for _, rec := range h.records { // in the order in which the operations ended
		require.Equal(t, rec.Index == 1, rec.Kind == policy.KindDecision)
	}
}
