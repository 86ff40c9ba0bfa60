package kg_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/sqlite"
)

// token is a caller's namespaces.
type token struct {
	namespace string
	read      []string
}

func (t token) Namespace() string        { return t.namespace }
func (t token) Readable() []string       { return t.read }
func (t token) CanRead(name string) bool { return slices.Contains(t.read, name) }
func (t token) Explicit() bool           { return len(t.read) == 1 }
func (t token) ActorKind() string        { return "user" }
func (t token) ActorID() string          { return "u1" }

// in is a caller who works in the first namespace and may read all of them.
func in(namespaces ...string) token { return token{namespace: namespaces[0], read: namespaces} }

var now = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.FixedZone("", 3600))

// world is the pack on a real file.
type world struct {
	t        testing.TB
	instance packs.Instance
	handlers map[string]packs.Handler
	manifest packs.Manifest
	backend  packs.Backend
	who      token // of benchmarks
	told     *told
}

func open(t testing.TB) *world {
	t.Helper()
	files := sqlite.New(t.TempDir(), nil)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	manifest := kg.Pack{}.Manifest()
	backend, err := files.OpenBackend(context.Background(), "kg", manifest.Name, manifest.Schema)
	require.NoError(t, err)
	instance, err := kg.Pack{}.Open(context.Background(), packs.Env{Backend: backend})
	require.NoError(t, err)
	return &world{t: t, instance: instance, handlers: instance.Handlers(), manifest: manifest, backend: backend, who: in("a"), told: &told{}}
}

// of is the same world for another test.
func (w *world) of(t testing.TB) *world {
	other := *w
	other.t = t
	return &other
}

// object is a plain JSON object.
type object = map[string]any

// args reads params as the parser leaves them: numbers keep their spelling.
func args(t testing.TB, text string) object {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var m object
	require.NoError(t, dec.Decode(&m), text)
	return m
}

// call runs a verb as the dispatcher does: the params resolved against the manifest, the result
// encoded once.
func (w *world) call(who packs.Token, verb string, params object) (object, error) {
	w.t.Helper()
	resolved, err := w.manifest.Verb(verb).Resolve(params)
	if err != nil {
		return nil, err
	}
	return w.direct(context.Background(), who, verb, resolved)
}

// direct runs a handler with params that nobody has checked.
func (w *world) direct(ctx context.Context, who packs.Token, verb string, params packs.Params) (object, error) {
	w.t.Helper()
	result, err := w.handlers[verb](ctx, &packs.Call{Verb: verb, Params: params, Token: who, Time: now, Emit: w.told.emit})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	require.NoError(w.t, err)
	require.NotContains(w.t, string(text), "<nil>")
	return args(w.t, string(text)), nil
}

func (w *world) must(who packs.Token, verb string, params object) object {
	w.t.Helper()
	result, err := w.call(who, verb, params)
	require.NoError(w.t, err)
	return result
}

func (w *world) entity(who packs.Token, name string, more ...object) string {
	w.t.Helper()
	p := object{"kind": "entity", "entity_kind": "concept", "name": name}
	for _, m := range more {
		for k, v := range m {
			p[k] = v
		}
	}
	return w.must(who, "create", p)["id"].(string)
}

func (w *world) note(who packs.Token, content string) string {
	w.t.Helper()
	return w.must(who, "create", object{"kind": "note", "content": content})["id"].(string)
}

// rows counts the rows of a table.
func (w *world) rows(table string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.backend.Read(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM " + table).Scan(&n)
	}))
	return n
}

// pluck collects a member of each item of an answer.
func pluck(result object, member string) []string {
	out := []string{}
	for _, item := range result["items"].([]any) {
		out = append(out, item.(object)[member].(string))
	}
	return out
}

// uuid4 is what a random id looks like.
const uuid4 = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

func list(values ...any) []any { return values }

// Kinds of errors that tables name.
const (
	ok        = ""
	invalid   = "invalid"
	notFound  = "not_found"
	ambiguous = "ambiguous"
	mismatch  = "mismatch"
	conflict  = "conflict"
)

// requireKind holds an error to its kind and to a part of its text.
func requireKind(t testing.TB, err error, kind, text string) {
	t.Helper()
	switch kind {
	case ok:
		require.NoError(t, err)
		return
	case invalid:
		require.ErrorAs(t, err, new(*packs.InvalidError))
	case notFound:
		require.ErrorAs(t, err, new(*packs.NotFoundError))
	case ambiguous:
		require.ErrorAs(t, err, new(*packs.AmbiguousIDError))
	case mismatch:
		require.ErrorAs(t, err, new(*packs.NamespaceMismatchError))
	case conflict:
		require.ErrorAs(t, err, new(*packs.ConflictError))
	default:
		t.Fatalf("no error kind %q", kind)
	}
	require.ErrorContains(t, err, text)
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// with is the object with one member more.
func with(m object, name string, value any) object {
	m = maps.Clone(m)
	m[name] = value
	return m
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// asOneOf reports whether the error is of one of the types that the targets point to.
func asOneOf(err error, targets ...any) bool {
	return slices.ContainsFunc(targets, func(target any) bool { return errors.As(err, target) })
}
