package mcp

import (
	"context"
	"sync"
)

// Bounds of what is between its arrival and its answer, so that a client that never stops asking cannot
// fill the memory. Bytes are those of the texts; parsed, the worst of them take nine times as much, so
// that all calls together hold less than 300 MiB before they run.
const (
	maxPending      = 4096
	maxPendingBytes = 32 << 20
)

// slots lets a fixed number of requests run at once; the others wait. It also counts the requests
// that are somewhere between their arrival and their answer.
type slots struct {
	free chan struct{}

	mu    sync.Mutex
	count int
	bytes int64
}

func newSlots(n int) *slots { return &slots{free: make(chan struct{}, n)} }

// admit takes in a request whose ops has that many bytes, or reports that too much is waiting. Every
// admit that returns true is followed by one leave with the same size.
func (s *slots) admit(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= maxPending || s.bytes+int64(size) > maxPendingBytes {
		return false
	}
	s.count++
	s.bytes += int64(size)
	return true
}

func (s *slots) leave(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	s.bytes -= int64(size)
}

// acquire waits for a turn to run. Every nil is followed by one release.
func (s *slots) acquire(ctx context.Context) error {
	// A caller that is gone must not win the race against a free slot.
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) release() { <-s.free }
