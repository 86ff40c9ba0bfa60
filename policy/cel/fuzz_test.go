package cel_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/cel"
)

// mirrored rules are written twice, in CEL and in Go. The Go form gets resolved params.
var mirrored = []struct {
	name, rule string
	holds      func(p packs.Params) bool
}{
	{"short", `!has(params.s) || size(params.s) <= 5`, func(p packs.Params) bool {
		return !p.Has("s") || utf8.RuneCountInString(p.String("s")) <= 5
	}},
	{"even", `!has(params.limit) || params.limit % 2 == 0`, func(p packs.Params) bool {
		return !p.Has("limit") || p.Int("limit")%2 == 0
	}},
	{"positive", `!has(params.nums) || params.nums.all(n, n > 0)`, func(p packs.Params) bool {
		return !slices.ContainsFunc(p.List("nums"), func(n any) bool {
			i, err := n.(json.Number).Int64()
			return err != nil || i <= 0
		})
	}},
	{"unique", `!has(params.tags) || params.tags.all(t, params.tags.exists_one(u, u == t))`, func(p packs.Params) bool {
		tags := p.Strings("tags")
		slices.Sort(tags)
		return len(slices.Compact(slices.Clone(tags))) == len(tags)
	}},
	{"one-of-two", `!(has(params.s) && has(params.short))`, func(p packs.Params) bool {
		return !p.Has("s") || !p.Has("short")
	}},
	{"not-null", `!has(params.maybe) || params.maybe != null`, func(p packs.Params) bool {
		value, given := p["maybe"]
		return !given || value != nil
	}},
	{"light", `!has(params.weight) || params.weight < 2.5`, func(p packs.Params) bool {
		return !p.Has("weight") || p.Float("weight") < 2.5
	}},
	{"word", `!has(params.short) || params.short.matches("^[a-z]+$")`, func(p packs.Params) bool {
		return !p.Has("short") || p.String("short") != "" && strings.Trim(p.String("short"), "abcdefghijklmnopqrstuvwxyz") == ""
	}},
}

// FuzzCheck takes any params, resolved or not: no check panics, and after Resolve none passes that Go
// says must not.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"s":"abcdef"}`, `{"s":"a","short":"b"}`, `{"limit":3}`, `{"limit":9007199254740993}`, `{"nums":[1,0]}`, `{"tags":["a","b","a"]}`,
		`{"maybe":null}`, `{"weight":2.5}`, `{"weight":1e400}`, `{"rest":[{"a":[1e400,null,true]}]}`, `{"short":"ab1"}`, `{"items":[{"a":1},{"b":[]}]}`,
		`{"s":5,"limit":"x","nums":{},"tags":[1],"items":7,"meta":[],"at":"x"}`, `{"at":"2025-01-01T00:00:00Z"}`,
	} {
		f.Add(seed)
	}
	var checks []packs.Check
	for _, m := range mirrored {
		checks = append(checks, packs.Check{Name: m.name, Rule: m.rule, Message: "no good", Verbs: []string{"create"}})
	}
	set := compile(f, checks...)
	wild := compile(f,
		one(`!has(params.items) || params.items.all(i, !has(i.a) || i.a == 1 || i.b[0] > 2)`),
		one(`!has(params.rest) || params.rest == null || params.rest.x == params.rest["y"] || size(params.rest) > 1`),
		one(`!has(params.meta) || params.meta.all(k, params.meta[k] != [1, 2.0, "x"])`),
		one(`!has(params.list) || params.list.exists(x, x in ["a", "b"]) || params.list == params.weights`),
		one(`!has(params.at) || params.at < now || params.times[0] > now`),
	)
	verb := manifest().Verbs[0]
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var params map[string]any
		if d.Decode(&params) != nil {
			t.Skip()
		}
		in := &policy.Input{Verb: "create", Params: params}
		_ = soundly(t, set, in)
		_ = soundly(t, wild, in)

		resolved, err := verb.Resolve(params)
		if err != nil {
			return
		}
		in.Params = resolved
		err = soundly(t, set, in)
		for _, m := range mirrored {
			if !m.holds(resolved) {
				require.Error(t, err, "%s does not hold", m.name)
				return
			}
		}
		var failed *packs.CheckError
		if errors.As(err, &failed) { // only for numbers CEL cannot hold exactly
			require.Contains(t, failed.Message, "exactly")
		}
	})
}

// soundly runs the checks; whatever comes out is fit to be shown, and no panic was behind it.
func soundly(t *testing.T, set *cel.Set, in *policy.Input) error {
	err := set.Check(t.Context(), in)
	if err == nil {
		return nil
	}
	var failed *packs.CheckError
	require.ErrorAs(t, err, &failed)
	require.NotEmpty(t, failed.Message)
	if failed.Err != nil {
		require.NotContains(t, failed.Err.Error(), "panic")
		require.NotContains(t, failed.Err.Error(), "internal error")
	}
	return err
}
