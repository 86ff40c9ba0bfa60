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

// What the log says of stopping.
const (
	sayDraining = "mcp requests under way may finish"
	sayLate     = "mcp requests did not finish in time; cancelling them"
)

// RemoteError says that an address other machines can reach was not served.
type RemoteError struct{ Addr string }

func (e *RemoteError) Error() string {
	return e.Addr + " is not a loopback address, and there is no way yet for callers on other machines to prove who they are: listen on 127.0.0.1 or [::1]"
}

// CheckAddr reports whether an address may be listened on: a loopback address, whatever the
// authentication, since the bearer token makes everybody who has it the user who runs the server
// (dispatch.md 10). The error is a *RemoteError. Serve checks again.
func CheckAddr(addr net.Addr) error {
	if addrIsLoopback(addr) {
		return nil
	}
	return &RemoteError{Addr: addr.String()}
}

// Serve answers HTTP on ln until ctx ends, then lets the requests under way finish for
// Config.DrainTimeout, cancels those that have not, and returns nil. It closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener, cfg HTTPConfig) error {
	h, err := s.Handler(cfg)
	if err == nil {
		err = CheckAddr(ln.Addr())
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	// Requests outlive ctx by the time of draining.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: s.httpLimits.readHead,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeadBytes,
		// OPTIONS * would be answered without the guard having seen it.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }() // ends with Shutdown or Close
	select {
	case err := <-failed:
		return fmt.Errorf("mcp over http: %w", err)
	case <-ctx.Done():
	}
	s.log.Info(sayDraining, "at_most", s.drain)
	defer func() { <-failed }()
	if shutdown(srv, s.drain) == nil {
		return nil
	}
	s.log.Warn(sayLate)
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
