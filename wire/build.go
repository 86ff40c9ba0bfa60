package wire

import (
	"encoding/json"
	"math"
)

// frame builds the frame; it is worth something only when p.err is still nil.
func (p *payload) frame() Frame {
	switch p.kind {
	case KindHandshake:
		return Handshake{Version: p.version()}
	case KindHandshakeAck:
		return HandshakeAck{Version: p.version()}
	case KindRequest:
		f := Request{ID: p.id(), Ops: p.string(mOps)}
		if p.seen.has(mDeadlineMS) {
			f.DeadlineMS = Some(p.uint(mDeadlineMS, math.MaxUint64))
		}
		if p.seen.has(mNamespace) {
			f.Namespace = Some(p.string(mNamespace))
		}
		if p.seen.has(mActorID) {
			f.ActorID = Some(p.string(mActorID))
		}
		if p.seen.has(mVisibleNamespaces) {
			f.VisibleNamespaces = Some(p.strings(mVisibleNamespaces))
		}
		return f
	case KindResponse:
		return Response{ID: p.id(), Result: p.opaque(mResult)}
	case KindError:
		return p.errorFrame()
	case KindCancel:
		return Cancel{ID: p.id()}
	case KindSubscribe:
		f := Subscribe{ID: p.id(), Topic: p.string(mTopic)}
		if p.seen.has(mResumeCursor) {
			f.ResumeCursor = Some(p.cursor(mResumeCursor))
		}
		return f
	case KindSubscribeAck:
		return SubscribeAck{ID: p.id(), Topic: p.string(mTopic), StartCursor: p.cursor(mStartCursor)}
	case KindUnsubscribe:
		return Unsubscribe{ID: p.id(), Topic: p.string(mTopic)}
	case KindUnsubscribeAck:
		return UnsubscribeAck{ID: p.id(), Topic: p.string(mTopic)}
	default: // KindEvent: findKind let nothing else pass
		if p.strict && p.values[mPayload].first != '{' {
			p.complain(mPayload, "must be an object")
		}
		return Event{
			Topic: p.string(mTopic), Cursor: p.cursor(mCursor),
			OccurredAt: p.string(mOccurredAt), Payload: p.opaque(mPayload),
		}
	}
}

func (p *payload) errorFrame() ErrorFrame {
	f := ErrorFrame{Message: p.string(mMessage)}
	if p.seen.has(mID) {
		f.ID = Some(p.id())
	}
	code := p.string(mCode)
	var known bool
	f.Code, known = ParseErrorCode(code)
	switch {
	case p.seen.has(mUnrecognizedCode):
		f.UnrecognizedCode = Some(p.string(mUnrecognizedCode))
		if f.Code != Internal {
			p.complain(mCode, "must be internal beside unrecognized_code")
		}
	case known:
		return f
	case p.described:
		p.complain(mCode, "is not a code of this version")
	default:
		f.UnrecognizedCode = Some(code)
	}
	f.Code = Internal
	return f
}

func (p *payload) string(m member) string {
	if p.values[m].first != '"' {
		p.complain(m, "must be a string")
		return ""
	}
	return p.values[m].String()
}

func (p *payload) id() OperationID {
	id := p.string(mID)
	if id == "" && !p.described {
		p.complain(mID, "must not be empty")
	}
	return OperationID(id)
}

func (p *payload) uint(m member, limit uint64) uint64 {
	v := &p.values[m]
	n, ok := plainUint(v.raw, limit)
	if v.first == '"' || !ok {
		p.complain(m, "must be a whole number in plain digits, not negative and not too large")
	}
	return n
}

func (p *payload) version() Version       { return Version(p.uint(mVersion, math.MaxUint32)) }
func (p *payload) cursor(m member) Cursor { return Cursor(p.uint(m, math.MaxUint64)) }

// opaque copies a value's text, so that a frame does not keep the buffer it came in.
func (p *payload) opaque(m member) json.RawMessage {
	v := &p.values[m]
	if v.first != '"' {
		return append(make(json.RawMessage, 0, len(v.raw)), v.raw...)
	}
	b := append(make(json.RawMessage, 0, len(v.raw)+2), '"')
	return append(append(b, v.raw...), '"')
}

// strings reads an array of strings in two passes, the first of which finds out how much to allocate.
func (p *payload) strings(m member) StringList {
	count, size := 0, 0
	if !p.elements(m, func(t text) { count++; size += t.size() }) {
		p.complain(m, "must be an array of strings")
		return StringList{}
	}
	if count == 0 {
		return StringList{}
	}
	all, ends := make([]byte, 0, size), make([]int, 0, count)
	p.elements(m, func(t text) {
		all = t.appendTo(all)
		ends = append(ends, len(all))
	})
	return StringList{text: string(all), ends: ends}
}

// elements walks an array that is known to be good JSON; false when an element is no string.
func (p *payload) elements(m member, each func(text)) bool {
	v := &p.values[m]
	if v.first != '[' {
		return false
	}
	s := scanner{buf: v.raw}
	for empty, _ := s.open(1, ']'); !empty; {
		if s.buf[s.pos] != '"' {
			return false
		}
		t, _ := s.str()
		each(t)
		if more, _ := s.next(']'); !more {
			break
		}
	}
	return true
}
