package opa_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

// refused opens a gate that must not open.
func refused(t *testing.T, cfg opa.Config) *opa.LoadError {
	t.Helper()
	told := 0
	cfg.OnActivation = func(a opa.Activation) {
		told++
		require.Error(t, a.Err)
		require.Empty(t, a.Revision)
	}
	g, err := opa.New(cfg)
	require.NoError(t, err)
	err = g.Open(t.Context())
	var load *opa.LoadError
	require.ErrorAs(t, err, &load)
	require.Equal(t, 1, told)
	require.Equal(t, err, g.Status().LastError)
	require.Empty(t, g.Status().Revision)
	require.NoError(t, g.Close())
	return load
}

func TestErrActivation(t *testing.T) {
	const good = "decision := true"
	cases := []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"Err empty", fstest.MapFS{"readme.txt": {}}, "there is no .rego file in it"},
		{"Err only data", fstest.MapFS{"data.json": {Data: []byte(`{"verbgate": {"gate": {"decision": true}}}`)}}, "there is no .rego file in it"},
		{"Err only tests", fstest.MapFS{"gate_test.rego": {Data: []byte("package verbgate.gate\n\ndecision := true")}}, "there is no .rego file in it"},
		{"Err does not parse", files("decision := {"), "gate.rego:3:13: "},
		{"Err entry point misspelt", files("decison := true\n\nother := 1"), "the entry point data.verbgate.gate.decision is not there: its package defines decison, other"},
		{"Err package misspelt", fstest.MapFS{"gate.rego": {Data: []byte("package verbgate.gates\n\ndecision := true")}}, "no rule of the policy defines it, the packages are data.verbgate.gates"},
		{"Err entry point a function", files("decision(x) := x"), "is a function"},
		{"Err misspelt member of the token", files("decision if input.tokn.namespace == \"local\""), "gate.rego:3:13: undefined ref: input.tokn.namespace"},
		{"Err misspelt verb", files("decision if input.verbb == \"get\""), `gate.rego:3:13: undefined ref: input.verbb; have: "verbb"; want (one of): ["category" "context" "pack" "params" "resource" "token" "verb"]`},
		{"Err misspelt deep member", files("decision if input.token.actor.group[_] == \"staff\""), "undefined ref: input.token.actor.group"},
		{"Err member of another type", files("decision if input.verb == 7"), "gate.rego:3:13: match error; left : string; right : number"},
		{"Err array of another type", files("decision if input.token.read[0] == 7"), "gate.rego:3:13: match error"},
		{"Err unsafe variable", files("decision if x == 1"), "gate.rego:3:13: var x is unsafe"},
		{"Err misspelt built-in function", files("decision if bits.sand(1, 2) == 0"), "gate.rego:3:13: undefined function bits.sand"},
		{"Err http.send", files("decision if http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1:9/\"}).status_code == 200"),
			"gate.rego:3:13: undefined function http.send; this built-in function is withheld"},
		{"Err http.send by with", files("decision if count(input.params) == 1 with count as http.send"), "gate.rego:3:52: var http is unsafe; if a built-in function is meant: some of http. are withheld"},
		{"Err opa.runtime by with", files("decision if count(input.params) == 1 with count as opa.runtime"), "var opa is unsafe; if a built-in function is meant: some of opa. are withheld"},
		{"Err opa.runtime", files("decision if opa.runtime().env.HOME"), "undefined function opa.runtime"},
		{"Err look-up of names", files("decision if net.lookup_ip_addr(\"localhost\")"), "undefined function net.lookup_ip_addr"},
		{"Err bits.lsh", files("decision if bits.lsh(1, 2000000000) == 0"), "undefined function bits.lsh"},
		{"Err trace", files("decision if trace(\"x\")"), "undefined function trace"},
		{"Err schema by reference", files("decision if json.match_schema({}, {\"$ref\": \"http://127.0.0.1:9/\"})"), "undefined function json.match_schema"},
		{"Err certificates", files("decision if crypto.x509.parse_and_verify_certificates(\"\")"), "undefined function crypto.x509.parse_and_verify_certificates"},
		{"Err a shut function that is not called by the entry point", files(good + "\n\nunused if opa.runtime()"), "undefined function opa.runtime"},
		{"Err rules and data collide", files(good, "data.json", `{"verbgate": {"gate": {"decision": {"x": 1}}}}`), "conflict"},
		{"Err data does not parse", files(good, "data.json", `{"a": `), "data.json"},
		{"Err data with a huge number", files(good, "data.json", `{"a": 1e3000000}`), "number too big"},
		{"Err data no object", files(good, "data.json", `[1]`), ""},
		{"Err data twice", files(good, "data.json", `{"a": 1}`, "data.yaml", "a: 2"), ""},
		{"Err version 0 syntax without a manifest", files("decision = true { input.verb == \"get\" }"), "`if` keyword is required"},
		{"Err version 1 asked for", files("decision = true { input.verb == \"get\" }", ".manifest", `{"rego_version": 1}`), "`if` keyword is required"},
		{"Err version 2 asked for", files(good, ".manifest", `{"rego_version": 2}`), "rego_version 2; 0 and 1 are supported"},
		{"Err manifest does not parse", files(good, ".manifest", `{`), "manifest"},
		{"Err outside the roots", files(good, ".manifest", `{"roots": ["other"]}`), "manifest roots"},
		{"Err two manifests", files(good, ".manifest", `{}`, "sub/.manifest", `{}`), "multiple manifest files"},
		{"Err WebAssembly", files(good, "policy.wasm", "\x00asm"), "policy.wasm: only Rego and data run here"},
		{"Err plan", files(good, "plan.json", "{}"), "plan.json: only Rego and data run here"},
		{"Err delta bundle", files(good, "patch.json", `{"data": []}`), "patch.json: only Rego and data run here"},
		{"Err signed", files(good, ".signatures.json", `{"signatures": ["x"]}`), "signed, and there is no key"},
		{"Err recursion", files("decision := a\n\na := b\n\nb := a"), "recursive"},
		{"Err one of many files", func() fstest.MapFS {
			m := files(good)
			for i := range 50 {
				m[strings.Repeat("x", i+1)+".rego"] = &fstest.MapFile{Data: []byte("package p\n\nr" + strings.Repeat("x", i) + " := 1")}
			}
			m["broken.rego"] = &fstest.MapFile{Data: []byte("package p\n\n:=")}
			return m
		}(), "broken.rego:3:1"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := refused(t, opa.Config{FS: tc.files})
			require.Contains(t, err.Error(), "policy (built in) was not activated: ")
			require.Contains(t, err.Error(), tc.want)
		})
	}
}

// Several problems are told at once, in an order that does not change.
func TestErrProblemsAreOrdered(t *testing.T) {
	m := files("decision if input.verbb\n\na if input.tokn\n\nb if input.paramz")
	first := refused(t, opa.Config{FS: m})
	require.Len(t, first.Problems, 3)
	require.Equal(t, []int{3, 5, 7}, []int{first.Problems[0].Line, first.Problems[1].Line, first.Problems[2].Line})
	for range 5 {
		require.Equal(t, first.Error(), refused(t, opa.Config{FS: m}).Error())
	}
}

// What the type check against the input schema must not refuse.
func TestOKActivation(t *testing.T) {
	for name, m := range map[string]fstest.MapFS{
		"OK params are open":           files(`decision if input.params.anything.at[0].all == "x"`),
		"OK claims are open":           files(`decision if input.token.actor.claims.realm_access.roles[_] == "admin"`),
		"OK exists may be null":        files("decision if input.resource.exists == null\n\ndecision if input.resource.exists == true"),
		"OK save_to may be null":       files("decision if is_null(input.context.save_to)\n\ndecision if startswith(input.context.save_to, \"/tmp\")"),
		"OK members by variable":       files(`decision if { some k, v in input; k == "verb"; v == "get" }`),
		"OK walk":                      files(`decision if { some path, value; walk(input, [path, value]); value == "get" }`),
		"OK object.get":                files(`decision if object.get(input, ["params", "a", "b"], 1) == 1`),
		"OK object.get of unknown":     files(`decision if object.get(input, "later", 1) == 1`),
		"OK input whole":               files("decision if f(input)\n\nf(x) if x.verb == \"get\""),
		"OK with on input":             files("decision if ok with input as {\"verb\": \"get\"}\n\nok if input.verb == \"get\""),
		"OK with on a member":          files("decision if ok with input.params.a as 7\n\nok if input.params.a == 7"),
		"OK import":                    files("import rego.v1\nimport input.token as tok\n\ndecision if tok.namespace == \"local\""),
		"OK clock, random and tokens":  files(`decision if { time.now_ns() > 0; rand.intn("x", 5) < 5; uuid.rfc4122("x"); io.jwt.decode("eyJhbGciOiJub25lIn0.e30.") }`),
		"OK print says nothing":        files("decision if { print(\"to nowhere\"); true }"),
		"OK data in YAML":              files("decision if data.x.y == 1", "x/data.yaml", "y: 1"),
		"OK data in JSON":              files("decision if data.x.y == 1", "x/data.json", `{"y": 1}`),
		"OK version 0 by manifest":     files("decision = true { input.verb == \"get\" }", ".manifest", `{"rego_version": 0}`),
		"OK version 0 for one file":    files("decision if data.old.p == true", ".manifest", `{"rego_version": 1, "file_rego_versions": {"/old.rego": 0}}`, "old.rego", "package old\n\np { true }"),
		"OK other files":               files("decision := true", "README.md", "x", "notes.json", "{", "LICENSE", ""),
		"OK broken tests do not judge": files("decision := true", "gate_test.rego", "package"),
		"OK hidden files":              files("decision := true", ".gate.rego.swp", "x", ".hidden/x.rego", "package", ".x.rego", "package"),
		"OK metadata":                  files("# METADATA\n# title: t\ndecision if rego.metadata.rule().title == \"t\""),
	} {
		t.Run(name, func(t *testing.T) {
			g := opened(t, opa.Config{FS: m, Timeout: time.Minute})
			require.NotEqual(t, policy.Unavailable, g.Decide(t.Context(), call(nil)).Verdict)
		})
	}
}

func TestOKVersionZeroDecides(t *testing.T) {
	g := gateOf(t, "decision = true { input.verb == \"get\" }", ".manifest", `{"rego_version": 0}`)
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)
}

func TestAllowBuiltins(t *testing.T) {
	m := files(`decision if bits.lsh(1, 3) == 8`)
	refused(t, opa.Config{FS: m})
	g := opened(t, opa.Config{FS: m, AllowBuiltins: []string{"bits.lsh"}, Timeout: time.Minute})
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)

	// The network stays shut until hosts are named, too.
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	cfg := opa.Config{AllowBuiltins: []string{"http.send"}, Timeout: time.Minute,
		FS: files(`decision if http.send({"method": "get", "url": "` + server.URL + `"}).status_code == 200`)}
	requirePolicyError(t, opened(t, cfg).Decide(t.Context(), call(nil)), "a built-in function failed")
	require.Zero(t, asked)
	cfg.AllowHosts = []string{"127.0.0.1"}
	require.Equal(t, policy.Allow, opened(t, cfg).Decide(t.Context(), call(nil)).Verdict)
	require.Equal(t, 1, asked)
}

func TestRunTests(t *testing.T) {
	const rule = `decision if input.verb == "get"`
	const test = "package verbgate.gate_test\n\nimport data.verbgate.gate\n\n"
	passing := files(rule, "gate_test.rego", test+"test_get if gate.decision with input.verb as \"get\"")
	opened(t, opa.Config{FS: passing, RunTests: true})

	err := refused(t, opa.Config{RunTests: true, FS: files(rule, "gate_test.rego", test+"test_list if gate.decision with input.verb as \"list\"")})
	require.Contains(t, err.Error(), "gate_test.rego:5:1: test test_list failed")
	err = refused(t, opa.Config{RunTests: true, FS: files(rule, "gate_test.rego", test+"test_odd if to_number(\"x\") == 1")})
	require.Contains(t, err.Error(), "test test_odd")
	err = refused(t, opa.Config{RunTests: true, FS: files(rule)})
	require.Contains(t, err.Error(), "it has none")
	err = refused(t, opa.Config{RunTests: true, FS: files(rule, "gate_test.rego", test+"tst_get := true")})
	require.Contains(t, err.Error(), "it has none")
	err = refused(t, opa.Config{RunTests: true, FS: files(rule, "gate_test.rego", test+"test_x if opa.runtime()")})
	require.Contains(t, err.Error(), "undefined function opa.runtime")
}

// Rules in test files are no part of the policy that judges, whether or not the tests are run.
func TestTestFilesDoNotJudge(t *testing.T) {
	m := files("default decision := false\n\ndecision if back_door", "helper.rego", "package verbgate.gate\n\nback_door if false",
		"gate_test.rego", "package verbgate.gate\n\nback_door := true\n\ntest_x if true")
	var revisions []string
	for _, run := range []bool{false, true} {
		g := opened(t, opa.Config{FS: m, RunTests: run, Timeout: time.Minute})
		d := g.Decide(t.Context(), call(nil))
		require.Equal(t, policy.Deny, d.Verdict)
		revisions = append(revisions, d.Revision)
	}
	require.Equal(t, revisions[0], revisions[1])
}

func TestRevision(t *testing.T) {
	revision := func(m fstest.MapFS) string {
		g := opened(t, opa.Config{FS: m, Timeout: time.Minute})
		d := g.Decide(t.Context(), call(nil))
		require.Equal(t, g.Status().Revision, d.Revision)
		return d.Revision
	}
	plain := revision(files("decision := true"))
	require.Regexp(t, `^sha256:[0-9a-f]{32}$`, plain)
	require.Equal(t, plain, revision(files("decision := true", "README.md", "not part of it")))
	require.NotEqual(t, plain, revision(files("decision := false")))
	require.NotEqual(t, plain, revision(files("decision := true", "data.json", `{}`)))
	require.NotEqual(t, revision(files("decision := true", "a/data.json", `{}`)), revision(files("decision := true", "b/data.json", `{}`)))
	require.Equal(t, "v7", revision(files("decision := true", ".manifest", `{"revision": "v7"}`)))
}

func TestErrLimits(t *testing.T) {
	m := files("decision := true", "data.json", `{"a": "`+strings.Repeat("x", 1000)+`"}`)
	require.ErrorContains(t, refused(t, opa.Config{FS: m, MaxBytes: 500}), "over 500 bytes")
	require.ErrorContains(t, refused(t, opa.Config{FS: m, MaxFiles: 1}), "over 1 files")
	opened(t, opa.Config{FS: m, MaxFiles: 2, MaxBytes: 2000})

	home := t.TempDir()
	for i := range 11 {
		require.NoError(t, os.WriteFile(filepath.Join(home, fmt.Sprint(i)), nil, 0o644))
	}
	require.ErrorContains(t, refused(t, opa.Config{Path: home, MaxFiles: 1}), "name the folder of the policy alone")
}

func TestErrConfig(t *testing.T) {
	ok := fstest.MapFS{}
	for name, cfg := range map[string]opa.Config{
		"Err no policy":            {},
		"Err two policies":         {FS: ok, Path: "x"},
		"Err negative timeout":     {FS: ok, Timeout: -1},
		"Err unknown built-in":     {FS: ok, AllowBuiltins: []string{"http.sned"}},
		"Err entry point":          {FS: ok, Entrypoint: "verbgate.gate.decision"},
		"Err entry point data":     {FS: ok, Entrypoint: "data"},
		"Err entry point dot":      {FS: ok, Entrypoint: "data.a."},
		"Err entry point wild":     {FS: ok, Entrypoint: "data.a[_]"},
		"Err entry point injected": {FS: ok, Entrypoint: `data.a["x"]; data.secret`},
		"Err entry point white":    {FS: ok, Entrypoint: "data.a b"},
		"Err entry point digit":    {FS: ok, Entrypoint: "data.1a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := opa.New(cfg)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "rego_")
		})
	}
	_, err := opa.New(opa.Config{Entrypoint: "x", AllowBuiltins: []string{"y"}})
	require.ErrorContains(t, err, "name a policy")
	require.ErrorContains(t, err, `entry point "x"`)
	require.ErrorContains(t, err, `"y"`)
}

func TestEntrypoint(t *testing.T) {
	m := fstest.MapFS{"p.rego": {Data: []byte("package my.own_1\n\nverdict := true")}}
	g := opened(t, opa.Config{FS: m, Entrypoint: "data.my.own_1.verdict", Timeout: time.Minute})
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)
}

func TestErrPlaces(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	require.ErrorContains(t, refused(t, opa.Config{Path: missing}), "policy "+missing+" was not activated: there is no such file or folder")
	single := filepath.Join(dir, "gate.rego")
	require.NoError(t, os.WriteFile(single, []byte("package x"), 0o644))
	require.ErrorContains(t, refused(t, opa.Config{Path: single}), "put the .rego files into a folder")

	linked := t.TempDir()
	writeFiles(t, linked, files("decision := true"))
	require.NoError(t, os.Symlink(dir, filepath.Join(linked, "more")))
	require.ErrorContains(t, refused(t, opa.Config{Path: linked}), "more is a link to a folder")
	require.NoError(t, os.Remove(filepath.Join(linked, "more")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(linked, "more.rego")))
	err := refused(t, opa.Config{Path: linked})
	require.True(t, errors.Is(err, fs.ErrNotExist), err)
}
