// Package mcp serves the one tool of Verbgate, request, to MCP clients over stdio and streamable HTTP.
//
// Every message passes an ingress filter of our own before the MCP library sees it. The filter reads
// the JSON strictly, refuses what it cannot vouch for, parses ops, and hands the library a message
// written anew from the few members it recognised. The parsed request travels beside that message in
// the context, so the text that was parsed, the operation the gate judges and the operation that is
// audited cannot differ, and no decoder but ours ever reads them.
//
// What the package does not do: it judges nothing, runs nothing and keeps no sessions. A request goes
// to a Runner with the Caller of its connection and the deadline it got on arrival; the refusal of
// internal verbs, namespaces and audit are the Runner's.
//
// Invariants. Nothing of a message runs unless all of it was understood. The caller's identity comes
// from the connection, never from a message. A client cancels its own calls and nobody else's: over
// stdio by notification, over HTTP by closing the connection. No error text or panic value of the
// process reaches a client. Nothing but the protocol is written to the client's stream.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
)

// Runner runs requests. A *dispatcher.Dispatcher is one.
type Runner interface {
	// Run answers every operation of the request. It never returns nil, and returns soon after
	// ctx ends.
	Run(ctx context.Context, caller dispatcher.Caller, req *request.Request) *dispatcher.Envelope
	// RecordParseError audits an ops text that did not parse. It does not wait for the store.
	RecordParseError(ctx context.Context, caller dispatcher.Caller, err *request.Error)
}

// What Config's zero fields stand for (request.md 7 and 8).
const (
	DefaultMaxBytes       = 8 << 20
	DefaultMaxRequests    = 64
	DefaultRequestTimeout = 60 * time.Second
	DefaultDrainTimeout   = 10 * time.Second
)

// Config says what a Server serves.
type Config struct {
	Runner Runner
	Verbs  []packs.Listing // the public verbs, for the tool's description

	// Caller is the identity of every caller: actor, default namespace and visible namespaces.
	// Source, Transport and SessionID are filled in by the Server; over HTTP, where nothing ties the
	// calls of a client together, the session is "".
	Caller dispatcher.Caller

	Version     string // of the program, as clients see it
	MaxBytes    int64  // the longest message, in bytes; 0 means DefaultMaxBytes
	MaxRequests int    // requests that run at once, over all connections; 0 means DefaultMaxRequests.
	// Of those with a text above 32 KiB, two run at once.

	// RequestTimeout is how long a request may take from its arrival, the wait for its turn
	// included; 0 means DefaultRequestTimeout. One whose time is over before its turn is given to
	// the Runner all the same, with a context that has ended, to be answered and recorded as that.
	RequestTimeout time.Duration

	// DrainTimeout is how long a stopping Server lets requests finish before it cancels them;
	// 0 means DefaultDrainTimeout.
	DrainTimeout time.Duration

	// Log hears of connections and faults, never of params or tokens. nil discards.
	Log *slog.Logger
}

// Server answers MCP messages. It is safe for concurrent use; one Server may serve any number of
// connections over both transports at once, and they share its limits.
type Server struct {
	runner   Runner
	caller   dispatcher.Caller
	protocol *server.MCPServer
	maxBytes int64
	timeout  time.Duration // of a request
	drain    time.Duration
	slots    *slots
	log      *slog.Logger

	httpLimits httpLimits
}

// New makes a Server. It starts nothing.
func New(cfg Config) (*Server, error) {
	var problems []error
	if cfg.Runner == nil {
		problems = append(problems, errors.New("it has no runner"))
	}
	if cfg.Caller.Actor.Kind == "" || cfg.Caller.Actor.ID == "" {
		problems = append(problems, errors.New("its caller has no actor"))
	}
	if cfg.MaxBytes < 0 {
		problems = append(problems, fmt.Errorf("the message limit is %d bytes, it must be positive", cfg.MaxBytes))
	}
	if cfg.MaxRequests < 0 {
		problems = append(problems, fmt.Errorf("the limit of requests at once is %d, it must be positive", cfg.MaxRequests))
	}
	if cfg.RequestTimeout < 0 {
		problems = append(problems, fmt.Errorf("the time limit of a request is %v, it must be positive", cfg.RequestTimeout))
	}
	if cfg.DrainTimeout < 0 {
		problems = append(problems, fmt.Errorf("the time to drain is %v, it must be positive", cfg.DrainTimeout))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("mcp server: %w", err)
	}
	s := &Server{
		runner:   cfg.Runner,
		caller:   cfg.Caller,
		maxBytes: cmp.Or(cfg.MaxBytes, DefaultMaxBytes),
		timeout:  cmp.Or(cfg.RequestTimeout, DefaultRequestTimeout),
		drain:    cmp.Or(cfg.DrainTimeout, DefaultDrainTimeout),
		slots:    newSlots(cmp.Or(cfg.MaxRequests, DefaultMaxRequests)),
		log:      cfg.Log,

		httpLimits: usualLimits,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.caller.Source = dispatcher.MCP
	s.protocol = server.NewMCPServer("verbgate", cfg.Version,
		server.WithToolCapabilities(false), // the tool never changes, so no notifications about it
		server.WithInstructions(instructions),
	)
	s.protocol.AddTool(tool(cfg.Verbs), s.call)
	return s, nil
}
