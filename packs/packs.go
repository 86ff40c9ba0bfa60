// Package packs is the contract between Verbgate and the packs that bring verbs.
//
// A pack says what it offers as data (Manifest) and is opened once into an Instance that holds the
// handlers. The dispatcher reads the manifests of all packs, refuses the start when they do not fit
// together (dispatch.md 9), opens the packs in the order of their requirements, and from then on
// calls handlers only after the checks, the namespace and the gate have been passed.
//
// What the package does not do: it runs nothing, opens no database and knows neither the gate nor
// the dispatcher. It imports nothing of ours, so a pack can be written against it alone.
//
// Values. Params and results are plain JSON values: nil, bool, string, json.Number, []any and
// map[string]any. Numbers keep the spelling the caller sent, so no integer is ever rounded.
//
// Invariants. A Token is read-only and made by the dispatcher only; nothing accepts one from a
// handler. The zero Visibility is internal, so a verb somebody forgot to publish is not callable
// from outside.
package packs

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
)

// Pack is what a pack registers: a description of itself and the way to open it.
type Pack interface {
	// Manifest describes the pack. It is called before anything is opened, may be called more
	// than once, and must return equal data each time.
	Manifest() Manifest
	// Open makes the pack ready to serve calls. The packs it requires are already open.
	// ctx bounds the opening only.
	Open(ctx context.Context, env Env) (Instance, error)
}

// Instance is an open pack.
type Instance interface {
	// Handlers returns one handler for every verb of the manifest, by the verb's full name.
	// It is read once, after Open.
	Handlers() map[string]Handler
	// Close frees what Open took. No handler runs any more when it is called.
	Close() error
}

// Locator is implemented by an Instance with verbs whose manifest names a resource (dispatch.md 3).
type Locator interface {
	// Locate says where the record is that a call is about, before the gate is asked. It compares
	// no namespaces and checks no rights. A record that does not exist is Location{}, nil. An
	// error means that the pack cannot tell; the policy then sees "exists": null.
	Locate(ctx context.Context, ref ResourceRef) (Location, error)
}

// ResourceRef names the record a call is about.
type ResourceRef struct {
	Verb  string // the verb's full name
	Param string // the manifest's resource param
	ID    string // its value, as the caller gave it
	Token Token  // whose readable namespaces bound the search for an id prefix
}

// Location is where a record is.
type Location struct {
	Exists    bool
	ID        string // the record's full id
	Namespace string
	Kind      string
}

// Env is what an opening pack gets.
type Env struct {
	Backend Backend // nil when the manifest declares no schema
	Log     *slog.Logger
}

// Backend is one store of records, opened and migrated for the pack. Both methods roll back when fn
// fails and translate the driver's failures: a store that is locked, full, read-only, corrupt or
// away is an *UnavailableError, a broken uniqueness rule a *ConflictError. Errors that fn makes
// itself come back unchanged.
type Backend interface {
	// Read runs fn in a read-only transaction with one consistent view of the store.
	Read(ctx context.Context, fn func(*sql.Tx) error) error
	// Write runs fn in the store's single write transaction and commits it durably.
	Write(ctx context.Context, fn func(*sql.Tx) error) error
}

// Within runs fn in a transaction and returns its value once the transaction has ended well. run is the
// Read or the Write of a Backend.
func Within[T any](ctx context.Context, run func(context.Context, func(*sql.Tx) error) error, fn func(*sql.Tx) (T, error)) (T, error) {
	var value T
	err := run(ctx, func(tx *sql.Tx) (err error) {
		value, err = fn(tx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// Handler runs one verb. The value it returns must be encodable as JSON; it is encoded once, before
// anybody else sees it. Errors of the types in this package reach the caller with their own code;
// any other error and any panic reach the caller as "internal", without their text. The text of an
// error goes to the log, so it must not quote params. A handler returns soon after ctx ends.
type Handler func(ctx context.Context, call *Call) (any, error)

// Call is one operation that passed the checks and the gate.
type Call struct {
	Verb       string
	Params     Params // resolved, defaults filled in; without "namespace" unless the verb declares it
	Token      Token  // the very token the gate saw
	RequestID  string
	DecisionID string
	Time       Time // when the operation was judged; handlers use it in place of the clock
	// Invoke calls another verb through the whole pipeline, with the same actor and token, at most
	// 8 deep, and within this call: it ends with the call, and refuses once the handler has returned
	// (dispatch.md 1). A namespace among the params can narrow the token and not leave it. The error is
	// always an *InvokeError.
	Invoke func(ctx context.Context, verb string, params Params) (json.RawMessage, error)
	// Emit tells the subscribers of a topic of the pack's manifest that something happened. The event is
	// stored with the operation's record, so it is told only when the operation succeeded and is on
	// record. payload must encode as a JSON object of at most 64 KiB. It refuses once the handler has
	// returned. An error is a mistake of the pack's.
	Emit func(topic string, payload any) error
	// Catalogue lists the public verbs this caller may know of.
	Catalogue func() []Listing
}

// Token is attribution: who calls, and in which namespaces (dispatch.md 2). It is not a lock on each
// record. Implementations are the dispatcher's; a handler only reads it.
type Token interface {
	Namespace() string // the primary namespace, the one written to
	Readable() []string
	CanRead(namespace string) bool
	Explicit() bool // the caller named the namespace itself
	ActorKind() string
	ActorID() string
}
