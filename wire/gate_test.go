package wire_test

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// one frame of each kind, error frames by what they end, and what is no frame at all.
var inbound = []struct {
	name  string
	frame wire.Frame
}{
	{"handshake", wire.Handshake{Version: 1}},
	{"handshake 0", wire.Handshake{}},
	{"handshake 2", wire.Handshake{Version: 2}},
	{"handshake_ack", wire.HandshakeAck{Version: 1}},
	{"handshake_ack 2", wire.HandshakeAck{Version: 2}},
	{"request", wire.Request{ID: "a"}},
	{"response", wire.Response{ID: "a", Result: json.RawMessage("null")}},
	{"error connection", wire.ErrorFrame{Code: wire.IdentityRejected}},
	{"error request", wire.ErrorFrame{ID: wire.Some(wire.OperationID("a")), Code: wire.Internal}},
	{"error fallback", wire.ErrorFrame{ID: wire.Some(wire.OperationID("a")), Code: wire.Internal, UnrecognizedCode: wire.Some("x")}},
	{"error fallback no id", wire.ErrorFrame{Code: wire.Internal, UnrecognizedCode: wire.Some("x")}},
	{"error no code", wire.ErrorFrame{}},
	{"cancel", wire.Cancel{ID: "a"}},
	{"subscribe", wire.Subscribe{ID: "a"}},
	{"subscribe_ack", wire.SubscribeAck{ID: "a"}},
	{"unsubscribe", wire.Unsubscribe{ID: "a"}},
	{"unsubscribe_ack", wire.UnsubscribeAck{ID: "a"}},
	{"event", wire.Event{Payload: json.RawMessage("{}")}},
	{"nil", nil},
	{"pointer", &wire.Request{ID: "a"}},
	{"embedded", struct{ wire.Request }{wire.Request{ID: "a"}}},
	{"bad bytes", nil}, // goes to Fail
}

// cell is what a gate makes of a frame in a state: verdict, reason, the state after.
type cell struct{ verdict, reason, next string }

// requireCell compares a step with the table, and the outcome with itself.
func requireCell(t *testing.T, want cell, out wire.Outcome, next string, g gate) {
	t.Helper()
	reason := ""
	if out.Reason != 0 {
		reason = out.Reason.String()
	}
	require.Equal(t, want, cell{out.Verdict.String(), reason, next})
	require.Equal(t, next == "closed", out.Close, "close")
	require.Equal(t, next == "completed", g.Complete())
	v, ok := g.AcceptedVersion()
	require.Equal(t, next == "completed", ok)
	require.Equal(t, ok, v == 1)
	require.Equal(t, next == "closed", g.ClosedBy() != 0)
	ack, ok := out.Ack.Get()
	require.Equal(t, out.Verdict == wire.Accepted, ok)
	require.Equal(t, out.Verdict == wire.Accepted, ack.Version == 1)
	refusal, ok := out.Error.Get()
	refused := out.Verdict == wire.Violation || out.Verdict == wire.Rejected || out.Verdict == wire.BadBytes
	require.Equal(t, refused, ok)
	if refused {
		require.False(t, refusal.ID.Present())
		require.Equal(t, wire.ConnectionTerminal, refusal.Code.Scope())
		require.NotEmpty(t, refusal.Message)
	}
	if out.Reason == wire.AlreadyClosed {
		require.Equal(t, g.ClosedBy(), out.ClosedBy)
	} else {
		require.Zero(t, out.ClosedBy)
		require.True(t, out.Reason == 0 || out.Reason == g.ClosedBy())
	}
}

// step gives a gate one row of inbound.
func step(g gate, name string, f wire.Frame) wire.Outcome {
	if name == "bad bytes" {
		return g.Fail(&wire.CodecError{Fault: wire.PayloadTooLarge})
	}
	return g.Admit(f)
}

func TestServerGateTable(t *testing.T) {
	first := cell{"violation", "non_handshake_first", "closed"}
	serverOnly := cell{"violation", "server_only_kind", "closed"}
	duplicate := cell{"violation", "duplicate_handshake", "closed"}
	admitted := cell{"admitted", "", "completed"}
	rejected := cell{"rejected", "", "closed"}
	bad := cell{"codec_error", "", "closed"}
	closed := cell{"violation", "already_closed", "closed"}

	table := map[string][3]cell{ // awaiting, completed, closed
		"handshake":            {{"accepted", "", "completed"}, duplicate, closed},
		"handshake 0":          {rejected, duplicate, closed},
		"handshake 2":          {rejected, duplicate, closed},
		"handshake_ack":        {first, serverOnly, closed},
		"handshake_ack 2":      {first, serverOnly, closed},
		"request":              {first, admitted, closed},
		"response":             {first, serverOnly, closed},
		"error connection":     {first, serverOnly, closed},
		"error request":        {first, serverOnly, closed},
		"error fallback":       {first, serverOnly, closed},
		"error fallback no id": {first, serverOnly, closed},
		"error no code":        {first, serverOnly, closed},
		"cancel":               {first, admitted, closed},
		"subscribe":            {first, admitted, closed},
		"subscribe_ack":        {first, serverOnly, closed},
		"unsubscribe":          {first, admitted, closed},
		"unsubscribe_ack":      {first, serverOnly, closed},
		"event":                {first, serverOnly, closed},
		"nil":                  {first, serverOnly, closed},
		"pointer":              {first, serverOnly, closed},
		"embedded":             {first, serverOnly, closed},
		"bad bytes":            {bad, bad, closed},
	}
	require.Len(t, table, len(inbound))
	setup := [3]struct {
		state string
		feed  []wire.Frame
	}{
		{"awaiting", nil},
		{"completed", []wire.Frame{wire.Handshake{Version: 1}}},
		{"closed", []wire.Frame{wire.Handshake{Version: 1}, wire.Handshake{Version: 1}}},
	}
	for _, in := range inbound {
		for i, s := range setup {
			t.Run(s.state+"/"+in.name, func(t *testing.T) {
				g := wire.NewServerGate(wire.DefaultRange())
				for _, f := range s.feed {
					g.Admit(f)
				}
				require.Equal(t, s.state, g.State().String())
				out := step(g, in.name, in.frame)
				requireCell(t, table[in.name][i], out, g.State().String(), g)
				if out.Close { // for good, and for the first reason
					by := g.ClosedBy()
					requireCell(t, closed, g.Admit(wire.Handshake{Version: 1}), g.State().String(), g)
					require.Equal(t, by, g.ClosedBy())
				}
			})
		}
	}
}

func TestClientGateTable(t *testing.T) {
	unsolicited := cell{"violation", "unsolicited", "closed"}
	unexpected := cell{"violation", "unexpected_during_handshake", "closed"}
	wrong := cell{"violation", "wrong_direction_or_repeated", "closed"}
	terminated := cell{"server_terminated", "", "closed"}
	admitted := cell{"admitted", "", "completed"}
	bad := cell{"codec_error", "", "closed"}
	closed := cell{"violation", "already_closed", "closed"}

	table := map[string][4]cell{ // fresh, offered, completed, closed
		"handshake":            {unsolicited, unexpected, wrong, closed},
		"handshake 0":          {unsolicited, unexpected, wrong, closed},
		"handshake 2":          {unsolicited, unexpected, wrong, closed},
		"handshake_ack":        {unsolicited, {"completed", "", "completed"}, wrong, closed},
		"handshake_ack 2":      {unsolicited, {"violation", "mismatched_ack", "closed"}, wrong, closed},
		"request":              {unsolicited, unexpected, wrong, closed},
		"response":             {unsolicited, unexpected, admitted, closed},
		"error connection":     {unsolicited, terminated, terminated, closed},
		"error request":        {unsolicited, unexpected, admitted, closed},
		"error fallback":       {unsolicited, unexpected, admitted, closed},
		"error fallback no id": {unsolicited, unexpected, admitted, closed},
		"error no code":        {unsolicited, terminated, terminated, closed},
		"cancel":               {unsolicited, unexpected, wrong, closed},
		"subscribe":            {unsolicited, unexpected, wrong, closed},
		"subscribe_ack":        {unsolicited, unexpected, admitted, closed},
		"unsubscribe":          {unsolicited, unexpected, wrong, closed},
		"unsubscribe_ack":      {unsolicited, unexpected, admitted, closed},
		"event":                {unsolicited, unexpected, admitted, closed},
		"nil":                  {unsolicited, unexpected, wrong, closed},
		"pointer":              {unsolicited, unexpected, wrong, closed},
		"embedded":             {unsolicited, unexpected, wrong, closed},
		"bad bytes":            {bad, bad, bad, closed},
	}
	require.Len(t, table, len(inbound))
	setup := [4]struct {
		state string
		offer bool
		feed  []wire.Frame
	}{
		{"fresh", false, nil},
		{"offered", true, nil},
		{"completed", true, []wire.Frame{wire.HandshakeAck{Version: 1}}},
		{"closed", true, []wire.Frame{wire.HandshakeAck{Version: 1}, wire.HandshakeAck{Version: 1}}},
	}
	for _, in := range inbound {
		for i, s := range setup {
			t.Run(s.state+"/"+in.name, func(t *testing.T) {
				g := wire.NewClientGate()
				if s.offer {
					require.NoError(t, g.Offered(1))
				}
				for _, f := range s.feed {
					g.Admit(f)
				}
				require.Equal(t, s.state, g.State().String())
				out := step(g, in.name, in.frame)
				requireCell(t, table[in.name][i], out, g.State().String(), g)
				if out.Close {
					by := g.ClosedBy()
					requireCell(t, closed, g.Admit(wire.HandshakeAck{Version: 1}), g.State().String(), g)
					require.Equal(t, by, g.ClosedBy())
					require.ErrorIs(t, g.Offered(1), wire.ErrNotFresh)
				}
			})
		}
	}
}

func TestClientOffersOnce(t *testing.T) {
	g := wire.NewClientGate()
	require.ErrorIs(t, g.Offered(0), wire.ErrVersionZero)
	require.Equal(t, wire.ClientFresh, g.State())
	require.NoError(t, g.Offered(1))
	_, ok := g.AcceptedVersion()
	require.False(t, ok, "an offer is no agreement")
	require.ErrorIs(t, g.Offered(2), wire.ErrNotFresh)
	require.Equal(t, wire.Completed, g.Admit(wire.HandshakeAck{Version: 1}).Verdict)
	require.ErrorIs(t, g.Offered(1), wire.ErrNotFresh)
}

func TestZeroGatesRefuse(t *testing.T) {
	var server wire.ServerGate
	out := server.Admit(wire.Handshake{Version: 1})
	require.Equal(t, wire.Rejected, out.Verdict)
	require.True(t, out.Close)
	var client wire.ClientGate
	require.Equal(t, wire.Violation, client.Admit(wire.HandshakeAck{Version: 0}).Verdict)
	require.Equal(t, "violation", wire.Outcome{}.Verdict.String())
	e, ok := wire.NewServerGate(wire.DefaultRange()).Fail(nil).Error.Get()
	require.True(t, ok)
	require.Equal(t, wire.MalformedFrame, e.Code)
}

func TestRejectionNamesVersionAndRange(t *testing.T) {
	out := wire.NewServerGate(wire.DefaultRange()).Admit(wire.Handshake{Version: 9999})
	e, _ := out.Error.Get()
	require.Equal(t, wire.ErrorFrame{
		Code:    wire.UnsupportedVersion,
		Message: "unsupported protocol version 9999; server supports [1, 1]",
	}, e)
}

// Bytes that are no frame are answered with the code of what is wrong with them.
func TestFailCarriesTheWireCode(t *testing.T) {
	for _, g := range []gate{wire.NewServerGate(wire.DefaultRange()), wire.NewClientGate()} {
		out := g.Fail(&wire.CodecError{Fault: wire.PayloadTooLarge, Declared: 9, Max: 8})
		e, _ := out.Error.Get()
		require.Equal(t, wire.FrameTooLarge, e.Code)
		require.Equal(t, "frame_too_large: a payload of 9 bytes, where at most 8 are taken", e.Message)
		require.Equal(t, wire.UndecodableBytes, g.ClosedBy())
		out = g.Fail(&wire.CodecError{Fault: wire.InvalidJSON})
		require.Equal(t, wire.AlreadyClosed, out.Reason)
		require.Equal(t, wire.UndecodableBytes, out.ClosedBy)
	}
}

// Every byte of a good handshake, and of a good ack, replaced by every other byte: none completes.
func TestCorruptHandshakeNeverCompletes(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	try := func(good wire.Frame, open func() gate) {
		b, err := codec.Encode(good)
		require.NoError(t, err)
		for i := range b {
			for x := 1; x < 256; x++ {
				bad := append([]byte(nil), b...)
				bad[i] ^= byte(x)
				g := open()
				f, err := codec.Decode(bad)
				if err != nil {
					g.Fail(fault(t, err))
				} else {
					g.Admit(f)
				}
				require.False(t, g.Complete(), "byte %d changed by %#x", i, x)
				require.NotZero(t, g.ClosedBy())
			}
		}
	}
	try(wire.Handshake{Version: 1}, func() gate { return wire.NewServerGate(wire.DefaultRange()) })
	try(wire.HandshakeAck{Version: 1}, func() gate {
		g := wire.NewClientGate()
		require.NoError(t, g.Offered(1))
		return g
	})
}

// go vet objects to a copy of a struct with a field whose pointer is a sync.Locker; TestVetObjects
// asks it.
func TestGatesHoldALock(t *testing.T) {
	for _, gate := range []reflect.Type{reflect.TypeFor[wire.ServerGate](), reflect.TypeFor[wire.ClientGate]()} {
		locks := false
		for i := range gate.NumField() {
			locks = locks || reflect.PointerTo(gate.Field(i).Type).Implements(reflect.TypeFor[sync.Locker]())
		}
		require.True(t, locks, gate)
	}
}
