package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// seeds gives f every payload of the tables and of the conformance file, with its prefix.
func seeds(f *testing.F, add func(b []byte)) {
	for _, c := range decoded {
		add(prefixed(c.payload))
	}
	for _, c := range refused {
		add(prefixed(c.payload))
	}
	for _, c := range refusedStrictly {
		add(prefixed(c.payload))
	}
	for _, c := range lines[frameCase](f, "frames.jsonl") {
		switch {
		case c.JSON != nil:
			add(prefixed(*c.JSON))
		case c.Hex != nil:
			b, err := hex.DecodeString(*c.Hex)
			require.NoError(f, err)
			add(b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	seeds(f, func(b []byte) { f.Add(b, false); f.Add(b, true) })
	f.Fuzz(func(t *testing.T, b []byte, strict bool) {
		codec := newCodec(t, wire.Config{Strict: strict})
		before := bytes.Clone(b)
		var frame wire.Frame
		var consumed int
		var err error
		most := allowed(len(b))
		require.LessOrEqual(t, allocated(most, func() { frame, consumed, err = codec.DecodeWithConsumed(b) }), most)
		require.Equal(t, before, b, "the input is read only")
		if err != nil {
			require.Nil(t, frame)
			require.Zero(t, consumed)
			e := fault(t, err)
			require.NotEqual(t, "none", e.Fault.String())
			require.Less(t, len(e.Error()), 600)
			text, jsonErr := e.MarshalJSON()
			require.NoError(t, jsonErr)
			require.True(t, json.Valid(text), "%s", text)
			if payload := b[min(len(b), wire.PrefixSize):]; e.Fault == wire.InvalidJSON {
				size, _ := codec.PayloadSize([4]byte(b))
				require.False(t, strictJSON(payload[:size]), "refused as %v", err)
			}
			return
		}
		require.True(t, strictJSON(b[wire.PrefixSize:consumed]))

		text, err := wire.MarshalFrameJSON(frame)
		require.NoError(t, err)
		described, err := wire.ParseFrameJSON(text)
		require.NoError(t, err)
		squeezed, err := wire.MarshalFrameJSON(described)
		require.NoError(t, err)
		compact := new(bytes.Buffer)
		require.NoError(t, json.Compact(compact, text))
		require.Equal(t, compact.String(), string(squeezed))

		again, err := codec.Encode(frame)
		if x, ok := frame.(wire.ErrorFrame); ok && x.UnrecognizedCode.Present() {
			require.Equal(t, wire.FallbackFrameNotEncodable, fault(t, err).Fault)
			return
		}
		if err != nil { // the one thing the strict profile takes and does not say
			require.True(t, strict)
			require.Equal(t, "version", fault(t, err).Field)
			return
		}
		require.LessOrEqual(t, len(again), consumed, "the canonical spelling is the shortest")
		second, n, err := codec.DecodeWithConsumed(again)
		require.NoError(t, err)
		require.Equal(t, len(again), n)
		require.Equal(t, frame, second)
		third, err := codec.Encode(second)
		require.NoError(t, err)
		require.Equal(t, again, third)
	})
}

// FuzzStream cuts a stream of bytes in any way and expects the frames, and the error, of the whole.
func FuzzStream(f *testing.F) {
	var stream []byte
	seeds(f, func(b []byte) {
		f.Add(b, []byte{1})
		if _, err := newCodec(f, wire.Config{}).Decode(b); err == nil && len(b) < 200 {
			stream = append(stream, b...)
		}
	})
	f.Add(stream, []byte{1})
	f.Add(stream, []byte{3, 0, 250, 7})
	f.Add(stream[:len(stream)-1], []byte{4, 40})
	f.Add(append(bytes.Clone(stream[:400]), stream[399:]...), []byte{90})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		codec := newCodec(t, wire.Config{MaxPayload: wire.Some(4096)})
		frames, _, wholeErr := decodeAll(codec, stream)
		s := splitter{codec: codec}
		for rest, i := stream, 0; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			s.write(rest[:n])
			rest = rest[n:]
		}
		require.Equal(t, frames, s.frames)
		require.Equal(t, wholeErr, s.end())
	})
}

// splitter is a reader's loop: what a session does with the bytes it gets, whenever it gets them.
type splitter struct {
	codec  wire.Codec
	buf    []byte
	frames []wire.Frame
	err    error // for good
}

func (s *splitter) write(b []byte) {
	if s.err != nil {
		return
	}
	s.buf = append(s.buf, b...)
	for {
		f, n, err := s.codec.DecodeWithConsumed(s.buf)
		var e *wire.CodecError
		if errors.As(err, &e) {
			if e.Fault != wire.TruncatedLengthPrefix && e.Fault != wire.TruncatedPayload {
				s.err = err
			}
			return
		}
		s.frames = append(s.frames, f)
		s.buf = append(s.buf[:0], s.buf[n:]...) // used again at once: frames must not mind
	}
}

// end is what the stream came to: nothing on a frame's boundary, else what is wrong or missing.
func (s *splitter) end() error {
	if s.err != nil || len(s.buf) == 0 {
		return s.err
	}
	_, err := s.codec.Decode(s.buf)
	return err
}

func FuzzEncode(f *testing.F) {
	for kind := range byte(11) {
		f.Add(kind, "op-1", "stats()", "a\x00\"\\é", `{"a":[1]}`, uint64(1), byte(0xff), false)
		f.Add(kind, "", "\xff", "", `[`, uint64(1<<63), byte(0), true)
	}
	f.Fuzz(func(t *testing.T, kind byte, name, a, b, opaque string, n uint64, bits byte, strict bool) {
		frame := made(kind, wire.OperationID(name), a, b, json.RawMessage(opaque), n, bits)
		codec := newCodec(t, wire.Config{Strict: strict, MaxPayload: wire.Some(1 << 16)})
		data, err := codec.Encode(frame)
		if err != nil {
			require.Nil(t, data)
			fault(t, err)
			return
		}
		require.True(t, json.Valid(data[wire.PrefixSize:]))
		got, consumed, err := codec.DecodeWithConsumed(data)
		require.NoError(t, err)
		require.Equal(t, len(data), consumed)
		require.Equal(t, trimmed(frame), got)
	})
}

// made is a frame of one kind from whatever a fuzzer comes up with.
func made(kind byte, id wire.OperationID, a, b string, opaque json.RawMessage, n uint64, bits byte) wire.Frame {
	switch kind % 11 {
	case 0:
		return wire.Handshake{Version: wire.Version(n)}
	case 1:
		return wire.HandshakeAck{Version: wire.Version(n)}
	case 2:
		f := wire.Request{ID: id, Ops: a}
		if bits&1 != 0 {
			f.DeadlineMS = wire.Some(n)
		}
		if bits&2 != 0 {
			f.Namespace = wire.Some(b)
		}
		if bits&4 != 0 {
			f.ActorID = wire.Some(a)
		}
		if bits&8 != 0 {
			f.VisibleNamespaces = wire.Some(wire.NewStringList([]string{a, b, "", a}[:bits>>6]...))
		}
		return f
	case 3:
		return wire.Response{ID: id, Result: opaque}
	case 4:
		f := wire.ErrorFrame{Code: wire.ErrorCode(n), Message: a}
		if bits&1 != 0 {
			f.ID = wire.Some(id)
		}
		if bits&6 == 6 {
			f.UnrecognizedCode = wire.Some(b)
		}
		return f
	case 5:
		return wire.Cancel{ID: id}
	case 6:
		f := wire.Subscribe{ID: id, Topic: a}
		if bits&1 != 0 {
			f.ResumeCursor = wire.Some(wire.Cursor(n))
		}
		return f
	case 7:
		return wire.SubscribeAck{ID: id, Topic: a, StartCursor: wire.Cursor(n)}
	case 8:
		return wire.Unsubscribe{ID: id, Topic: a}
	case 9:
		return wire.UnsubscribeAck{ID: id, Topic: a}
	default:
		return wire.Event{Topic: a, Cursor: wire.Cursor(n), OccurredAt: b, Payload: opaque}
	}
}

// trimmed is the frame without the white space around its opaque value, which does not travel.
func trimmed(f wire.Frame) wire.Frame {
	switch f := f.(type) {
	case wire.Response:
		f.Result = bytes.Trim(f.Result, " \t\r\n")
		return f
	case wire.Event:
		f.Payload = bytes.Trim(f.Payload, " \t\r\n")
		return f
	}
	return f
}

// strictJSON is the syntax rule of wire.md 2 said a second time, on the standard library: valid JSON,
// in UTF-8, at most 127 deep, with surrogates in pairs and no number beyond a double.
func strictJSON(b []byte) bool {
	if !json.Valid(b) || !utf8.Valid(b) {
		return false
	}
	depth := 0
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '{' || c == '[':
			depth++
			if depth > 127 {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '"':
			end := i + 1
			for b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			if !paired(b[i+1 : end]) {
				return false
			}
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i
			for end < len(b) && bytes.IndexByte([]byte("+-.eE0123456789"), b[end]) >= 0 {
				end++
			}
			if _, err := strconv.ParseFloat(string(b[i:end]), 64); err != nil {
				return false
			}
			i = end - 1
		}
		i++
	}
	return true
}

// paired says whether the surrogates among a string's escapes come in pairs.
func paired(s []byte) bool {
	high := false
	for i := 0; i < len(s); {
		var unit uint64
		n := 1
		if s[i] == '\\' {
			if n = 2; s[i+1] == 'u' {
				n = 6
				unit, _ = strconv.ParseUint(string(s[i+2:i+6]), 16, 16)
			}
		}
		low := unit >= 0xdc00 && unit <= 0xdfff
		if high != low {
			return false
		}
		high = unit >= 0xd800 && unit <= 0xdbff
		i += n
	}
	return !high
}
