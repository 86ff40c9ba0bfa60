package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxConfigBytes bounds a configuration file. A larger one is not a configuration file.
const maxConfigBytes = 1 << 20

// fileError is what is wrong with a configuration file, and where.
type fileError struct {
	File         string
	Line, Column int // 1-based; 0 when the whole file is meant
	Problem      string
}

func (e *fileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// loadFile lays the file at path over c.
func (c *config) loadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("configuration: %w; \"verbgate init DIR\" writes one", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxConfigBytes {
		return &fileError{File: path, Problem: fmt.Sprintf("more than %d bytes are not a configuration", maxConfigBytes)}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return c.load(text, path, filepath.Dir(abs))
}

// load lays the YAML text over c. name is what errors call the file, base the folder that relative
// paths start from. All problems but those of the syntax are reported together.
func (c *config) load(text []byte, name, base string) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some editors begin every file with a byte order mark
	l := &loader{file: name, base: base, settings: c.settings()}
	doc, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()) // the walk below finds repeated keys
	if err != nil {
		return l.syntax(err)
	}
	if len(doc.Docs) > 1 && doc.Docs[1].Body != nil {
		l.problem(doc.Docs[1].Body.GetToken(), "a second document; one file holds one configuration")
	} else if len(doc.Docs) > 0 && doc.Docs[0].Body != nil {
		l.section("", doc.Docs[0].Body)
	}
	return errors.Join(l.problems...)
}

type loader struct {
	file, base string
	settings   []setting
	problems   []error
}

func (l *loader) syntax(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) {
		return &fileError{File: l.file, Problem: "not YAML: " + firstLine(err.Error())}
	}
	e := &fileError{File: l.file, Problem: firstLine(at.GetMessage())}
	if tk := at.GetToken(); tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line, tk.Position.Column
	}
	return e
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (l *loader) problem(tk *token.Token, format string, args ...any) {
	e := &fileError{File: l.file, Problem: fmt.Sprintf(format, args...)}
	if tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line, tk.Position.Column
	}
	l.problems = append(l.problems, e)
}

// section reads a mapping of keys below prefix, which is "" or ends in a dot.
func (l *loader) section(prefix string, node ast.Node) {
	entries, ok := l.entries(strings.TrimSuffix(prefix, "."), node)
	if !ok {
		return
	}
	for _, e := range entries {
		key := prefix + e.name
		at := slices.IndexFunc(l.settings, func(s setting) bool { return s.key == key })
		switch {
		case at >= 0:
			l.setting(l.settings[at], e)
		case slices.ContainsFunc(l.settings, func(s setting) bool { return strings.HasPrefix(s.key, key+".") }):
			l.section(key+".", e.node)
		default:
			l.problem(e.token, "unknown key %s; the keys here are %s", key, strings.Join(l.keysBelow(prefix), ", "))
		}
	}
}

// keysBelow lists the next names after prefix.
func (l *loader) keysBelow(prefix string) []string {
	var out []string
	for _, s := range l.settings {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

type entry struct {
	name  string
	token *token.Token
	node  ast.Node
}

// entries returns the members of a mapping; none for null. It reports everything that is not one.
func (l *loader) entries(key string, node ast.Node) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.NullNode:
		return nil, true
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.CommentGroupNode:
		return nil, true
	default:
		what := "the file"
		if key != "" {
			what = key
		}
		l.problem(node.GetToken(), "%s must be a mapping of keys to values, not %s", what, describe(node))
		return nil, false
	}
	out := make([]entry, 0, len(values))
	seen := map[string]bool{}
	for _, v := range values {
		name, ok := v.Key.(*ast.StringNode)
		if !ok {
			l.problem(v.Key.GetToken(), "a key must be a plain word, not %s", describe(v.Key))
			continue
		}
		if seen[name.Value] {
			l.problem(name.GetToken(), "key %s is there twice", name.Value)
			continue
		}
		seen[name.Value] = true
		out = append(out, entry{name: name.Value, token: name.GetToken(), node: v.Value})
	}
	return out, true
}

// setting reads the value of one key.
func (l *loader) setting(s setting, e entry) {
	before := len(l.problems)
	v := value{base: l.base}
	switch into := s.into.(type) {
	case special:
		into.load(l, s.key, e.node)
		return
	case *[]string:
		v.list = l.list(s.key, e.node)
	case *map[string]string:
		v.table = map[string]string{}
		entries, _ := l.entries(s.key, e.node)
		for _, pair := range entries {
			text := l.text(s.key+"."+pair.name, pair.node)
			if err := checkPack(pair.name); err != nil {
				l.problem(pair.token, "%s: %v", s.key, err)
			} else if err := s.allowed(text); err != nil {
				l.problem(pair.node.GetToken(), "%s.%s: %v", s.key, pair.name, err)
			}
			v.table[pair.name] = text
		}
	case *time.Duration:
		text, ok := plainText(e.node)
		if !ok {
			l.problem(e.node.GetToken(), "%s must be a duration, as 250ms, not %s", s.key, describe(e.node))
		}
		v.text = text
	default:
		v.text = l.text(s.key, e.node)
	}
	if len(l.problems) > before {
		return
	}
	if err := s.put(v); err != nil {
		l.problem(e.node.GetToken(), "%s: %v", s.key, err)
	}
}

func (l *loader) text(key string, node ast.Node) string {
	text, ok := plainText(node)
	if !ok {
		l.problem(node.GetToken(), "%s must be a text, not %s; put it in quotes", key, describe(node))
	}
	return text
}

func plainText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

func (l *loader) list(key string, node ast.Node) []string {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		l.problem(node.GetToken(), "%s must be a list, not %s; write [a, b]", key, describe(node))
		return nil
	}
	out := make([]string, 0, len(seq.Values))
	for _, item := range seq.Values {
		out = append(out, l.text(key, item))
	}
	return out
}

// describe names a node's type as a person would.
func describe(n ast.Node) string {
	switch n.Type() {
	case ast.NullType:
		return "null"
	case ast.BoolType:
		return "a boolean"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.StringType, ast.LiteralType:
		return "a text"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType:
		return "an anchor, alias or tag"
	default:
		return "that"
	}
}
