package session

import (
	"context"
	"fmt"
	"time"
)

// Shutdown stops accepting, has new requests answered with shutting_down, waits for those in flight as
// long as Limits.Drain, cancels the rest and closes every connection. The end of the context skips
// what is left of that and cuts the connections off. The error says that handlers were still running
// when it stopped waiting. Calls after the first only wait.
func (s *Server) Shutdown(ctx context.Context) error {
	idle := s.beginDrain()
	timer := time.NewTimer(s.limits.Drain)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	}
	open := s.connections()
	for _, c := range open {
		if ctx.Err() != nil {
			c.cut()
		} else {
			c.dismiss()
		}
	}
	return s.awaitEnd(ctx, open)
}

// beginDrain turns away what is new, and returns what is closed when nothing is working.
func (s *Server) beginDrain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.book.draining {
		s.book.draining = true
		if s.book.working == 0 {
			close(s.book.idle)
		}
	}
	for l := range s.book.listeners {
		_ = l.Close()
	}
	return s.book.idle
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make([]*conn, 0, len(s.book.conns))
	for c := range s.book.conns {
		open = append(open, c)
	}
	return open
}

// awaitEnd waits for connections that were told to end. A peer gets a while to read what is queued for
// it, and a handler to notice that it was cancelled.
func (s *Server) awaitEnd(ctx context.Context, open []*conn) error {
	patience := time.NewTimer(2 * s.limits.Linger)
	defer patience.Stop()
	ended := func(c *conn, given <-chan time.Time) bool {
		select {
		case <-c.over:
			return true
		case <-given:
		case <-ctx.Done():
		}
		return false
	}
	waiting := 0
	for _, c := range open {
		if waiting == 0 && ended(c, patience.C) {
			continue
		}
		waiting++
		c.cut()
	}
	if waiting == 0 {
		return nil
	}
	last := time.NewTimer(s.limits.Linger)
	defer last.Stop()
	for _, c := range open {
		if !ended(c, last.C) {
			return fmt.Errorf("%d connections were cut off, and not all handlers on them had returned", waiting)
		}
	}
	return nil
}
