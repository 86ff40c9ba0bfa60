package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// Config is what a Dispatcher is made of. Gate must be there, Checks when a pack has checks, Backends
// when a pack keeps records, and Sealer when params are recorded; everything else may be left out.
type Config struct {
	Packs     []packs.Pack
	Gate      policy.Gate
	FailOpen  bool // run what the gate could not judge for infrastructure's sake (dispatch.md 4)
	Checks    CheckCompiler
	Backends  BackendOpener
	BackendOf map[string]string // pack name → backend name; DefaultBackend for the rest

	Audit        Recorder // nil keeps no records
	RecordParams bool
	Sealer       Sealer // needed with RecordParams: sensitive params, and undeclared ones, are recorded sealed

	Hooks  []Hook
	Limits Limits
	Log    *slog.Logger // nil is silent
}

// DefaultBackend is the store of packs that no configuration places elsewhere.
const DefaultBackend = "main"

// Limits bound a request. Zero fields take the defaults named here.
type Limits struct {
	RequestTimeout time.Duration // of a request whose caller has no deadline; 60 s
	LocateTimeout  time.Duration // for a pack to say where a record is; 1 s
	AuditTimeout   time.Duration // for the audit store to commit, each time, and again for all hooks of a request; 10 s
	Parallel       int           // operations of one request at once; 8
}

// Bounds that no configuration moves. Those of calls that verbs make of verbs are of dispatch.md 1.
const (
	maxVia    = 8    // verbs above a nested call
	maxNested = 1000 // nested calls of one request, all operations together

	maxEvents     = 1000     // an operation emits
	maxEventBytes = 64 << 10 // of an event's payload as JSON

	maxLocating = 64 // look-ups of records at once in the process, given up ones included
)

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.Limits.RequestTimeout, 60*time.Second)
	setDefault(&c.Limits.LocateTimeout, time.Second)
	setDefault(&c.Limits.AuditTimeout, 10*time.Second)
	setDefault(&c.Limits.Parallel, 8)
	return c
}

func setDefault[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Recorder stores audit records.
type Recorder interface {
	// Append makes the batch durable, all of it or nothing. An empty batch asks whether the store
	// can commit at all. An error means that the store is down; the batch then comes again, with what
	// came since and under the same record ids, so a store that had written it after all ignores what it
	// has. Append returns when its context ends.
	Append(ctx context.Context, batch []policy.Record) error
}

// Checker runs the packs' checks on the params of one operation.
type Checker interface {
	// Check returns nil when every check of in.Verb holds, a *packs.CheckError for the first that
	// does not or cannot be evaluated, and the context's error when it was cut short. All refuse.
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
	// Seal returns the sealed form of the plain JSON value at path, e.g. "token" or "login.password".
	Seal(path string, value any) any
}

// Hook hears of every successful operation once its audit record is stored. The caller waits for it and
// never sees its error: a Hook returns when its context ends. The log says that it failed and with an
// error of which type, not the error's text, which may quote params; a Hook logs what may be read.
type Hook interface {
	OnDispatch(ctx context.Context, e Event) error
}

// Event is what a Hook hears.
type Event struct {
	Record policy.Record
	Result []byte // the operation's result as JSON, as the caller gets it; not to be changed
}
