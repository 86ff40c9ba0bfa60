package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// serverBook is what a server has open. Its mutex is the server's.
type serverBook struct {
	conns     map[*conn]struct{}
	listeners map[*Listener]struct{}
	working   int           // handlers that run
	draining  bool          // Shutdown was called
	idle      chan struct{} // closed when draining and nothing is working
}

func newServerBook() serverBook {
	return serverBook{conns: map[*conn]struct{}{}, listeners: map[*Listener]struct{}{}, idle: make(chan struct{})}
}

type counters struct {
	generation       atomic.Uint64 // of the policy, see Recheck
	accepted, turned atomic.Uint64
}

// Stats are a server's counts.
type Stats struct {
	Open     int    // connections
	Working  int    // handlers that run
	Accepted uint64 // connections served since the start
	Refused  uint64 // connections closed because there were too many
}

// Stats is how it stands now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Open: len(s.book.conns), Working: s.book.working,
		Accepted: s.counters.accepted.Load(), Refused: s.counters.turned.Load(),
	}
}

// Recheck is to be called when another policy became active: before anything more is sent on a live
// subscription, the gate is asked about it again. It does not wait for the answers.
func (s *Server) Recheck() {
	s.counters.generation.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.book.conns {
		signal(c.pumpWake)
	}
}

// ErrShutdown is the answer to Serve and ServeConn after Shutdown, and ErrTooManyConnections
// ServeConn's when there are as many as may be.
var (
	ErrShutdown           = errors.New("the session server is shut down")
	ErrTooManyConnections = errors.New("too many connections")
)

// Serve accepts connections until Shutdown, which makes it return nil, or the end of the context,
// which cuts every connection off. It returns when all of them are over, and closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...*Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	if err := s.open(listeners); err != nil {
		return err
	}
	defer s.forget(listeners)
	stop := context.AfterFunc(ctx, func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	})
	defer stop()

	var all sync.WaitGroup
	failures := make(chan error, len(listeners))
	for _, l := range listeners {
		all.Go(func() { // ends when the listener is closed
			if err := s.accept(ctx, l, &all); err != nil {
				failures <- fmt.Errorf("accept on %s: %w", l.Addr(), err)
				cancel()
			}
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return err
	default:
		if s.isDraining() {
			return nil
		}
		return context.Cause(ctx)
	}
}

func (s *Server) open(listeners []*Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book.draining {
		return ErrShutdown
	}
	for _, l := range listeners {
		s.book.listeners[l] = struct{}{}
	}
	return nil
}

func (s *Server) forget(listeners []*Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range listeners {
		delete(s.book.listeners, l)
	}
}

// accept serves what comes to one listener. Running out of files is no reason to stop serving.
func (s *Server) accept(ctx context.Context, l *Listener, all *sync.WaitGroup) error {
	const longest = time.Second
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			all.Go(func() { // ends with the connection
				_ = s.ServeConn(ctx, nc, l.carrier, l.identifier)
			})
			continue
		case errors.Is(err, net.ErrClosed):
			return nil
		case !temporary(err):
			return err
		}
		s.log.Warn("a connection could not be accepted", "address", l.Addr().String(), "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// ServeConn serves one connection and returns when it is over, nil however it went; it closes rwc,
// whose Close must make Read and Write return. The end of the context cuts it off. An identifier of
// nil lets nobody in.
func (s *Server) ServeConn(ctx context.Context, rwc io.ReadWriteCloser, carrier Carrier, identifier Identifier) error {
	c := newConn(s, rwc, carrier, identifier)
	if err := s.enter(c); err != nil {
		_ = rwc.Close()
		return err
	}
	defer s.leave(c)
	c.serve(ctx)
	return nil
}

func (s *Server) enter(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book.draining {
		return ErrShutdown
	}
	if len(s.book.conns) >= s.limits.Connections {
		if n := s.counters.turned.Add(1); n&(n-1) == 0 { // at powers of two: a flood must not fill the log
			s.log.Warn("too many connections, one was closed", "limit", s.limits.Connections, "refused", n)
		}
		return ErrTooManyConnections
	}
	s.counters.accepted.Add(1)
	s.book.conns[c] = struct{}{}
	return nil
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.book.conns, c)
}

// startWork counts a handler that is about to run; false when none may start any more.
func (s *Server) startWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book.draining {
		return false
	}
	s.book.working++
	return true
}

func (s *Server) endWork() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.working--
	if s.book.draining && s.book.working == 0 {
		close(s.book.idle)
	}
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.draining
}
