package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// defaultDrain is what HTTPConfig.DrainTimeout's zero stands for.
const defaultDrain = 10 * time.Second

// RemoteError says that an address other machines can reach was not served.
type RemoteError struct {
	Addr string
	Why  string // one sentence on what to do instead
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s is not a loopback address: %s", e.Addr, e.Why)
}

// CheckAddr reports whether an address may be listened on under the configuration; the error is a
// *RemoteError. Serve checks again.
func (cfg HTTPConfig) CheckAddr(addr net.Addr) error {
	switch {
	case addrIsLoopback(addr):
		return nil
	case cfg.Auth == AuthNone:
		return &RemoteError{Addr: addr.String(), Why: "without authentication only 127.0.0.1 or [::1] is served"}
	case !cfg.IdentityNamed:
		return &RemoteError{Addr: addr.String(), Why: "the configuration must name how callers prove who they are, or listen on 127.0.0.1"}
	}
	return nil
}

// Serve answers HTTP on ln until ctx ends, then lets the requests under way finish for
// cfg.DrainTimeout, cancels those that have not, and returns nil. It closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener, cfg HTTPConfig) error {
	h, err := s.Handler(cfg)
	if err == nil {
		err = cfg.CheckAddr(ln.Addr())
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	// Requests outlive ctx by the time of draining.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeadTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeadBytes,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }() // ends with Shutdown or Close
	select {
	case err := <-failed:
		return fmt.Errorf("mcp over http: %w", err)
	case <-ctx.Done():
	}
	drain := cfg.DrainTimeout
	if drain == 0 {
		drain = defaultDrain
	}
	defer func() { <-failed }()
	if shutdown(srv, drain) == nil {
		return nil
	}
	s.log.Warn("mcp requests did not finish in time; cancelling them")
	cancel()
	if err := shutdown(srv, stopGrace); err != nil {
		return errors.Join(fmt.Errorf("stop mcp over http: %w", err), srv.Close())
	}
	return nil
}

func shutdown(srv *http.Server, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return srv.Shutdown(ctx)
}
