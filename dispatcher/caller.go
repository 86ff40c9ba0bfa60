package dispatcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/policy"
)

// Source is the edge a request came in by.
type Source string

// The sources of dispatch.md 1. Any value but CLI is a caller from outside, who may not call internal verbs.
const (
	MCP  Source = "mcp"
	Wire Source = "wire"
	CLI  Source = "cli"
)

// Caller is who sends a request and by which way. The edge that carries the connection fills it in;
// nothing in a request can change it.
type Caller struct {
	Source    Source
	Transport string // stdio, http, unix, tls, …
	SessionID string
	Actor     policy.Actor
	Namespace string   // the caller's default namespace; "" means DefaultNamespace
	Visible   []string // further namespaces the caller may read when it names none
}

// DefaultNamespace is the namespace of callers that have none of their own.
const DefaultNamespace = "local"

// maxNamespace is the longest namespace, in bytes.
const maxNamespace = 256

// ValidateNamespace tells what is wrong with a namespace, or nil (dispatch.md 2). The message does not
// repeat the namespace.
func ValidateNamespace(ns string) error {
	switch {
	case ns == "":
		return errors.New("it is empty; leave it out to use your default namespace")
	case len(ns) > maxNamespace:
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(ns), maxNamespace)
	}
	for i := range len(ns) {
		switch c := ns[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		case c == ':':
			if i == 0 || i == len(ns)-1 || ns[i-1] == ':' {
				return fmt.Errorf("it has an empty segment at byte %d; segments are joined by single colons, as in team:project", i)
			}
		default:
			return fmt.Errorf("byte %d is not allowed; use A-Z a-z 0-9 - _ . in segments joined by colons, as in team:project", i)
		}
	}
	return nil
}

// Token says in which namespaces an operation acts and for whom (dispatch.md 2). Only this package
// makes one. It implements packs.Token.
type Token struct {
	namespace string
	explicit  bool
	readable  []string
	actor     policy.Actor
}

// mint makes the token of one operation. given tells whether the params have a namespace, arg what it
// is. A verb called by a verb has the token of the call above; a namespace of its own can narrow it and
// never leads out of it. The error is an *InvalidInput.
func mint(caller *Caller, above *Token, arg any, given bool) (*Token, error) {
	if given {
		ns, err := namespaceArg(arg)
		if err != nil {
			return nil, err
		}
		if above != nil && !above.CanRead(ns) {
			return nil, malformed("a verb called by a verb stays within the namespaces of the call above it")
		}
		return &Token{namespace: ns, explicit: true, readable: []string{ns}, actor: caller.Actor}, nil
	}
	if above != nil {
		return above, nil
	}
	ns := caller.Namespace
	if ns == "" {
		ns = DefaultNamespace
	}
	readable := []string{ns}
	for _, v := range caller.Visible {
		if !slices.Contains(readable, v) {
			readable = append(readable, v)
		}
	}
	for _, r := range readable {
		if err := ValidateNamespace(r); err != nil {
			return nil, malformed("the connection's own namespace is malformed: " + err.Error())
		}
	}
	return &Token{namespace: ns, readable: readable, actor: caller.Actor}, nil
}

// namespaceArg accepts nothing but a valid string, and never repeats what it refuses unless it is one.
func namespaceArg(arg any) (string, error) {
	ns, ok := arg.(string)
	if !ok {
		return "", malformed(fmt.Sprintf("namespace must be a string, not %s; write namespace=\"team\" or leave it out", jsonType(arg)))
	}
	if err := ValidateNamespace(ns); err != nil {
		return "", malformed("namespace is malformed: " + err.Error())
	}
	return ns, nil
}

// malformed is the refusal of a namespace. The message repeats nothing of it.
func malformed(message string) *InvalidInput {
	return &InvalidInput{Code: CodeInvalidNamespace, Message: message}
}

// Namespace is the primary namespace, the one written to.
func (t *Token) Namespace() string { return t.namespace }

// Readable lists the namespaces the operation may read; the primary one comes first.
func (t *Token) Readable() []string { return slices.Clone(t.readable) }

// CanRead reports whether the namespace is among the readable ones.
func (t *Token) CanRead(namespace string) bool { return slices.Contains(t.readable, namespace) }

// Explicit reports whether the caller named the namespace itself.
func (t *Token) Explicit() bool { return t.explicit }

// ActorKind is the kind of the actor, such as user.
func (t *Token) ActorKind() string { return t.actor.Kind }

// ActorID is the actor's id within its kind.
func (t *Token) ActorID() string { return t.actor.ID }

// String shows the token in logs.
func (t *Token) String() string {
	return t.actor.String() + " in " + t.namespace + " reading " + strings.Join(t.readable, ",")
}

// forPolicy is the token as policies and checks see it: the same facts, nothing else.
func (t *Token) forPolicy() policy.Token {
	return policy.Token{Namespace: t.namespace, Explicit: t.explicit, Read: t.readable, Actor: t.actor}
}
