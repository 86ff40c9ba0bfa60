package session

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

// transport is the connection's bytes, which can be cut off from anywhere.
type transport struct {
	io.ReadWriteCloser
	once sync.Once
}

// cut closes the connection, after which Read and Write return.
func (t *transport) cut() { t.once.Do(func() { _ = t.Close() }) }

// closeWriting tells the peer that no more comes, where the carrier can say so while it still reads.
func (t *transport) closeWriting() bool {
	half, ok := t.ReadWriteCloser.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// writeSize is how much is written at a time, which has to be done within the limit: a peer that reads a
// large frame slowly is not one that does not read.
const writeSize = 256 << 10

// frameWriter writes what an outbox holds. It is for one goroutine.
type frameWriter struct {
	out     *outbox
	to      *transport
	codec   wire.Codec
	buffers *bufferPool
	buf     []byte
	late    *time.Timer
	limit   time.Duration
	// spoil is told of a frame that could not be encoded and gives what to send for it, or nil.
	spoil func(f wire.Frame, err error) wire.Frame
	// taken is called when the outbox has got room.
	taken func()
}

// newFrameWriter writes to a transport; late is called when a write takes longer than the limit. It runs
// in a goroutine of its own and is to see to it that Write returns.
func newFrameWriter(out *outbox, to *transport, codec wire.Codec, buffers *bufferPool, limit time.Duration, late func()) *frameWriter {
	timer := time.AfterFunc(limit, late)
	timer.Stop()
	return &frameWriter{
		out: out, to: to, codec: codec, buffers: buffers, late: timer, limit: limit,
		spoil: func(wire.Frame, error) wire.Frame { return nil }, taken: func() {},
	}
}

// run writes until the outbox has ended and is empty, or a write fails.
func (w *frameWriter) run() error {
	var b batch
	for {
		w.out.take(&b)
		if b.room {
			w.taken()
		}
		if err := w.batch(b); err != nil {
			w.out.breakOff()
			w.taken()
			return err
		}
		if b.over {
			return nil
		}
		if len(b.frames)+len(b.events) == 0 {
			<-w.out.wake
		}
	}
}

func (w *frameWriter) batch(b batch) error {
	for _, f := range b.frames {
		if err := w.frame(f); err != nil {
			return err
		}
	}
	for _, q := range b.events {
		e := q.event
		f := wire.Event{Topic: e.Topic, Cursor: wire.Cursor(e.Cursor), OccurredAt: e.OccurredAt, Payload: e.Payload}
		if err := w.frame(f); err != nil {
			return err
		}
	}
	return w.flush()
}

// frame adds a frame to what is written together.
func (w *frameWriter) frame(f wire.Frame) error {
	if w.buf == nil && weight(f) > keptBuffer {
		w.buf = w.buffers.get()
	}
	for f != nil {
		buf, err := w.codec.AppendEncode(w.buf, f)
		w.buf = buf
		if err == nil {
			break
		}
		f = w.spoil(f, err)
	}
	if len(w.buf) < keptBuffer/2 {
		return nil
	}
	return w.flush()
}

func (w *frameWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	defer func() { w.buf = w.buffers.keep(w.buf) }()
	for rest := range slices.Chunk(w.buf, writeSize) {
		w.late.Reset(w.limit)
		_, err := w.to.Write(rest)
		w.late.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}
