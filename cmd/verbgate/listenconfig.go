package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/verbgate/verbgate/dispatcher"
)

// special is a value of the configuration with a form of its own.
type special interface {
	// load reads the value from a file, and reports to l what is wrong with it.
	load(l *loader, key string, node ast.Node)
	// text is the value as YAML, on one line.
	text() string
}

// putSpecial stores a value written as one text outside of a file: the YAML that would stand in one.
func putSpecial(key string, into special, text string) error {
	doc, err := parser.ParseBytes([]byte(text), 0)
	if err != nil || len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return fmt.Errorf("%q is not a value; write it as in the configuration file, on one line", text)
	}
	l := &loader{file: "its value"}
	into.load(l, key, doc.Docs[0].Body)
	return errors.Join(l.problems...)
}

// yesNo is true or false.
type yesNo bool

func (v *yesNo) load(l *loader, key string, node ast.Node) {
	n, ok := node.(*ast.BoolNode)
	if !ok {
		l.problem(node.GetToken(), "%s must be true or false, not %s", key, describe(node))
		return
	}
	*v = yesNo(n.Value)
}

func (v *yesNo) text() string { return strconv.FormatBool(bool(*v)) }

// amount is a number of things; 0 stands for no limit.
type amount int64

func (v *amount) load(l *loader, key string, node ast.Node) {
	n, err := strconv.ParseInt(node.GetToken().Value, 10, 64)
	if _, ok := node.(*ast.IntegerNode); !ok || err != nil || n < 0 {
		l.problem(node.GetToken(), "%s must be a whole number, 0 or more, as 1000000", key)
		return
	}
	*v = amount(n)
}

func (v *amount) text() string { return strconv.FormatInt(int64(*v), 10) }

// span is a duration; 0s stands for no limit.
type span time.Duration

func (v *span) load(l *loader, key string, node ast.Node) {
	text, _ := plainText(node)
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		l.problem(node.GetToken(), "%s must be a duration, as 720h, or 0s for no limit", key)
		return
	}
	*v = span(d)
}

func (v *span) text() string { return shortDuration(time.Duration(*v)) }

// clientRow says who the client with a certificate of that name is.
type clientRow struct {
	Name, Actor, Namespace string
	Visible                []string
}

// clientRows is the table of clients on tls:// sockets.
type clientRows []clientRow

const clientRowForm = "{name: CN=watcher, actor: service:watcher, namespace: ops, visible: [local]}"

func (v *clientRows) load(l *loader, key string, node ast.Node) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		l.problem(node.GetToken(), "%s must be a list, not %s; write [%s]", key, describe(node), clientRowForm)
		return
	}
	rows := make(clientRows, 0, len(seq.Values))
	for _, item := range seq.Values {
		row := loadClientRow(l, key, item)
		if slices.ContainsFunc(rows, func(r clientRow) bool { return r.Name == row.Name }) {
			l.problem(item.GetToken(), "%s: the name %q is there twice", key, row.Name)
		}
		rows = append(rows, row)
	}
	*v = rows
}

func loadClientRow(l *loader, key string, node ast.Node) (row clientRow) {
	entries, ok := l.entries(key, node)
	if !ok {
		return row
	}
	before := len(l.problems)
	for _, e := range entries {
		switch e.name {
		case "name":
			row.Name = l.text(key+".name", e.node)
		case "actor":
			row.Actor = l.checked(key+".actor", e.node, checkActor)
		case "namespace":
			row.Namespace = l.checked(key+".namespace", e.node, checkNamespace)
		case "visible":
			row.Visible = l.list(key+".visible", e.node)
			for _, ns := range row.Visible {
				if err := checkNamespace(ns); err != nil {
					l.problem(e.node.GetToken(), "%s.visible: %v", key, err)
				}
			}
		default:
			l.problem(e.token, "unknown key %s.%s; the keys here are name, actor, namespace, visible", key, e.name)
		}
	}
	if len(l.problems) == before && (row.Name == "" || row.Actor == "" || row.Namespace == "") {
		l.problem(node.GetToken(), "%s: a client has a name, an actor and a namespace, as %s", key, clientRowForm)
	}
	return row
}

// checked reads a text that a rule applies to.
func (l *loader) checked(key string, node ast.Node, check func(string) error) string {
	before := len(l.problems)
	text := l.text(key, node)
	if err := check(text); err != nil && len(l.problems) == before {
		l.problem(node.GetToken(), "%s: %v", key, err)
	}
	return text
}

func (v *clientRows) text() string {
	rows := make([]string, 0, len(*v))
	for _, r := range *v {
		rows = append(rows, fmt.Sprintf("{name: %q, actor: %q, namespace: %q, visible: [%s]}", r.Name, r.Actor, r.Namespace, strings.Join(r.Visible, ", ")))
	}
	return "[" + strings.Join(rows, ", ") + "]"
}

// maxActor is the longest actor, in bytes.
const maxActor = 256

// splitActor takes kind:id apart.
func splitActor(text string) (kind, id string, ok bool) {
	kind, id, ok = strings.Cut(text, ":")
	ok = ok && kind != "" && id != "" && len(text) <= maxActor
	for _, r := range kind {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}
	return kind, id, ok
}

func checkActor(text string) error {
	if _, _, ok := splitActor(text); !ok {
		return fmt.Errorf("%q is not an actor; write its kind and its id, as user:alice or service:watcher", text)
	}
	return nil
}

// maxVisible is how many namespaces a frame may ask to read: each operation looks through them.
const maxVisible = 1024

// checkContext tells what is wrong with the namespaces of a frame.
func checkContext(namespace string, visible []string) error {
	if namespace != "" {
		if err := dispatcher.ValidateNamespace(namespace); err != nil {
			return fmt.Errorf("namespace: %w", err)
		}
	}
	if len(visible) > maxVisible {
		return fmt.Errorf("visible_namespaces: %d are too many; at most %d are allowed", len(visible), maxVisible)
	}
	for i, ns := range visible {
		if err := dispatcher.ValidateNamespace(ns); err != nil {
			return fmt.Errorf("visible_namespaces[%d]: %w", i, err)
		}
	}
	return nil
}
