package wire

import "strconv"

// Verdict is what a gate says of an inbound frame. The zero Verdict is Violation.
type Verdict uint8

// The verdicts (wire.md 7, 8).
const (
	// Violation: the frame breaks the protocol; close.
	Violation Verdict = iota
	// Accepted: a server takes the handshake; Outcome.Ack is to be sent.
	Accepted
	// Rejected: a server refuses the version; Outcome.Error is to be sent, then close.
	Rejected
	// Admitted: the handshake is done and the frame is for the layer above.
	Admitted
	// Completed: a client got the ack it asked for.
	Completed
	// ServerTerminated: a client got an error that ends the connection; the frame is for the layer
	// above, then close.
	ServerTerminated
	// BadBytes: what came is no frame (Fail); a server sends Outcome.Error, then close.
	BadBytes
)

// String is the verdict's printed name.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Admitted:
		return "admitted"
	case Completed:
		return "completed"
	case ServerTerminated:
		return "server_terminated"
	case BadBytes:
		return "codec_error"
	default:
		return "violation"
	}
}

// Reason is why a gate closed or refuses a frame. The zero Reason is none.
type Reason uint8

// The reasons. A gate keeps the one it closed for; AlreadyClosed is the reason of everything after.
const (
	NonHandshakeFirst         Reason = iota + 1 // server: the first frame is no handshake
	DuplicateHandshake                          // server
	ServerOnlyKind                              // server: a kind only servers send
	VersionUnsupported                          // server: the handshake was rejected
	Unsolicited                                 // client: a frame before a handshake was sent
	UnexpectedDuringHandshake                   // client: neither ack nor terminal error
	MismatchedAck                               // client: an ack of another version
	WrongDirectionOrRepeated                    // client: a second ack, or a kind only clients send
	TerminatedByServer                          // client: the server ended the connection
	UndecodableBytes                            // either: Fail was called
	AlreadyClosed                               // either
)

// String is the reason's printed name; "none" for no reason.
func (r Reason) String() string {
	switch r {
	case NonHandshakeFirst:
		return "non_handshake_first"
	case DuplicateHandshake:
		return "duplicate_handshake"
	case ServerOnlyKind:
		return "server_only_kind"
	case VersionUnsupported:
		return "unsupported_version"
	case Unsolicited:
		return "unsolicited"
	case UnexpectedDuringHandshake:
		return "unexpected_during_handshake"
	case MismatchedAck:
		return "mismatched_ack"
	case WrongDirectionOrRepeated:
		return "wrong_direction_or_repeated"
	case TerminatedByServer:
		return "server_terminated"
	case UndecodableBytes:
		return "codec_error"
	case AlreadyClosed:
		return "already_closed"
	}
	return "none"
}

// Outcome is a gate's answer to one inbound frame.
type Outcome struct {
	Verdict Verdict
	// Version is the version agreed on, when Accepted or Completed.
	Version Version
	// Ack is what a server sends when Accepted.
	Ack Optional[HandshakeAck]
	// Error is the id-less error of a refusal: Rejected, Violation, BadBytes. A server sends it; a
	// client, which has no error frame to send, only closes and reports it.
	Error Optional[ErrorFrame]
	// Close says that the connection is over once what there is to send has been sent.
	Close bool
	// Reason is why, when Verdict is Violation.
	Reason Reason
	// ClosedBy is why the gate had closed before, when Reason is AlreadyClosed.
	ClosedBy Reason
}

// MarshalJSON is the outcome as the tools print it: "outcome", then whichever apply of "version",
// "ack", "error" (its code, and null for its id), "close", "reason", "closed_by".
func (o Outcome) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 128), `{"outcome":"`...)
	b = append(append(b, o.Verdict.String()...), '"')
	if o.Verdict == Accepted || o.Verdict == Completed {
		b = strconv.AppendUint(append(b, `,"version":`...), uint64(o.Version), 10)
	}
	if ack, ok := o.Ack.Get(); ok {
		text, err := MarshalFrameJSON(ack)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"ack":`...), text...)
	}
	if f, ok := o.Error.Get(); ok {
		b = append(append(b, `,"error":{"code":"`...), f.Code.String()...)
		b = append(b, `","id":null}`...)
	}
	if o.Close {
		b = append(b, `,"close":true`...)
	}
	if o.Reason != 0 {
		b = append(append(append(b, `,"reason":"`...), o.Reason.String()...), '"')
	}
	if o.ClosedBy != 0 {
		b = append(append(append(b, `,"closed_by":"`...), o.ClosedBy.String()...), '"')
	}
	return append(b, '}'), nil
}

// refuse is an outcome that ends the connection with an id-less error.
func refuse(v Verdict, code ErrorCode, message string) Outcome {
	return Outcome{Verdict: v, Error: Some(ErrorFrame{Code: code, Message: message}), Close: true}
}

// violation is the outcome of a frame that breaks the protocol.
func violation(reason Reason, message string) Outcome {
	out := refuse(Violation, MalformedFrame, message)
	out.Reason = reason
	return out
}

// afterClose is the outcome of anything that comes to a closed gate.
func afterClose(first Reason) Outcome {
	out := violation(AlreadyClosed, "the connection is already closed: "+first.String())
	out.ClosedBy = first
	return out
}

// noCopy makes go vet object to copies of what holds it: a copied gate could be moved back.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
