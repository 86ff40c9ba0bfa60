package memory_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/packs/kg"
	"github.com/verbgate/verbgate/packs/memory"
	"github.com/verbgate/verbgate/packs/sqlite"
)

type object = map[string]any

// token is a caller's namespaces.
type token []string

func (t token) Namespace() string        { return t[0] }
func (t token) Readable() []string       { return t }
func (t token) CanRead(name string) bool { return slices.Contains(t, name) }
func (t token) Explicit() bool           { return len(t) == 1 }
func (t token) ActorKind() string        { return "user" }
func (t token) ActorID() string          { return "u1" }

var (
	me    = token{"a", "a2"}
	other = token{"z"}
	start = time.Date(2026, 3, 4, 5, 6, 7, 8_000, time.FixedZone("", 3600))
)

const day = 24 * time.Hour

// world is the pack and the one it requires, on a real file.
type world struct {
	t        testing.TB
	instance packs.Instance
	handlers map[string]packs.Handler
	backend  packs.Backend
	now      time.Time

	mu   sync.Mutex
	told []string // what the handlers emit, as "topic payload"
}

func open(t testing.TB) *world {
	t.Helper()
	files := sqlite.New(t.TempDir(), nil)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	w := &world{t: t, handlers: map[string]packs.Handler{}, now: start}
	for _, pack := range []packs.Pack{kg.Pack{}, memory.Pack{}} {
		manifest := pack.Manifest()
		backend, err := files.OpenBackend(context.Background(), "main", manifest.Name, manifest.Schema)
		require.NoError(t, err)
		instance, err := pack.Open(context.Background(), packs.Env{Backend: backend})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, instance.Close()) })
		for name, handler := range instance.Handlers() {
			w.handlers[name] = handler
		}
		w.instance, w.backend = instance, backend
	}
	return w
}

func decode(t testing.TB, text []byte) object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m object
	require.NoError(t, d.Decode(&m), "%s", text)
	return m
}

// call runs a handler with params as the dispatcher leaves them, nested calls included.
func (w *world) call(who token, verb string, params object) (object, error) {
	w.t.Helper()
	manifest := memory.Pack{}.Manifest()
	if v := manifest.Verb(verb); v != nil {
		resolved, err := v.Resolve(params)
		if err != nil {
			return nil, err
		}
		params = object(resolved)
	}
	text, err := w.direct(who, verb, params)
	if err != nil {
		return nil, err
	}
	return decode(w.t, text), nil
}

// direct runs a handler with params that nobody has checked.
func (w *world) direct(who token, verb string, params object) (json.RawMessage, error) {
	result, err := w.handlers[verb](context.Background(), &packs.Call{
		Verb: verb, Params: packs.Params(params), Token: who, Time: w.now,
		Invoke: func(_ context.Context, verb string, params packs.Params) (json.RawMessage, error) {
			return w.direct(who, verb, object(params))
		},
		Emit: w.emit,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// emit is packs.Call.Emit.
func (w *world) emit(topic string, payload any) error {
	text, err := json.Marshal(payload)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, topic+" "+string(text))
	return err
}

func (w *world) must(who token, verb string, params object) object {
	w.t.Helper()
	result, err := w.call(who, verb, params)
	require.NoError(w.t, err)
	return result
}

func (w *world) remember(who token, content string, more ...any) string {
	w.t.Helper()
	params := object{"content": content}
	for i := 0; i < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	return w.must(who, "memory.remember", params)["id"].(string)
}

// recall returns the contents found, best first.
func (w *world) recall(who token, query string, more ...any) []string {
	w.t.Helper()
	params := object{"query": query}
	for i := 0; i < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	contents := []string{}
	for _, item := range w.must(who, "memory.recall", params)["items"].([]any) {
		contents = append(contents, item.(object)["content"].(string))
	}
	return contents
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.backend.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	}))
}

func (w *world) rows(table string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.backend.Read(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM " + table).Scan(&n)
	}))
	return n
}

// plant keeps a memory under an id of the test's choice, which no verb allows.
func (w *world) plant(id, namespace string) {
	w.t.Helper()
	w.exec("INSERT INTO memory_records (id, namespace, created, salience, tags, content) VALUES (?, ?, 0, 0.5, '[]', 'planted')", id, namespace)
}

func number(s string) json.Number { return json.Number(s) }
