// Package opa is a policy.Gate on an embedded Open Policy Agent.
//
// It loads a policy from a folder, a .tar.gz bundle or a file system, compiles it, type-checks it
// against the input document, and judges operations by the value of one entry point (dispatch.md 3,
// 4 and 6). A changed policy is activated beside the running one and replaces it in one step.
//
// What it does not do: it carries out no obligation, writes no audit record, and decides nothing
// about fail-open; it only says policy.Unavailable.
//
// Files of a policy are those of an OPA bundle: *.rego, data.json, data.yaml and .manifest, at any
// depth. In a folder hidden files are skipped. Files named *_test.rego hold tests: they are never
// part of the policy that judges, and are read only to be run when Config.RunTests asks for it.
//
// Invariants. A decision is made by exactly one snapshot, which never changes and whose revision the
// decision carries. A failed activation changes nothing. Only a sound answer of the policy allows;
// whatever else a caller can provoke, be it an error in a built-in function, a panic or a slow
// evaluation, is a deny with PolicyError set. policy.Unavailable comes from the policy store alone.
// Text of the engine is in Decision.Cause and nowhere else, and without the values it was about.
package opa

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/verbgate/verbgate/policy"
)

// Name is the name of the gate in its decisions.
const Name = "opa"

// Defaults of Config.
const (
	DefaultEntrypoint   = "data.verbgate.gate.decision"
	DefaultTimeout      = 250 * time.Millisecond
	DefaultGrace        = 100 * time.Millisecond
	DefaultPollInterval = time.Second
	DefaultMaxBytes     = 256 << 20
	DefaultMaxFiles     = 10_000
)

// Config says where the policy is and how it is run. Exactly one of Path and FS is needed; every
// other zero field takes its default.
type Config struct {
	// Path is a folder or a .tar.gz bundle. Both are watched; a link to either is followed anew each
	// time, so a new version can be rolled out by renaming a link.
	Path string
	// FS holds a policy that never changes, such as one embedded in the program.
	FS fs.FS

	// Entrypoint is the rule that decides, as in DefaultEntrypoint.
	Entrypoint string
	// Timeout bounds one evaluation. One that runs on is cancelled, and Grace later given up.
	Timeout, Grace time.Duration

	// AllowBuiltins names built-in functions to allow beyond the default set, e.g. http.send.
	AllowBuiltins []string
	// AllowHosts are the hosts that allowed network functions may reach. Empty means none.
	AllowHosts []string

	// RunTests runs the policy's own tests before it is activated. One that fails, or a policy
	// without tests, is then not activated.
	RunTests bool

	// MaxBytes and MaxFiles bound the files of a policy, unpacked.
	MaxBytes int64
	MaxFiles int

	// PollInterval is how often Path is looked at for changes. A negative one turns that off.
	PollInterval time.Duration

	// OnActivation is told of every activation, failed or not, one at a time and in order. It must
	// not call Open, Reload or Close.
	OnActivation func(Activation)

	Log *slog.Logger // nil discards
}

// Activation is the attempt to put a policy to use.
type Activation struct {
	Revision string    // of the policy in use afterwards; "" when there is none
	Err      error     // why the new policy was not activated; the one before stays
	Time     time.Time // when it ended
	Duration time.Duration
}

// Status is the state of a gate at one moment.
type Status struct {
	Revision    string    // of the policy in use; "" before the first activation
	ActivatedAt time.Time // when it was activated
	LastError   error     // of the last activation; nil when it succeeded
	Decisions   uint64    // since New
	Abandoned   uint64    // evaluations ever given up
	Running     int64     // of those, the ones that still run
}

// Gate judges operations by a policy. Make one with New; it is safe for concurrent use.
type Gate struct {
	cfg        Config
	entrypoint ast.Ref
	caps       *ast.Capabilities
	network    bool // an allowed built-in function may wait for the network

	current atomic.Pointer[snapshot]
	pool    pool

	decisions atomic.Uint64

	activating chan struct{} // holds a token while one activates; guards the two below
	tried      *listing      // the files that the last attempt judged; nil when it could not read them
	problem    string        // why the last attempt failed; "" when it did not

	mu        sync.Mutex // guards the fields below
	life      life
	lastError error

	watching  sync.WaitGroup
	stopWatch context.CancelFunc

	wrapStore func(storage.Store) storage.Store // nil but where a test makes the store fail
}

// life is the stage a gate is in. The zero value decides nothing.
type life uint8

const (
	unopened life = iota
	open
	closed
)

// New checks the configuration. It reads no policy and starts nothing; Open does.
func New(cfg Config) (*Gate, error) {
	var errs []error
	if (cfg.Path == "") == (cfg.FS == nil) {
		errs = append(errs, errors.New("name a policy: a folder or a .tar.gz bundle"))
	}
	setDefault(&cfg.Entrypoint, DefaultEntrypoint)
	setDefault(&cfg.Timeout, DefaultTimeout)
	setDefault(&cfg.Grace, DefaultGrace)
	setDefault(&cfg.PollInterval, DefaultPollInterval)
	setDefault(&cfg.MaxBytes, DefaultMaxBytes)
	setDefault(&cfg.MaxFiles, DefaultMaxFiles)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout < 0 || cfg.Grace < 0 || cfg.MaxBytes < 0 || cfg.MaxFiles < 0 {
		errs = append(errs, errors.New("the time limit, its grace and the size limits of a policy cannot be negative"))
	}
	entrypoint, err := parseEntrypoint(cfg.Entrypoint)
	if err != nil {
		errs = append(errs, err)
	}
	caps, err := capabilities(cfg.AllowBuiltins, cfg.AllowHosts)
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("policy gate: %w", errors.Join(errs...))
	}
	g := &Gate{
		cfg: cfg, entrypoint: entrypoint, caps: caps,
		network:    len(cfg.AllowHosts) > 0 || slices.Contains(cfg.AllowBuiltins, "net.lookup_ip_addr"),
		activating: make(chan struct{}, 1),
	}
	g.pool.init(16 * runtime.GOMAXPROCS(0))
	return g, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// parseEntrypoint accepts data.a.b.c only: names are data, and nothing in them is ever run as Rego.
func parseEntrypoint(text string) (ast.Ref, error) {
	rest, ok := strings.CutPrefix(text, "data.")
	ref := ast.Ref{ast.DefaultRootDocument}
	for name := range strings.SplitSeq(rest, ".") {
		if !isName(name) {
			ok = false
		}
		ref = append(ref, ast.StringTerm(name))
	}
	if !ok {
		return nil, fmt.Errorf("entry point %q: write data, then the package and the rule, joined by dots, as in %s", text, DefaultEntrypoint)
	}
	return ref, nil
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// Status reports the state of the gate.
func (g *Gate) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Status{
		LastError: g.lastError,
		Decisions: g.decisions.Load(),
		Abandoned: g.pool.everAbandoned.Load(),
		Running:   g.pool.abandoned.Load(),
	}
	if snap := g.current.Load(); snap != nil {
		s.Revision, s.ActivatedAt = snap.revision, snap.at
	}
	return s
}

var _ policy.Gate = (*Gate)(nil)
