package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// frameCase is a line of testdata/frames.jsonl.
type frameCase struct {
	ID      string
	Op      string
	Hex     *string
	JSON    *string
	Max     *int
	Frame   json.RawMessage
	Expect  frameExpect
	Amended *frameAmended
}

// frameExpect is what the default profile makes of a case.
type frameExpect struct {
	raw           json.RawMessage
	Error         string
	Frame         json.RawMessage
	Frames        []json.RawMessage
	Consumed      json.RawMessage
	Then          json.RawMessage
	Payload       *string
	Hex           *string
	TerminalScope string `json:"terminal_scope"`
}

func (e *frameExpect) UnmarshalJSON(b []byte) error {
	type plain frameExpect
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.raw = append(json.RawMessage(nil), b...)
	return nil
}

// frameAmended is what the strict profile makes of a case, where that differs.
type frameAmended struct {
	Rejected    bool
	WireCode    string `json:"wire_code"`
	Scope       string
	FrameOK     bool    `json:"frame_ok"`
	OpaqueRaw   *string `json:"opaque_raw"`
	Refused     string
	Unspecified bool
}

func (c *frameCase) bytes(t *testing.T) []byte {
	if c.JSON != nil {
		return prefixed(*c.JSON)
	}
	b, err := hex.DecodeString(*c.Hex)
	require.NoError(t, err)
	return b
}

func (c *frameCase) codec(t *testing.T, strict bool) wire.Codec {
	cfg := wire.Config{Strict: strict}
	if c.Max != nil {
		cfg.MaxPayload = wire.Some(*c.Max)
	}
	return newCodec(t, cfg)
}

// requireFault compares an error with its description, all of it.
func requireFault(t *testing.T, want json.RawMessage, err error) {
	t.Helper()
	got, jsonErr := fault(t, err).MarshalJSON()
	require.NoError(t, jsonErr)
	require.JSONEq(t, string(want), string(got))
	require.NotEmpty(t, err.Error())
}

func TestConformanceFrames(t *testing.T) {
	cases := lines[frameCase](t, "frames.jsonl")
	require.Equal(t, 181, len(cases))
	for _, c := range cases {
		t.Run("default/"+c.ID, func(t *testing.T) { c.run(t, false) })
		t.Run("strict/"+c.ID, func(t *testing.T) {
			if c.Amended == nil || c.Amended.Unspecified {
				c.run(t, true)
				return
			}
			c.runAmended(t)
		})
	}
}

func (c *frameCase) run(t *testing.T, strict bool) {
	codec := c.codec(t, strict)
	switch c.Op {
	case "", "decode":
		b := c.bytes(t)
		f, n, err := codec.DecodeWithConsumed(b)
		if c.Expect.Error != "" {
			require.Nil(t, f)
			require.Zero(t, n)
			requireFault(t, c.Expect.raw, err)
			return
		}
		require.NoError(t, err)
		requireSameFrame(t, c.Expect.Frame, f)
		if c.Expect.Consumed != nil {
			requireJSON(t, c.Expect.Consumed, n)
		} else {
			require.Equal(t, len(b), n)
		}
		if c.Expect.TerminalScope != "" {
			require.Equal(t, c.Expect.TerminalScope, f.(wire.ErrorFrame).Code.Scope().String())
		}
	case "decode_all":
		frames, consumed, err := decodeAll(codec, c.bytes(t))
		require.Len(t, frames, len(c.Expect.Frames))
		for i, f := range frames {
			requireSameFrame(t, c.Expect.Frames[i], f)
		}
		requireJSON(t, c.Expect.Consumed, consumed)
		requireFault(t, c.Expect.Then, err)
	case "reencode":
		f, err := codec.Decode(c.bytes(t))
		require.NoError(t, err)
		b, err := codec.Encode(f)
		require.NoError(t, err)
		require.Equal(t, *c.Expect.Payload, string(b[wire.PrefixSize:]))
		require.Equal(t, prefixed(*c.Expect.Payload), b)
	case "encode":
		f, err := wire.ParseFrameJSON(c.Frame)
		require.NoError(t, err)
		b, err := codec.Encode(f)
		if c.Expect.Error != "" {
			require.Nil(t, b)
			requireFault(t, c.Expect.raw, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, *c.Expect.Hex, hex.EncodeToString(b))
	default:
		t.Fatalf("op %q", c.Op)
	}
}

func (c *frameCase) runAmended(t *testing.T) {
	codec := c.codec(t, true)
	if c.Op == "encode" {
		require.NotEmpty(t, c.Amended.Refused)
		f, err := wire.ParseFrameJSON(c.Frame)
		require.NoError(t, err)
		b, err := codec.Encode(f)
		require.Nil(t, b)
		require.Equal(t, wire.InvalidFields, fault(t, err).Fault)
		return
	}
	f, err := codec.Decode(c.bytes(t))
	if c.Amended.Rejected {
		require.Nil(t, f)
		code := fault(t, err).WireCode()
		require.Equal(t, c.Amended.WireCode, code.String())
		require.Equal(t, c.Amended.Scope, code.Scope().String())
		return
	}
	require.True(t, c.Amended.FrameOK)
	require.NoError(t, err)
	require.Equal(t, *c.Amended.OpaqueRaw, string(f.(wire.Response).Result))
	requireSameFrame(t, c.Expect.Frame, f)
}

// decodeAll decodes until the bytes are used up or bad.
func decodeAll(codec wire.Codec, b []byte) (frames []wire.Frame, consumed []int, err error) {
	for len(b) > 0 {
		f, n, err := codec.DecodeWithConsumed(b)
		if err != nil {
			return frames, consumed, err
		}
		frames, consumed, b = append(frames, f), append(consumed, n), b[n:]
	}
	return frames, consumed, nil
}

func requireJSON(t *testing.T, want json.RawMessage, got any) {
	t.Helper()
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text))
}
