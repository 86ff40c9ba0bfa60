package wire

import "encoding/json"

// Frame is one of the eleven frames of wire.md 3, held by value: Handshake, HandshakeAck, Request,
// Response, ErrorFrame, Cancel, Subscribe, SubscribeAck, Unsubscribe, UnsubscribeAck, Event. Nothing
// else is a frame; KindOf tells which one it is.
//
// A decoded frame shares no memory with the bytes it was decoded from.
type Frame interface{ frame() }

// Handshake opens a connection: the client asks for one protocol version.
type Handshake struct{ Version Version }

// HandshakeAck is the server's consent, with exactly the version asked for.
type HandshakeAck struct{ Version Version }

// Request asks for the operations a text holds (request.md).
type Request struct {
	ID                OperationID
	Ops               string
	DeadlineMS        Optional[uint64] // milliseconds from receipt
	Namespace         Optional[string]
	ActorID           Optional[string]
	VisibleNamespaces Optional[StringList] // the empty list is not the same as none
}

// Response ends the operation with its result.
type Response struct {
	ID OperationID
	// Result is any JSON value as text, null included, without white space around it. It keeps its
	// bytes through Decode and Encode.
	Result json.RawMessage
}

// ErrorFrame ends an operation, or with no ID the connection. Code decides which (ErrorCode.Scope).
type ErrorFrame struct {
	ID      Optional[OperationID]
	Code    ErrorCode
	Message string
	// UnrecognizedCode is the code as the peer sent it when this version does not know it; Code is
	// then Internal, and whether the connection ends is not known. It is for diagnostics: such a
	// frame is never encoded, a relay forwards the bytes it got.
	UnrecognizedCode Optional[string]
}

// Cancel asks to stop an operation.
type Cancel struct{ ID OperationID }

// Subscribe asks for the events of a topic: new ones, or all after a cursor.
type Subscribe struct {
	ID           OperationID
	Topic        string
	ResumeCursor Optional[Cursor]
}

// SubscribeAck says from where events will come.
type SubscribeAck struct {
	ID          OperationID
	Topic       string
	StartCursor Cursor
}

// Unsubscribe ends the subscription of a topic.
type Unsubscribe struct {
	ID    OperationID
	Topic string
}

// UnsubscribeAck says that no further event of the topic comes.
type UnsubscribeAck struct {
	ID    OperationID
	Topic string
}

// Event is one event of a topic. It belongs to no operation.
type Event struct {
	Topic      string
	Cursor     Cursor
	OccurredAt string // any text to the codec
	// Payload is JSON text as Response.Result is; in the strict profile an object.
	Payload json.RawMessage
}

func (Handshake) frame()      {}
func (HandshakeAck) frame()   {}
func (Request) frame()        {}
func (Response) frame()       {}
func (ErrorFrame) frame()     {}
func (Cancel) frame()         {}
func (Subscribe) frame()      {}
func (SubscribeAck) frame()   {}
func (Unsubscribe) frame()    {}
func (UnsubscribeAck) frame() {}
func (Event) frame()          {}

// Kind is the discriminant of a frame. The zero Kind is no frame's.
type Kind uint8

// The eleven kinds (wire.md 3).
const (
	KindHandshake Kind = iota + 1
	KindHandshakeAck
	KindRequest
	KindResponse
	KindError
	KindCancel
	KindSubscribe
	KindSubscribeAck
	KindUnsubscribe
	KindUnsubscribeAck
	KindEvent
	endOfKinds
)

var kindNames = [endOfKinds]string{
	"none", "handshake", "handshake_ack", "request", "response", "error", "cancel",
	"subscribe", "subscribe_ack", "unsubscribe", "unsubscribe_ack", "event",
}

// String is the kind as the wire spells it; "none" for what is no kind.
func (k Kind) String() string {
	if k >= endOfKinds {
		k = 0
	}
	return kindNames[k]
}

// ParseKind is the kind a name spells, case and all; false for any other name.
func ParseKind(name string) (Kind, bool) { return parseKind(name) }

func parseKind[T string | []byte](name T) (Kind, bool) {
	switch string(name) {
	case "handshake":
		return KindHandshake, true
	case "handshake_ack":
		return KindHandshakeAck, true
	case "request":
		return KindRequest, true
	case "response":
		return KindResponse, true
	case "error":
		return KindError, true
	case "cancel":
		return KindCancel, true
	case "subscribe":
		return KindSubscribe, true
	case "subscribe_ack":
		return KindSubscribeAck, true
	case "unsubscribe":
		return KindUnsubscribe, true
	case "unsubscribe_ack":
		return KindUnsubscribeAck, true
	case "event":
		return KindEvent, true
	}
	return 0, false
}

// FromClient says whether the kind goes from client to server; the others go the other way.
func (k Kind) FromClient() bool {
	switch k {
	case KindHandshake, KindRequest, KindCancel, KindSubscribe, KindUnsubscribe:
		return true
	}
	return false
}

// KindOf is the kind of a frame. It is zero for nil and for what satisfies Frame without being one
// of the eleven, such as a pointer to a frame or a struct that embeds one.
func KindOf(f Frame) Kind {
	switch f.(type) {
	case Handshake:
		return KindHandshake
	case HandshakeAck:
		return KindHandshakeAck
	case Request:
		return KindRequest
	case Response:
		return KindResponse
	case ErrorFrame:
		return KindError
	case Cancel:
		return KindCancel
	case Subscribe:
		return KindSubscribe
	case SubscribeAck:
		return KindSubscribeAck
	case Unsubscribe:
		return KindUnsubscribe
	case UnsubscribeAck:
		return KindUnsubscribeAck
	case Event:
		return KindEvent
	}
	return 0
}
