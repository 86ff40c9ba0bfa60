package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The house: which room may import which, and what each may bring from outside. This is the one place
// where it is written down; a new arrow needs a line here and a reason.
//
// Beyond the first plan: packs/sqlite is the one way to open a SQLite file, so both the packs' backends
// (wired by cmd) and the audit store use it; it translates the driver's failures to the errors of
// packs, which the audit store therefore knows. wire/mcp knows policy for the actor of a connection.
const module = "github.com/verbgate/verbgate"

type room struct {
	ours    []string // rooms its program files may import; tests may import any room
	outside []string // prefixes of import paths outside the standard library
}

var everything = []string{"*"}

var house = map[string]room{
	"dispatcher/request": {},
	"policy":             {},
	"packs":              {},
	"packs/core":         {ours: []string{"packs"}},
	"packs/kg":           {ours: []string{"packs"}, outside: []string{"github.com/google/uuid"}},
	"packs/memory":       {ours: []string{"packs"}, outside: []string{"github.com/google/uuid"}},
	"packs/declarative":  {ours: []string{"packs"}, outside: []string{"github.com/goccy/go-yaml"}},
	"packs/sqlite":       {ours: []string{"packs"}, outside: []string{"modernc.org/sqlite"}},
	"policy/opa":         {ours: []string{"policy"}, outside: []string{"github.com/open-policy-agent/opa"}},
	"policy/cel":         {ours: []string{"policy", "packs"}, outside: []string{"github.com/google/cel-go"}},
	"policy/suite":       {ours: []string{"policy", "policy/opa", "policy/cel", "dispatcher", "dispatcher/request", "packs"}},
	"dispatcher":         {ours: []string{"policy", "packs", "dispatcher/request"}, outside: []string{"github.com/google/uuid"}},
	"dispatcher/audit":   {ours: []string{"dispatcher", "policy", "packs", "packs/sqlite"}},
	"wire":               {},
	"wire/session":       {ours: []string{"wire"}, outside: []string{"golang.org/x/sys/unix"}}, // the peer of a socket on macOS
	"wire/mcp":           {ours: []string{"dispatcher", "dispatcher/request", "packs"}, outside: []string{"github.com/mark3labs/mcp-go", "github.com/google/uuid"}},
	"policytests":        {},
	"cmd/verbgate":       {ours: everything, outside: []string{"github.com/spf13/", "github.com/google/uuid", "github.com/goccy/go-yaml", "github.com/mark3labs/mcp-go/client", "github.com/mark3labs/mcp-go/mcp"}},
}

// What tests may use besides what their room may.
var testOutside = []string{
	"github.com/stretchr/testify", "go.uber.org/goleak", "github.com/rogpeppe/go-internal", "github.com/google/uuid",
	"github.com/modelcontextprotocol/go-sdk", "github.com/mark3labs/mcp-go", "github.com/open-policy-agent/opa",
}

// What may stand at the top level, beside dotfiles.
var topLevel = []string{"policy", "dispatcher", "packs", "wire", "cmd", "policytests", "go.mod", "go.sum", "README.md"}

// ignored are visible top-level entries that git does not keep; see .gitignore.
var ignoredFiles = regexp.MustCompile(`(^verbgate$)|(\.(test|prof)$)`)

// fixedVersions are the lines of go.mod that were decided on and not just found to work.
var fixedVersions = []string{
	"module " + module,
	"go 1.26.0",
	"\tgithub.com/open-policy-agent/opa v1.22.3",
	"\tgithub.com/google/cel-go v0.31.0",
	"\tgithub.com/mark3labs/mcp-go v1.2.1",
	"\tgithub.com/stretchr/testify v1.12.1",
	"\tmodernc.org/sqlite v1.62.0",
	"tool honnef.co/go/tools/cmd/staticcheck",
}

const maxLines = 500

type sourceFile struct {
	path    string // below the module's root, with slashes
	pkg     string // its folder
	name    string // its package clause
	test    bool
	imports []string
	doc     bool // the file has a package comment
	lines   int
	todos   []string
}

func readHouse(t *testing.T, root string) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			base := path.Base(rel)
			if rel != "." && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := readSource(p, rel)
		files = append(files, f)
		return err
	})
	require.NoError(t, err)
	return files
}

func readSource(file, rel string) (sourceFile, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return sourceFile{}, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, rel, text, parser.ParseComments)
	if err != nil {
		return sourceFile{}, err
	}
	f := sourceFile{
		path: rel, pkg: path.Dir(rel), name: parsed.Name.Name,
		test:  strings.HasSuffix(rel, "_test.go"),
		doc:   parsed.Doc != nil && strings.HasPrefix(parsed.Doc.Text(), docStart(parsed.Name.Name)),
		lines: strings.Count(string(text), "\n"),
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		f.imports = append(f.imports, imported)
	}
	f.todos = unfinished(set, parsed.Comments)
	return f, nil
}

func docStart(name string) string {
	if name == "main" {
		return "Command "
	}
	return "Package " + name + " "
}

var unfinishedWord = regexp.MustCompile(`\b(` + "TO" + `DO|FIX` + `ME|XX` + `X)\b`)

func unfinished(set *token.FileSet, groups []*ast.CommentGroup) []string {
	var out []string
	for _, g := range groups {
		if unfinishedWord.MatchString(g.Text()) {
			out = append(out, set.Position(g.Pos()).String())
		}
	}
	return out
}

// arrows checks the imports of the files against the house and names every one that is not in it.
func arrows(files []sourceFile) []string {
	var problems []string
	for _, f := range files {
		allowed, known := house[f.pkg]
		if !known {
			problems = append(problems, fmt.Sprintf("%s: the house has no room %s", f.path, f.pkg))
			continue
		}
		for _, imported := range f.imports {
			switch ours, isOurs := strings.CutPrefix(imported, module+"/"); {
			case isOurs:
				if !f.test && !slices.Contains(allowed.ours, ours) && !slices.Contains(allowed.ours, "*") && ours != f.pkg {
					problems = append(problems, fmt.Sprintf("%s: %s may not import %s", f.path, f.pkg, ours))
				}
				if _, ok := house[ours]; !ok {
					problems = append(problems, fmt.Sprintf("%s: the house has no room %s", f.path, ours))
				}
			case standard(imported):
			case !hasPrefix(allowed.outside, imported) && !(f.test && hasPrefix(testOutside, imported)):
				problems = append(problems, fmt.Sprintf("%s: %s may not import %s", f.path, f.pkg, imported))
			}
		}
	}
	return problems
}

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func hasPrefix(prefixes []string, s string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return s == p || strings.HasPrefix(s, strings.TrimSuffix(p, "/")+"/")
	})
}

// reachable lists everything outside the standard library that is reachable from a room's program
// files through our own packages, as room → import path.
func reachable(files []sourceFile, from string) map[string]string {
	out := map[string]string{}
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, f := range files {
			if f.pkg != pkg || f.test {
				continue
			}
			for _, imported := range f.imports {
				if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
					visit(ours)
				} else if !standard(imported) {
					out[imported] = pkg
				}
			}
		}
	}
	visit(from)
	return out
}

func TestHouse(t *testing.T) {
	root := filepath.Join("..", "..")
	files := readHouse(t, root)
	require.NotEmpty(t, files)

	t.Run("OKArrows", func(t *testing.T) {
		require.Empty(t, arrows(files))
	})
	t.Run("OKNothingHeavyBehindTheDispatcher", func(t *testing.T) {
		for imported, pkg := range reachable(files, "dispatcher") {
			require.Truef(t, hasPrefix([]string{"github.com/google/uuid"}, imported), "%s, reachable from dispatcher, imports %s", pkg, imported)
		}
	})
	t.Run("OKTopLevel", func(t *testing.T) {
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		for _, e := range entries {
			name := e.Name()
			if strings.HasPrefix(name, ".") || ignoredFiles.MatchString(name) {
				continue
			}
			require.Contains(t, topLevel, name)
		}
	})
	t.Run("OKPackageComments", func(t *testing.T) {
		has := map[string]int{}
		for _, f := range files {
			if f.test {
				continue
			}
			if f.doc {
				has[f.pkg]++
			} else if has[f.pkg] == 0 {
				has[f.pkg] = 0
			}
		}
		for pkg, n := range has {
			require.Equalf(t, 1, n, "%s has %d package comments that begin as one should", pkg, n)
		}
	})
	t.Run("OKVersions", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		for _, fixed := range fixedVersions {
			require.Contains(t, lines, fixed)
		}
		require.NotContains(t, string(text), "replace", "what is built is what is named")
	})
	t.Run("OKFilesShort", func(t *testing.T) {
		for _, f := range files {
			require.LessOrEqualf(t, f.lines, maxLines, "%s has %d lines", f.path, f.lines)
		}
	})
	t.Run("OKNothingUnfinished", func(t *testing.T) {
		for _, f := range files {
			require.Empty(t, f.todos)
		}
	})
	t.Run("OKPacksFileImportsOnly", func(t *testing.T) {
		parsed, err := parser.ParseFile(token.NewFileSet(), "packs.go", nil, 0)
		require.NoError(t, err)
		require.NotEmpty(t, parsed.Imports)
		for _, spec := range parsed.Imports {
			require.NotNil(t, spec.Name)
			require.Equal(t, "_", spec.Name.Name)
		}
		require.Len(t, parsed.Decls, 1, "packs.go is nothing but blank imports")
	})
}

// The checks themselves must see what is wrong.
func TestHouseSees(t *testing.T) {
	file := func(p string, imports ...string) sourceFile {
		return sourceFile{path: p, pkg: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), imports: imports}
	}
	cases := []struct {
		name string
		file sourceFile
		want string // "" means fine
	}{
		{"OKDown", file("dispatcher/run.go", module+"/policy", "context"), ""},
		{"OKTestAnyRoom", file("dispatcher/run_test.go", module+"/policy/opa", "github.com/stretchr/testify/require"), ""},
		{"OKSubpackage", file("policy/opa/gate.go", "github.com/open-policy-agent/opa/v1/rego"), ""},
		{"ErrUp", file("packs/kg/kg.go", module+"/dispatcher"), "packs/kg may not import dispatcher"},
		{"ErrEngineInDispatcher", file("dispatcher/run.go", "github.com/open-policy-agent/opa/v1/rego"), "dispatcher may not import github.com/open-policy-agent/opa/v1/rego"},
		{"ErrDriverInPack", file("packs/kg/kg.go", "modernc.org/sqlite"), "packs/kg may not import modernc.org/sqlite"},
		{"ErrTestToolInProgram", file("packs/kg/kg.go", "github.com/stretchr/testify/require"), "packs/kg may not import github.com/stretchr/testify/require"},
		{"ErrNoRoom", file("util/strings.go", "strings"), "the house has no room util"},
		{"ErrLooksAlike", file("policy/cel/set.go", "github.com/google/cel-gopher"), "may not import github.com/google/cel-gopher"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			problems := arrows([]sourceFile{c.file})
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0], c.want)
		})
	}
	t.Run("ErrHeavyTwoRoomsAway", func(t *testing.T) {
		files := []sourceFile{file("dispatcher/run.go", module+"/packs"), file("packs/open.go", "modernc.org/sqlite")}
		require.Equal(t, map[string]string{"modernc.org/sqlite": "packs"}, reachable(files, "dispatcher"))
	})
	t.Run("ErrUnfinished", func(t *testing.T) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, "x.go", "package x\n\n// TO"+"DO: later\nvar x int\n", parser.ParseComments)
		require.NoError(t, err)
		require.Equal(t, []string{"x.go:3:1"}, unfinished(set, parsed.Comments))
	})
}
