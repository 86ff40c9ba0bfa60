// Package session is what a connection does with frames: the server's and the client's end of the
// framed protocol over a Unix socket, TLS or any io.ReadWriteCloser (session.md). It adds to package
// wire what that leaves out: sockets, clocks, goroutines, who the peer is, and what is in flight.
//
// What it does not do: it does not parse operations, ask a policy or keep events. A Handler answers
// requests and subscriptions, and Events is the store that events are read from.
//
// Invariants.
//   - Who a peer is comes from its connection, never from a frame. A peer nobody can name gets
//     identity_rejected where the ack would have been; a nil Identifier names nobody.
//   - An id gets exactly one terminal frame, however its deadline, a cancel and its answer race.
//   - What one peer can occupy is bounded: its frames in the queues, its operations, the memory its
//     unread answers take. A peer that does not read is not read from, and then closed.
//   - Events are read from the store after the last cursor, retained and new ones alike, so there is no
//     seam between the two. A subscription never goes on when the gate did not say so: after Recheck
//     nothing is sent on it before the gate was asked again.
//   - No goroutine outlives its connection, and Serve and ServeConn return only when theirs are over.
//   - A peer is told the rule it broke and nothing of what is inside. Log lines hold no operations,
//     results or event payloads.
package session

import (
	"context"
	"errors"
	"io"
	"time"
)

// Carrier is what a connection runs over.
type Carrier string

// The carriers.
const (
	Unix Carrier = "unix"
	TLS  Carrier = "tls"
	TCP  Carrier = "tcp"
	Pipe Carrier = "pipe" // anything else that is given to ServeConn
)

// Peer is who is at the other end, as the connection shows it and never a frame.
type Peer struct {
	Carrier Carrier
	// SessionID names the connection: random, and new for each.
	SessionID string
	Identity  Identity
}

// Identity is the actor a peer speaks for.
type Identity struct {
	// Kind and ID name the actor, as in user:alice.
	Kind, ID string
	// AssertedID is what the request's actor_id claims, where that does not replace ID. Policies see it
	// as token.actor.claims.asserted_id.
	AssertedID string
	// Namespace is the default namespace of the actor's operations, "" for the deployment's.
	Namespace string
	// Visible is the namespaces the actor may read. Nil leaves it to the deployment; an empty list is
	// none.
	Visible []string
	// Fixed says that frames may not say anything about the actor: any context member of a request is
	// context_rejected. It is so for actors that certificates are mapped to.
	Fixed bool
	// Expires is when the identity ends and the connection with it; zero for never.
	Expires time.Time
}

// Identifier finds out who is at the other end of a connection: the accepted net.Conn, a *tls.Conn
// after its handshake, or what ServeConn was given. Any error is identity_rejected; the peer is told
// the text of a *Rejection and of no other error.
type Identifier interface {
	Identify(conn io.ReadWriteCloser) (Identity, error)
}

// Rejection is a refusal of an Identifier or a Handler whose Message is meant for the peer.
type Rejection struct{ Message string }

// Error is the message.
func (e *Rejection) Error() string { return e.Message }

// Request is a request after the rules about context members: what it leaves out comes from the
// peer's identity.
type Request struct {
	ID  string // the operation id
	Ops string
	// ActorID is the frame's actor_id, "" where there is none. The Peer that comes with the request has
	// it applied already: in AssertedID, or as ID where the configuration trusts it.
	ActorID   string
	Namespace string
	Visible   []string
}

// Handler is what stands behind a connection. Its methods are called from many goroutines.
type Handler interface {
	// Request answers one request. The result is JSON of at most size bytes, nested at most depth
	// levels; false makes it internal. The context ends with the request's deadline, its cancel and its
	// connection; the answer of an operation that was ended by then goes nowhere.
	Request(ctx context.Context, peer Peer, req Request, size, depth int) (result []byte, ok bool)
	// ValidContext says whether what a frame made of the namespaces is valid; the error is
	// context_rejected, and the peer is told a *Rejection's text. An empty namespace is the default.
	ValidContext(namespace string, visible []string) error
	// Subscribe asks the gate whether the peer may follow a topic, and returns the namespaces whose
	// events it may see. Any error is subscription_denied, and when a live subscription is asked about
	// again subscription_revoked.
	Subscribe(ctx context.Context, peer Peer, topic string, resume *uint64) (readable []string, err error)
}

// ErrUnknownTopic is Events' answer for a topic that nothing is published to.
var ErrUnknownTopic = errors.New("unknown topic")

// Events is the store of events. Its methods are called from many goroutines.
type Events interface {
	// Bounds is where a topic can be resumed from, floor, and the cursor of its newest event, head. The
	// floor is the largest cursor that is no longer retained, 0 while everything is; both are 0 for a
	// topic without events. The error is ErrUnknownTopic for a topic there is not.
	Bounds(ctx context.Context, topic string) (floor, head uint64, err error)
	// Read returns at most limit events of the topic with a cursor above after, in order, and none only
	// when there are none.
	Read(ctx context.Context, topic string, after uint64, limit int) ([]Event, error)
	// Changed returns a channel that is closed at the next append to any topic. What was appended before
	// the call is seen by Bounds and Read.
	Changed() <-chan struct{}
}

// Event is one event of a topic.
type Event struct {
	Topic      string
	Cursor     uint64
	OccurredAt string
	// Namespace decides who may see the event. Events without one are sent on gate.* topics only.
	Namespace string
	Payload   []byte // a JSON object
}
