package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	// PrefixSize is how many bytes the length prefix takes.
	PrefixSize = 4
	// DefaultMaxPayload is the bound of a codec that is told none: 8 MiB.
	DefaultMaxPayload = 8 << 20

	prefixLimit = 1<<32 - 1
)

// Config is how a Codec behaves. The zero Config is the default: 8 MiB, the default profile.
type Config struct {
	// MaxPayload is the largest payload in bytes, inclusive, both decoded and encoded; 0 is a bound
	// too. Absent it is DefaultMaxPayload.
	MaxPayload Optional[int]
	// Strict selects the strict profile (wire.md 2, 4): no null for absence, no repeated member, no
	// id-less error with an unknown code, event payloads are objects, and no version 0 is encoded.
	Strict bool
}

// Codec turns frames into bytes and back. It is a value without state, free to copy and to use from
// many goroutines. The zero Codec takes no payload but the empty one, which is no frame.
type Codec struct {
	max    int
	strict bool
}

// NewCodec is the codec of a configuration; it refuses a negative bound.
func NewCodec(cfg Config) (Codec, error) {
	limit, ok := cfg.MaxPayload.Get()
	if !ok {
		limit = DefaultMaxPayload
	}
	if limit < 0 {
		return Codec{}, fmt.Errorf("the largest payload must be 0 bytes or more, not %d", limit)
	}
	return Codec{max: limit, strict: cfg.Strict}, nil
}

// MaxPayload is the codec's bound in bytes.
func (c Codec) MaxPayload() int { return c.max }

// Strict says whether the codec is of the strict profile.
func (c Codec) Strict() bool { return c.strict }

// PayloadSize is how many bytes follow a prefix, or PayloadTooLarge. A reader calls it before it
// allocates anything for the payload.
func (c Codec) PayloadSize(prefix [PrefixSize]byte) (int, error) {
	declared := binary.BigEndian.Uint32(prefix[:])
	if uint64(declared) > uint64(c.max) {
		return 0, &CodecError{Fault: PayloadTooLarge, Declared: uint64(declared), Max: c.max}
	}
	return int(declared), nil
}

// Decode is the frame b begins with; what follows it is not looked at. The frame is nil on error,
// and the error is a *CodecError. After one the place in a stream is lost.
func (c Codec) Decode(b []byte) (Frame, error) {
	f, _, err := c.DecodeWithConsumed(b)
	return f, err
}

// DecodeWithConsumed is Decode that also tells how many bytes the frame took, prefix included; 0 on
// error.
func (c Codec) DecodeWithConsumed(b []byte) (Frame, int, error) {
	if len(b) < PrefixSize {
		return nil, 0, &CodecError{Fault: TruncatedLengthPrefix, Available: len(b)}
	}
	size, err := c.PayloadSize([PrefixSize]byte(b))
	if err != nil {
		return nil, 0, err
	}
	payload := b[PrefixSize:]
	if len(payload) < size {
		return nil, 0, &CodecError{Fault: TruncatedPayload, Declared: uint64(size), Available: len(payload)}
	}
	f, err := c.DecodePayload(payload[:size])
	if err != nil {
		return nil, 0, err
	}
	return f, PrefixSize + size, nil
}

// DecodePayload is the frame of one whole payload, its prefix already taken off: what a reader calls
// that has read the bytes PayloadSize announced. It keeps nothing of payload, which may be reused.
func (c Codec) DecodePayload(payload []byte) (Frame, error) {
	if len(payload) > c.max {
		return nil, &CodecError{Fault: PayloadTooLarge, Declared: uint64(len(payload)), Max: c.max}
	}
	return decodePayload(payload, rules{strict: c.strict})
}

// Encode is the frame's bytes, prefix included. The error is a *CodecError and a mistake of this
// side: nothing is to be sent, and the peer is told nothing.
func (c Codec) Encode(f Frame) ([]byte, error) {
	b, err := c.AppendEncode(nil, f)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// AppendEncode appends the frame's bytes, prefix included, and returns the longer slice. On error it
// returns dst as it was; spare capacity of dst may have been written to.
func (c Codec) AppendEncode(dst []byte, f Frame) ([]byte, error) {
	start := len(dst)
	out := append(slices.Grow(dst, sizeHint(f)), 0, 0, 0, 0)
	out, err := appendPayload(out, f, rules{strict: c.strict})
	if err != nil {
		return dst, err
	}
	size := uint64(len(out) - start - PrefixSize)
	if err := c.checkSize(size); err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(out[start:], uint32(size))
	return out, nil
}

// checkSize compares an encoded payload's size with the bound and then with what a prefix holds.
func (c Codec) checkSize(size uint64) error {
	switch {
	case size > uint64(c.max):
		return &CodecError{Fault: PayloadTooLarge, Declared: size, Max: c.max}
	case size > prefixLimit:
		return &CodecError{Fault: PrefixLimitExceeded, Declared: size}
	}
	return nil
}

// rules are what frames are held to beyond their grammar.
type rules struct {
	strict bool
	// described is for the tools' JSON (ParseFrameJSON, MarshalFrameJSON): a frame that Encode would
	// refuse can be told, and unrecognized_code is a member.
	described bool
}
