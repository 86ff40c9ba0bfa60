package mcp

import (
	"context"
	"sync"
)

// Bounds of what is between its arrival and its answer, so that a client that never stops asking cannot
// fill the memory. Bytes are those of the texts. Parsed, the worst of them take nine times as much; while
// they are judged and run, some fifty times, and as much again until it is collected. Together that is
// about 600 MiB at the very worst.
const (
	maxPending      = 4096
	maxPendingBytes = 16 << 20
	// A text above largeText is a large one, and few of those run at once.
	largeText   = 32 << 10
	largeAtOnce = 2
)

// turns lets a fixed number of requests run at once; the others wait, the large ones so that no small one
// waits for those that wait.
type turns struct {
	free  chan struct{}
	large chan struct{} // taken before free
}

func newTurns(n int) turns {
	return turns{free: make(chan struct{}, n), large: make(chan struct{}, min(n, largeAtOnce))}
}

// acquire waits for a turn to run a text of that many bytes. Every nil is followed by one release with
// the same size.
func (t *turns) acquire(ctx context.Context, size int) error {
	if size <= largeText {
		return take(ctx, t.free)
	}
	if err := take(ctx, t.large); err != nil {
		return err
	}
	err := take(ctx, t.free)
	if err != nil {
		<-t.large
	}
	return err
}

func (t *turns) release(size int) {
	<-t.free
	if size > largeText {
		<-t.large
	}
}

func take(ctx context.Context, from chan struct{}) error {
	// A caller that is gone must not win the race against a free turn.
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case from <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slots are the turns of the whole server. They also count the requests that are somewhere between their
// arrival and their answer.
type slots struct {
	turns

	mu    sync.Mutex
	count int
	bytes int64
}

func newSlots(n int) *slots { return &slots{turns: newTurns(n)} }

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
