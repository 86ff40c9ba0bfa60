package wire

import "fmt"

// ServerState is where a server's side of a connection stands; it only moves forward.
type ServerState uint8

// The states of a server gate (wire.md 7).
const (
	ServerAwaiting ServerState = iota
	ServerCompleted
	ServerClosed
)

// String is the state's printed name.
func (s ServerState) String() string {
	switch s {
	case ServerAwaiting:
		return "awaiting"
	case ServerCompleted:
		return "completed"
	default:
		return "closed"
	}
}

// ServerGate decides which frames of a client get past the handshake (wire.md 7). It is for one
// goroutine and one connection and must not be copied. It checks neither ids nor topics nor who the
// client is. The zero gate supports no version.
type ServerGate struct {
	_         noCopy
	supported SupportedRange
	at        serverPosition
}

type serverPosition struct {
	state    ServerState
	version  Version // when completed
	closedBy Reason  // when closed
}

// NewServerGate is a gate that awaits a handshake with a version of the range.
func NewServerGate(supported SupportedRange) *ServerGate {
	return &ServerGate{supported: supported}
}

// Admit is to be called with every frame of the client, in order. Once an outcome has said Close, so
// do all that follow.
func (g *ServerGate) Admit(f Frame) Outcome { return g.transition(f, nil) }

// Fail is to be called when the client's bytes were no frame: the error of Decode or PayloadSize.
// The outcome carries its wire code, and the gate is closed.
func (g *ServerGate) Fail(err *CodecError) Outcome {
	if err == nil {
		err = &CodecError{}
	}
	return g.transition(nil, err)
}

// State is where the gate stands.
func (g *ServerGate) State() ServerState { return g.at.state }

// Complete says whether a handshake was accepted and the gate is still open.
func (g *ServerGate) Complete() bool { return g.at.state == ServerCompleted }

// AcceptedVersion is the version agreed on; none before the handshake and none after closing.
func (g *ServerGate) AcceptedVersion() (Version, bool) {
	return g.at.version, g.at.state == ServerCompleted
}

// ClosedBy is why the gate closed, 0 while it is open.
func (g *ServerGate) ClosedBy() Reason { return g.at.closedBy }

// transition is the only place where the position changes.
func (g *ServerGate) transition(f Frame, bad *CodecError) Outcome {
	next, out := g.at.next(f, bad, g.supported)
	g.at = next
	return out
}

// next is the table of wire.md 7: where a frame, or bytes that are none, lead to.
func (p serverPosition) next(f Frame, bad *CodecError, supported SupportedRange) (serverPosition, Outcome) {
	closed := func(by Reason, out Outcome) (serverPosition, Outcome) {
		return serverPosition{state: ServerClosed, closedBy: by}, out
	}
	kind := KindOf(f)
	switch {
	case p.state != ServerAwaiting && p.state != ServerCompleted:
		return p, afterClose(p.closedBy)
	case bad != nil:
		return closed(UndecodableBytes, refuse(BadBytes, bad.WireCode(), bad.Error()))
	case p.state == ServerAwaiting && kind != KindHandshake:
		return closed(NonHandshakeFirst, violation(NonHandshakeFirst,
			fmt.Sprintf("the first frame must be a handshake, not %s", kind)))
	case p.state == ServerAwaiting:
		v := f.(Handshake).Version
		if !supported.Contains(v) {
			return closed(VersionUnsupported, refuse(Rejected, UnsupportedVersion,
				fmt.Sprintf("unsupported protocol version %d; server supports %s", v, supported)))
		}
		return serverPosition{state: ServerCompleted, version: v},
			Outcome{Verdict: Accepted, Version: v, Ack: Some(HandshakeAck{Version: v})}
	case kind == KindHandshake:
		return closed(DuplicateHandshake, violation(DuplicateHandshake,
			"the handshake is done; a second one is not allowed"))
	case kind.FromClient():
		return p, Outcome{Verdict: Admitted}
	default:
		return closed(ServerOnlyKind, violation(ServerOnlyKind,
			fmt.Sprintf("a client does not send %s", kind)))
	}
}
