package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/verbgate/verbgate/wire"
)

const (
	readBuffer = 16 << 10
	// keptBuffer is how much a connection keeps between frames. What is larger goes to a pool: hundreds
	// of idle connections must not each hold the largest frame they ever saw.
	keptBuffer = 64 << 10
)

// bufferPool holds the large buffers, until the garbage collector takes them.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() *bufferPool { return &bufferPool{} }

func (p *bufferPool) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

// keep returns b when it is small enough to be kept between frames, and nil once it went to the pool.
func (p *bufferPool) keep(b []byte) []byte {
	if cap(b) <= keptBuffer {
		return b[:0]
	}
	p.pool.Put(&b)
	return nil
}

// frameReader cuts a stream into payloads. It is for one goroutine.
type frameReader struct {
	in      *bufio.Reader
	codec   wire.Codec
	buffers *bufferPool
	buf     []byte
	limit   time.Duration
	late    *time.Timer
}

// newFrameReader reads from r; late is called when a frame that has begun is not whole within the
// limit. It runs in a goroutine of its own and is to see to it that Read returns.
func newFrameReader(r io.Reader, codec wire.Codec, buffers *bufferPool, limit time.Duration, late func()) *frameReader {
	timer := time.AfterFunc(limit, late)
	timer.Stop()
	return &frameReader{in: bufio.NewReaderSize(r, readBuffer), codec: codec, buffers: buffers, limit: limit, late: timer}
}

// next is the next frame. The error is io.EOF between frames, a *wire.CodecError for what is no frame,
// and otherwise the reader's.
func (r *frameReader) next() (wire.Frame, error) {
	if _, err := r.in.Peek(1); err != nil {
		return nil, err
	}
	// Armed once: the time is the frame's, not its parts'. What is buffered needs none.
	if !r.buffered() {
		r.late.Reset(r.limit)
		defer r.late.Stop()
	}
	var prefix [wire.PrefixSize]byte
	if n, err := io.ReadFull(r.in, prefix[:]); err != nil {
		return nil, truncated(err, &wire.CodecError{Fault: wire.TruncatedLengthPrefix, Available: n})
	}
	size, err := r.codec.PayloadSize(prefix)
	if err != nil {
		return nil, err
	}
	if size <= r.in.Buffered() {
		payload, err := r.in.Peek(size)
		if err != nil {
			return nil, err
		}
		f, err := r.codec.DecodePayload(payload)
		if err != nil {
			return nil, err
		}
		_, err = r.in.Discard(size)
		return f, err
	}
	return r.large(size)
}

// buffered says whether the next frame is there as a whole.
func (r *frameReader) buffered() bool {
	if r.in.Buffered() < wire.PrefixSize {
		return false
	}
	prefix, err := r.in.Peek(wire.PrefixSize)
	return err == nil && uint64(binary.BigEndian.Uint32(prefix)) <= uint64(r.in.Buffered()-wire.PrefixSize)
}

// large reads a payload that is not buffered. Memory is taken as the bytes arrive, so that a peer who
// declares much and sends little costs little.
func (r *frameReader) large(size int) (wire.Frame, error) {
	buf := r.buf[:0]
	if size > keptBuffer {
		if big := r.buffers.get(); cap(big) > cap(buf) {
			buf = big
		}
	}
	defer func() {
		if kept := r.buffers.keep(buf); kept != nil {
			r.buf = kept
		}
	}()
	for len(buf) < size {
		have := len(buf)
		if have == cap(buf) {
			grown := make([]byte, have, min(size, max(2*have, keptBuffer)))
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:min(size, cap(buf))]
		n, err := io.ReadFull(r.in, buf[have:])
		if err != nil {
			return nil, truncated(err, &wire.CodecError{Fault: wire.TruncatedPayload, Declared: uint64(size), Available: have + n})
		}
	}
	return r.codec.DecodePayload(buf)
}

// truncated is what an end of the stream inside a frame is: the fault, and not an end.
func truncated(err error, fault *wire.CodecError) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault
	}
	return err
}

// discard throws away what still comes, until the stream ends.
func (r *frameReader) discard() {
	_, _ = io.Copy(io.Discard, r.in)
}
