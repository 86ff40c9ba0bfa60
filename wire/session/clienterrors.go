package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/verbgate/verbgate/wire"
)

// ErrClosed is the answer of a client, or a subscription, that was closed.
var ErrClosed = errors.New("the session client is closed")

// RemoteError is an error frame of the server: the end of an operation or, where a *ConnectionError
// wraps it, of the connection. It is context.DeadlineExceeded and context.Canceled to errors.Is, where
// its code says so.
type RemoteError struct {
	Code wire.ErrorCode
	// RawCode is the code as the server sent it, when this version does not know it; Code is then
	// Internal.
	RawCode string
	Message string
}

// Error is the code and the server's message.
func (e *RemoteError) Error() string {
	code := e.RawCode
	if code == "" {
		code = e.Code.String()
	}
	return code + ": " + e.Message
}

// Is makes the codes that stand for a context's end equal to its errors.
func (e *RemoteError) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return e.Code == wire.DeadlineExceeded
	case context.Canceled:
		return e.Code == wire.Cancelled
	}
	return false
}

func remoteError(f wire.ErrorFrame) *RemoteError {
	raw, _ := f.UnrecognizedCode.Get()
	return &RemoteError{Code: f.Code, RawCode: raw, Message: f.Message}
}

// ConnectionError is a connection that was lost, or that did not come about. Of a request that was
// sent on it is not known whether it was done, wholly or in part.
type ConnectionError struct {
	// Sent says that the request may have reached the server.
	Sent bool
	Err  error // why: a *RemoteError when the server said so
}

// Error says what became of the connection, and of the request on it.
func (e *ConnectionError) Error() string {
	if e.Sent {
		return fmt.Sprintf("the connection was lost, and what was asked may have been done: %v", e.Err)
	}
	return fmt.Sprintf("no connection: %v", e.Err)
}

// Unwrap is why.
func (e *ConnectionError) Unwrap() error { return e.Err }

// hopeless says whether trying again, from the same place, would end the same way.
func hopeless(err error) bool {
	var remote *RemoteError
	if errors.Is(err, ErrClosed) {
		return true
	}
	if !errors.As(err, &remote) {
		return false
	}
	switch remote.Code {
	case wire.InFlightLimitExceeded, wire.ShuttingDown, wire.Internal, wire.Cancelled, wire.DeadlineExceeded,
		// These two are for the gate and the store to answer when the subscription is asked for again.
		wire.SubscriberOverflow, wire.SubscriptionRevoked:
		return false
	default:
		return true
	}
}
