package wire_test

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// gateCase is a line of testdata/handshake.jsonl.
type gateCase struct {
	ID        string
	Role      string
	Layer     string
	Supported json.RawMessage // {min, max} or "default"
	Current   *wire.Version
	Offered   *wire.Version
	Inbound   []json.RawMessage
	Expect    []json.RawMessage
	Final     *struct {
		State           string
		Complete        *bool
		AcceptedVersion *wire.Version `json:"accepted_version"`
	}
}

// gate is what both gates have in common.
type gate interface {
	Admit(wire.Frame) wire.Outcome
	Fail(*wire.CodecError) wire.Outcome
	Complete() bool
	AcceptedVersion() (wire.Version, bool)
	ClosedBy() wire.Reason
}

func TestConformanceHandshake(t *testing.T) {
	cases := lines[gateCase](t, "handshake.jsonl")
	require.Equal(t, 52, len(cases))
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			switch c.Role {
			case "server":
				c.runServer(t)
			case "client":
				c.runClient(t)
			default:
				t.Fatalf("role %q", c.Role)
			}
		})
	}
}

func (c *gateCase) runServer(t *testing.T) {
	current := wire.CurrentVersion
	if c.Current != nil {
		current = *c.Current
	}
	if string(c.Supported) == `"default"` {
		r := wire.DefaultRangeUnder(current)
		requireJSON(t, c.Expect[0], map[string]any{"range": map[string]any{"min": r.Min(), "max": r.Max()}})
		if current == wire.CurrentVersion {
			require.Equal(t, wire.DefaultRange(), r)
		}
		c.Expect = nil
		c.feed(t, wire.NewServerGate(r))
		return
	}
	var asked struct{ Min, Max wire.Version }
	require.NoError(t, json.Unmarshal(c.Supported, &asked))
	r, err := wire.NewSupportedRangeUnder(asked.Min, asked.Max, current)
	if c.Final == nil {
		var refused *wire.RangeError
		require.ErrorAs(t, err, &refused)
		requireJSON(t, c.Expect[0], map[string]string{"construct_error": refused.Fault.String()})
		return
	}
	require.NoError(t, err)
	g := wire.NewServerGate(r)
	c.feed(t, g)
	require.Equal(t, c.Final.State, g.State().String())
}

func (c *gateCase) runClient(t *testing.T) {
	g := wire.NewClientGate()
	if c.Offered != nil {
		require.NoError(t, g.Offered(*c.Offered))
	}
	c.feed(t, g)
	require.Equal(t, c.Final.State, g.State().String())
}

// feed puts the inbound frames through codec and gate, as a connection would, until it closes. The
// cases of the gate's own layer go on after that: what comes then is its business too.
func (c *gateCase) feed(t *testing.T, g gate) {
	codec := newCodec(t, wire.Config{})
	closed := false
	require.Len(t, c.Expect, len(c.Inbound))
	for i, inbound := range c.Inbound {
		if c.Layer == "connection" && closed {
			require.JSONEq(t, string(c.Expect[i]), `{"outcome":"not_read"}`)
			continue
		}
		out := c.admit(t, codec, g, inbound)
		requireJSON(t, c.Expect[i], out)
		closed = out.Close
		if e, ok := out.Error.Get(); ok {
			_, err := codec.Encode(e)
			require.NoError(t, err, "the error of an outcome can be sent")
		}
	}
	require.NotNil(t, c.Final)
	if c.Final.Complete != nil {
		require.Equal(t, *c.Final.Complete, g.Complete())
		version, ok := g.AcceptedVersion()
		if c.Final.AcceptedVersion == nil {
			require.False(t, ok)
			require.Zero(t, version)
		} else {
			require.True(t, ok)
			require.Equal(t, *c.Final.AcceptedVersion, version)
		}
	}
}

func (c *gateCase) admit(t *testing.T, codec wire.Codec, g gate, inbound json.RawMessage) wire.Outcome {
	var special struct {
		RawJSON        *string `json:"raw_json"`
		DeclaredLength *uint32 `json:"declared_length"`
	}
	require.NoError(t, json.Unmarshal(inbound, &special))
	var b []byte
	switch {
	case special.RawJSON != nil:
		b = prefixed(*special.RawJSON)
	case special.DeclaredLength != nil:
		b = binary.BigEndian.AppendUint32(nil, *special.DeclaredLength)
	default:
		f, err := wire.ParseFrameJSON(inbound)
		require.NoError(t, err)
		b, err = codec.Encode(f)
		require.NoError(t, err)
	}
	f, err := codec.Decode(b)
	if err != nil {
		return g.Fail(fault(t, err))
	}
	return g.Admit(f)
}
