// Package dispatcher is the pipeline.
package dispatcher

import (
	"context"
	"time"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// Source is the edge a request came in by. The zero value is a caller from outside the process.
type Source string

// The sources of dispatch.md 1.
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

// Recorder stores audit records. The dispatcher calls it once a request.
type Recorder interface {
	// Append makes the batch durable, all of it or nothing. An empty batch asks whether the store
	// can commit at all. An error means that the store is down.
	Append(ctx context.Context, batch []policy.Record) error
}

// Checker runs the packs' checks on the params of one operation.
type Checker interface {
	// Check returns nil when every check of in.Verb holds, a *CheckError for the first that does
	// not, and any other error for one that could not be evaluated or was cut short; both refuse.
	Check(ctx context.Context, in *policy.Input) error
}

// CheckCompiler makes a Checker of the packs' manifests. The error joins every problem found.
type CheckCompiler interface {
	Compile(manifests []packs.Manifest) (Checker, error)
}

// BackendOpener opens the store a pack keeps its records in, migrated to the pack's schema.
type BackendOpener interface {
	OpenBackend(ctx context.Context, backend, pack string, schema packs.Schema) (packs.Backend, error)
}

// Sealer replaces a sensitive value by a keyed hash (dispatch.md 7).
type Sealer interface {
	// Seal returns the sealed form of the plain JSON value at path, e.g. "params.token".
	Seal(path string, value any) any
}

// Hook hears of every successful operation after its audit record is stored. Its error is logged and
// never returned to the caller.
type Hook interface {
	OnDispatch(ctx context.Context, e Event) error
}

// Event is what a Hook hears.
type Event struct {
	Record policy.Record
	Result []byte // the operation's result as JSON, as the caller gets it
}

// Limits bound a request. Zero fields take the defaults of dispatch.md and request.md.
type Limits struct {
	RequestTimeout time.Duration // 60 s
	LocateTimeout  time.Duration // 1 s
	AuditTimeout   time.Duration // 10 s
	Parallel       int           // 8 operations at once
}

// Run's signature, for the edges:
//
//	func (d *Dispatcher) Run(ctx context.Context, caller Caller, req *request.Request) *Envelope
//	func (d *Dispatcher) RecordParseError(ctx context.Context, caller Caller, err *request.Error)
//	func (d *Dispatcher) Catalogue() []packs.Listing
var _ *request.Request
