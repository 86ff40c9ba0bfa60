package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/mcp"
)

// handle has the library answer a message that passed the filter: notifications first, then the
// answer.
func (s *Server) handle(ctx context.Context, f *frame) (texts [][]byte) {
	session := newSession()
	response, err := s.protocolAnswer(s.protocol.WithContext(ctx, session), f)
	if err != nil {
		return [][]byte{(&refusal{id: f.id, code: codeInternal, message: errInternal.Error()}).encode()}
	}
	for {
		select {
		case n := <-session.out:
			if text, err := json.Marshal(n); err == nil {
				texts = append(texts, text)
			}
		default:
			return append(texts, response)
		}
	}
}

// protocolAnswer calls the library. It fails when the library does, and says so in the log only.
func (s *Server) protocolAnswer(ctx context.Context, f *frame) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("the mcp library panicked", "panic", fmt.Sprintf("%T", r))
			err = errInternal
		}
	}()
	response := s.protocol.HandleMessage(ctx, f.message)
	if response == nil {
		s.log.Error("the mcp library gave no answer")
		return nil, errInternal
	}
	text, err = json.Marshal(response)
	if err != nil {
		s.log.Error("an mcp answer does not encode", "error", err)
	}
	return text, err
}

// session is the library's view of one message. It lives as long as that message is handled, so no
// two messages share anything there, whatever their ids.
type session struct {
	id  string
	out chan mcp.JSONRPCNotification
}

func newSession() *session {
	return &session{id: uuid.NewString(), out: make(chan mcp.JSONRPCNotification, 16)}
}

func (s *session) SessionID() string                                   { return s.id }
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.out }
func (s *session) Initialize()                                         {}
func (s *session) Initialized() bool                                   { return true }
