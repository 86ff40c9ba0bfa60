package wire

// ErrorCode is a code of the closed set of wire.md 5. The zero ErrorCode is none of them and is not
// encoded.
type ErrorCode uint8

// The codes. Those up to SubscriptionRevoked end the connection, the others one operation.
const (
	UnsupportedVersion ErrorCode = iota + 1
	IdentityRejected
	MalformedFrame
	FrameTooLarge
	SubscriberOverflow
	SubscriptionRevoked

	ContextRejected
	PeerClassDenied
	SubscriptionDenied
	AlreadySubscribed
	CursorExpired
	InFlightLimitExceeded
	DeadlineExceeded
	Cancelled
	ShuttingDown
	Internal
	endOfCodes
)

var codeNames = [endOfCodes]string{
	"none",
	"unsupported_version", "identity_rejected", "malformed_frame", "frame_too_large",
	"subscriber_overflow", "subscription_revoked",
	"context_rejected", "peer_class_denied", "subscription_denied", "already_subscribed",
	"cursor_expired", "in_flight_limit_exceeded", "deadline_exceeded", "cancelled",
	"shutting_down", "internal",
}

// String is the code as the wire spells it; "none" for what is no code.
func (c ErrorCode) String() string {
	if c >= endOfCodes {
		c = 0
	}
	return codeNames[c]
}

// ParseErrorCode is the code a name spells, case and all; false for any other name.
func ParseErrorCode(name string) (ErrorCode, bool) {
	for c := UnsupportedVersion; c < endOfCodes; c++ {
		if codeNames[c] == name {
			return c, true
		}
	}
	return 0, false
}

// Scope is what an error ends.
type Scope uint8

const (
	// ConnectionTerminal ends the connection: the frame has no id and the sender closes. It is the
	// zero Scope, since closing is what to do when in doubt.
	ConnectionTerminal Scope = iota
	// RequestTerminal ends the operation the frame names; the connection lives.
	RequestTerminal
)

// String is "connection" or "request".
func (s Scope) String() string {
	if s == RequestTerminal {
		return "request"
	}
	return "connection"
}

// Scope is what an error of this code ends (wire.md 5).
func (c ErrorCode) Scope() Scope {
	if c >= ContextRejected && c < endOfCodes {
		return RequestTerminal
	}
	return ConnectionTerminal
}
