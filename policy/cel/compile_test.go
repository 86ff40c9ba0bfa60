package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy/cel"
)

func TestCompileRefuses(t *testing.T) {
	const where = `pack kg, check "one" (verb create): `
	tests := []struct{ name, rule, want string }{
		{"ErrSyntax", `params.s ==`, where + `1:12: Syntax error`},
		{"ErrEmpty", "  \n", where + `the rule is empty`},
		{"ErrSecondLine", "true &&\n  params.limitt < 5", where + `2:9: reads the undeclared param limitt; the verb's params are id, s, short`},
		{"ErrUndeclared", `params.limitt < 5`, where + `1:7: reads the undeclared param limitt`},
		{"ErrUndeclaredHas", `has(params.limitt)`, `reads the undeclared param limitt`},
		{"ErrUndeclaredNamespace", `params.namespace == "a"`, `the verb declares no param namespace; write token.namespace`},
		{"ErrUndeclaredInLoop", `params.tags.all(t, t == params.oops)`, `reads the undeclared param oops`},
		{"ErrUndeclaredVariable", `input.x == 1`, where + `1:1: undeclared reference to 'input'`},
		{"ErrNotBoolean", `params.s`, where + `1:7: gives string, not bool; a rule is a boolean`},
		{"ErrDyn", `params.rest`, `gives dyn, not bool`},
		{"ErrNullableBool", `params.maybe == null ? null : true`, `found no matching overload for '?:' applied to '(bool, null, bool)'`},
		{"ErrWrongTypes", `params.s < 5`, where + `1:10: found no matching overload for '<' applied to '(string, int)'`},
		{"ErrStringIn", `params.limit in params.tags`, `found no matching overload for 'in' applied to '(int, list(string))'`},
		{"ErrWholeParams", `params == params`, where + `1:1: params is read by member only; write params.<name>`},
		{"ErrDynParams", `dyn(params).s == "x"`, `params is read by member only`},
		{"ErrIndexParams", `params["s"] == "x"`, `params is read by member only`},
		{"ErrDotParams", `dyn(.params).s == "x"`, `params is read by member only`},
		{"ErrParamsAlone", `params`, `params is read by member only`},
		{"ErrWholeToken", `dyn(token).namespace == "x"`, `token is read by member only`},
		{"ErrWholeActor", `dyn(token.actor).id == "x"`, `token.actor is read by member only; write token.actor.<name>`},
		{"ErrTokenMember", `token.ns == "x"`, `undefined field 'ns'`},
		{"ErrActorMember", `token.actor.name == "x"`, `undefined field 'name'`},
		{"ErrShadow", `params.items.all(params, params.secret == 1)`, `params is a variable already; give the element another name`},
		{"ErrShadowNow", `params.items.all(now, true)`, `now is a variable already`},
		{"ErrConstructParams", `type(params.s) == string && create{} == create{}`, `undeclared reference`},
		{"ErrFunction", `params.s.lowerAscii() == "x"`, `undeclared reference to 'lowerAscii'`},
		// fc-080
		{"ErrRegex", `params.s.matches("(")`, where + "1:18: the pattern does not parse: error parsing regexp: missing closing )"},
		{"ErrRegexGlobal", `matches(params.s, "(")`, "1:19: the pattern does not parse"},
		{"ErrRegexRepeat", `params.s.matches("a{1000}{1000}")`, "the pattern does not parse: error parsing regexp: invalid nested repetition"},
		{"ErrRegexTooLarge", `params.s.matches("(a?){400}a{400}")`, "the pattern compiles to 2002 instructions, more than the limit of 1000"},
		{"ErrRegexOfCaller", `params.s.matches(params.short)`, "the pattern of matches must be a string literal"},
		{"ErrRegexComputed", `params.s.matches("a" + "b")`, "the pattern of matches must be a string literal"},
		{"ErrDuration", `now - timestamp("2026-01-01T00:00:00Z") < duration("x")`, `invalid duration argument`},
		{"ErrTimestamp", `now < timestamp("yesterday")`, `invalid timestamp argument`},
		{"ErrNesting3", `params.nums.all(a, params.nums.all(b, params.nums.all(c, a + b + c > 0)))`, `comprehension exceeds nesting limit`},
		{"ErrCost", `params.items.all(a, params.items.all(b, a == b))`, `more than the limit of 4000000; lower max_length or max_items`},
		{"ErrCostPattern", `params.s.matches("(a?){200}a{200}")`, `more than the limit of`},
		{"ErrCostUnknown", `params.items.map(a, a.b).all(x, x.startsWith(x))`, `more than the limit of`},
		// fc-071: functions that eat time or memory are not in the language.
		{"ErrIndexOf", `params.s.indexOf(params.short) >= -1`, `undeclared reference to 'indexOf'`},
		{"ErrReplace", `size(params.s.replace("a", params.short)) > 0`, `undeclared reference to 'replace'`},
		{"ErrJoin", `params.tags.join(",") != ""`, `undeclared reference to 'join'`},
		{"ErrFormat", `"%s".format([params.s]) != ""`, `undeclared reference to 'format'`},
		// fc-079
		{"ErrParentheses", strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000), where},
		{"ErrLists", strings.Repeat("[", 250) + strings.Repeat("]", 250) + " == []", where},
		{"ErrTooLong", `params.s == "` + strings.Repeat("x", 100_000) + `"`, `size`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := cel.Compile([]packs.Manifest{manifest(one(tt.rule))}, cel.Config{})
			require.Nil(t, set)
			require.ErrorContains(t, err, tt.want)
			require.Less(t, len(err.Error()), 2000)
		})
	}
}

func TestCompileMessageRule(t *testing.T) {
	compile := func(message string) error {
		_, err := cel.Compile([]packs.Manifest{manifest(packs.Check{Name: "one", Rule: "true", MessageRule: message, Verbs: []string{"create"}})}, cel.Config{})
		return err
	}
	require.NoError(t, compile(`"limit is " + string(params.limit)`))
	require.ErrorContains(t, compile(`params.limit`), `check "one" (verb create), message_rule: 1:7: gives int, not string; a message_rule is a string`)
	for _, message := range []string{
		`"not " + params.secret`, `has(params.secret) ? "a" : "b"`, `params.secret == "x" ? "a" : "b"`, `[params.secret].map(x, x)[0]`,
	} {
		require.ErrorContains(t, compile(message), "a message must not read the sensitive param secret", message)
	}
	for _, message := range []string{`dyn(params).secret`, `[params].map(p, dyn(p).secret)[0]`, `string(params)`} {
		require.ErrorContains(t, compile(message), "params is read by member only", message)
	}
}

func TestCompileJoinsEveryProblem(t *testing.T) {
	m := manifest(
		one(`params.limitt < 5 && params.tagz == []`),
		packs.Check{Name: "two", Rule: `params.id`, Message: "x"},                          // wrong for both verbs, said once
		packs.Check{Name: "three", Rule: `params.s == "x"`, Message: "x"},                  // get has no such param
		packs.Check{Name: "four", Rule: `true`, Message: "x", Verbs: []string{"creat"}},    // no such verb
		packs.Check{Name: "five", Rule: `true`, Verbs: []string{"create"}},                 // no message
		packs.Check{Name: "six", Rule: `1 +`, MessageRule: `1`, Verbs: []string{"create"}}, // both wrong
	)
	_, err := cel.Compile([]packs.Manifest{m}, cel.Config{})
	require.Equal(t, []string{
		`pack kg, check "four": names the verb creat, which the pack does not declare; declare it or correct the name`,
		`pack kg, check "one" (verb create): 1:7: reads the undeclared param limitt; the verb's params are id, s, short, limit, weight, on, at, tags, nums, weights, times, list, meta, items, rest, maybe, maybe_limit, maybe_at, maybe_list, secret, in`,
		`pack kg, check "one" (verb create): 1:28: reads the undeclared param tagz; the verb's params are id, s, short, limit, weight, on, at, tags, nums, weights, times, list, meta, items, rest, maybe, maybe_limit, maybe_at, maybe_list, secret, in`,
		`pack kg, check "two" (verbs create, get): 1:7: gives string, not bool; a rule is a boolean that is true when the params are fine`,
		`pack kg, check "five": has neither or both of message and message_rule; keep one`,
		`pack kg, check "six" (verb create): 1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`,
		`pack kg, check "six" (verb create), message_rule: 1:1: gives int, not string; a message_rule is a string`,
		`pack kg, check "three" (verb get): 1:7: reads the undeclared param s; the verb's params are id`,
	}, strings.Split(err.Error(), "\n"))
}

func TestCompileNamesThePlaceInTheFile(t *testing.T) {
	ck := packs.Check{
		Name: "one", Rule: "true &&\nparams.oops", MessageRule: "'a' +\n'b' + 1", Verbs: []string{"create"},
		File: "packs/kg.yaml", Line: 12, Column: 9, MessageLine: 20, MessageColumn: 5,
	}
	_, err := cel.Compile([]packs.Manifest{manifest(ck)}, cel.Config{})
	require.ErrorContains(t, err, `packs/kg.yaml:13:15: pack kg, check "one" (verb create): reads the undeclared param oops`)
	require.ErrorContains(t, err, `packs/kg.yaml:21:9: pack kg, check "one" (verb create), message_rule: found no matching overload for '+'`)

	ck = packs.Check{Name: "one", Rule: "", Message: "x", File: "packs/kg.yaml", Line: 12, Column: 9, Verbs: []string{"create"}}
	_, err = cel.Compile([]packs.Manifest{manifest(ck)}, cel.Config{})
	require.ErrorContains(t, err, `packs/kg.yaml:12:9: pack kg, check "one" (verb create): the rule is empty`)
}

func TestCompileConfig(t *testing.T) {
	_, err := cel.Compile(nil, cel.Config{MaxDepth: -1})
	require.ErrorContains(t, err, "MaxDepth is -1")

	cheap := one(`params.nums.all(n, n > 0)`)
	_, err = cel.Compile([]packs.Manifest{manifest(cheap)}, cel.Config{MaxCost: 100})
	require.ErrorContains(t, err, "more than the limit of 100")
	_, err = cel.Compile([]packs.Manifest{manifest(cheap)}, cel.Config{MaxCost: 1_000_000})
	require.NoError(t, err)

	set, err := cel.Compile(nil, cel.Config{})
	require.NoError(t, err)
	require.NotNil(t, set)
}

// The estimate is over the sizes the manifest allows, and those alone.
func TestCompileCostFollowsTheManifest(t *testing.T) {
	for _, tt := range []struct {
		rule     string
		p        packs.Param
		longer   packs.Param
		sizeName string
	}{
		{`params.p.matches("(a|aa){20}b")`, packs.Param{Type: packs.String, MaxLength: 1000}, packs.Param{Type: packs.String, MaxLength: 1 << 20}, "a string"},
		{`params.p.all(a, params.p.exists(b, b + 1 == a))`, packs.Param{Type: packs.ArrayOf(packs.Integer), MaxItems: 100}, packs.Param{Type: packs.ArrayOf(packs.Integer)}, "a list"},
		{`params.p.all(a, a.startsWith(a))`, packs.Param{Type: packs.ArrayOf(packs.String), MaxLength: 100}, packs.Param{Type: packs.ArrayOf(packs.String)}, "strings of a list"},
		{`params.p.all(k, k < k + "x")`, packs.Param{Type: packs.Object, MaxLength: 100}, packs.Param{Type: packs.Object}, "keys of an object"},
		{`params.p.all(a, a.all(b, b.all(c, c != 1)))`, packs.Param{Type: packs.Any, MaxItems: 10, MaxLength: 10}, packs.Param{Type: packs.Any}, "lists in any"},
		{`params.p.x.y.all(a, a.z.startsWith(a.w))`, packs.Param{Type: packs.Object, MaxItems: 10, MaxLength: 10}, packs.Param{Type: packs.Object}, "members of members"},
	} {
		t.Run(tt.sizeName, func(t *testing.T) {
			for _, p := range []packs.Param{tt.p, tt.longer} {
				p.Name = "p"
				m := packs.Manifest{Name: "kg", Verbs: []packs.Verb{{Name: "x", Params: []packs.Param{p}}},
					Checks: []packs.Check{{Name: "one", Rule: tt.rule, Message: "no"}}}
				_, err := cel.Compile([]packs.Manifest{m}, cel.Config{MaxComprehensions: 3})
				if p.MaxLength == tt.p.MaxLength && p.MaxItems == tt.p.MaxItems {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "more than the limit of 4000000")
				}
			}
		})
	}
}

// A rule over values of a size that CEL cannot tell, or that it makes itself, is too dear, not free.
func TestCompileUnknownSizesAreTooDear(t *testing.T) {
	for _, rule := range []string{
		`params.items.map(a, a.b).all(x, x.startsWith(x))`,
		`params.items.map(a, a.b) == params.items.map(a, a.c) || ` + strings.Repeat(`params.nums.map(a, params.nums) == params.nums.map(a, params.nums) || `, 4) + "true",
	} {
		_, err := cel.Compile([]packs.Manifest{manifest(one(rule))}, cel.Config{})
		require.ErrorContains(t, err, "more than the limit of", rule)
	}
}

func TestCompileTwoPacksOneVerb(t *testing.T) {
	_, err := cel.Compile([]packs.Manifest{manifest(), manifest()}, cel.Config{})
	require.ErrorContains(t, err, "pack kg: the verb create is declared twice")
}

func TestCompileUnknownType(t *testing.T) {
	m := manifest(one("true"))
	m.Verbs[0].Params[0].Type = "thing"
	_, err := cel.Compile([]packs.Manifest{m}, cel.Config{})
	require.ErrorContains(t, err, `pack kg: verb create: param id: the type "thing" is none of the manifest's`)
}

// What packs are expected to write is within the default limits.
func TestCompileAllowsUsualRules(t *testing.T) {
	for _, rule := range []string{
		`params.items.all(i, has(i.kind) && i.kind in ["entity", "note"] && (!has(i.name) || size(i.name) <= 256))`,
		`params.items.all(i, !has(i.source_id) || i.source_id != i.target_id)`,
		`!has(params.tags) || params.tags.all(t, size(t) > 0 && size(t) <= 64)`,
		`!has(params.tags) || params.tags.all(t, params.tags.filter(u, u == t).size() == 1)`,
		`params.s.matches("^[a-z][a-z0-9_]{0,63}$")`,
		`params.s.contains(params.short)`,
		`[has(params.s), has(params.short), has(params.id)].filter(x, x).size() <= 1`,
	} {
		compile(t, one(rule))
	}
}
