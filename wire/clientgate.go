package wire

import (
	"errors"
	"fmt"
)

// ClientState is where a client's side of a connection stands; it only moves forward.
type ClientState uint8

// The states of a client gate (wire.md 8).
const (
	ClientFresh ClientState = iota
	ClientOffered
	ClientCompleted
	ClientClosed
)

// String is the state's printed name.
func (s ClientState) String() string {
	switch s {
	case ClientFresh:
		return "fresh"
	case ClientOffered:
		return "offered"
	case ClientCompleted:
		return "completed"
	default:
		return "closed"
	}
}

// ClientGate decides which frames of a server get past the handshake (wire.md 8). It is for one
// goroutine and one connection and must not be copied. The zero gate is fresh.
type ClientGate struct {
	_  noCopy
	at clientPosition
}

type clientPosition struct {
	state    ClientState
	version  Version // offered, and then agreed on
	closedBy Reason  // when closed
}

// NewClientGate is a gate through which nothing comes until a handshake was offered.
func NewClientGate() *ClientGate { return &ClientGate{} }

// ErrNotFresh and ErrVersionZero are why Offered refuses.
var (
	ErrNotFresh    = errors.New("a handshake can be offered once, on a connection that is still open")
	ErrVersionZero = errors.New("protocol version 0 does not exist")
)

// Offered is to be called when a handshake with the version has been written, and not before: a
// server that answers what nobody asked is in the wrong.
func (g *ClientGate) Offered(v Version) error {
	if v == 0 {
		return ErrVersionZero
	}
	if g.at.state != ClientFresh {
		return ErrNotFresh
	}
	g.transition(nil, nil, v)
	return nil
}

// Admit is to be called with every frame of the server, in order. Once an outcome has said Close, so
// do all that follow.
func (g *ClientGate) Admit(f Frame) Outcome { return g.transition(f, nil, 0) }

// Fail is to be called when the server's bytes were no frame: the error of Decode or PayloadSize.
// The gate is closed.
func (g *ClientGate) Fail(err *CodecError) Outcome {
	if err == nil {
		err = &CodecError{}
	}
	return g.transition(nil, err, 0)
}

// State is where the gate stands.
func (g *ClientGate) State() ClientState { return g.at.state }

// Complete says whether the server's ack came and the gate is still open.
func (g *ClientGate) Complete() bool { return g.at.state == ClientCompleted }

// AcceptedVersion is the version agreed on; none before the ack and none after closing.
func (g *ClientGate) AcceptedVersion() (Version, bool) {
	if g.at.state != ClientCompleted {
		return 0, false
	}
	return g.at.version, true
}

// ClosedBy is why the gate closed, 0 while it is open.
func (g *ClientGate) ClosedBy() Reason { return g.at.closedBy }

// transition is the only place where the position changes. offered is the version of a handshake
// that was written, 0 when a frame or bad bytes came in.
func (g *ClientGate) transition(f Frame, bad *CodecError, offered Version) Outcome {
	next, out := g.at.next(f, bad, offered)
	g.at = next
	return out
}

// next is wire.md 8: where a frame, bytes that are none, or an offer lead to.
func (p clientPosition) next(f Frame, bad *CodecError, offered Version) (clientPosition, Outcome) {
	closed := func(by Reason, out Outcome) (clientPosition, Outcome) {
		return clientPosition{state: ClientClosed, closedBy: by}, out
	}
	broken := func(reason Reason, format string, args ...any) (clientPosition, Outcome) {
		return closed(reason, violation(reason, fmt.Sprintf(format, args...)))
	}
	kind := KindOf(f)
	terminal := kind == KindError && f.(ErrorFrame).Code.Scope() == ConnectionTerminal
	switch {
	case p.state != ClientFresh && p.state != ClientOffered && p.state != ClientCompleted:
		return p, afterClose(p.closedBy)
	case bad != nil:
		return closed(UndecodableBytes, refuse(BadBytes, bad.WireCode(), bad.Error()))
	case p.state == ClientFresh && offered != 0:
		return clientPosition{state: ClientOffered, version: offered}, Outcome{}
	case p.state == ClientFresh:
		return broken(Unsolicited, "the server sent %s before it was asked anything", kind)
	case terminal:
		return closed(TerminatedByServer, Outcome{Verdict: ServerTerminated, Close: true})
	case p.state == ClientOffered && kind != KindHandshakeAck:
		return broken(UnexpectedDuringHandshake, "the server answered the handshake with %s", kind)
	case p.state == ClientOffered:
		v := f.(HandshakeAck).Version
		if v != p.version {
			return broken(MismatchedAck, "the server acknowledged version %d where %d was asked for", v, p.version)
		}
		return clientPosition{state: ClientCompleted, version: v}, Outcome{Verdict: Completed, Version: v}
	case kind == 0, kind == KindHandshakeAck, kind.FromClient():
		return broken(WrongDirectionOrRepeated, "the server must not send %s here", kind)
	default:
		return p, Outcome{Verdict: Admitted}
	}
}
