package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// openings are what payloads begin with, and labels what comes before a member's value.
var (
	openings = func() (all [endOfKinds]string) {
		for k, name := range kindNames {
			all[k] = `{"kind":"` + name + `"`
		}
		return all
	}()
	labels = func() (all [members]string) {
		for m, name := range memberNames {
			all[m] = `,"` + name + `":`
		}
		return all
	}()
)

// encoder appends one frame's payload, by the table of wire.md 3 and the spelling of wire.md 4. It
// goes on after a mistake, since what it wrote is then thrown away.
type encoder struct {
	rules
	dst  []byte
	kind Kind
	err  *CodecError // the first mistake
}

// appendPayload appends the frame's payload. It keeps nothing of f, not even for an error's text, so
// that a frame passed as a value need not move to the heap.
func appendPayload(dst []byte, f Frame, r rules) ([]byte, error) {
	e := encoder{rules: r, kind: KindOf(f), dst: dst}
	if e.kind == 0 {
		return nil, &CodecError{Fault: InvalidFields, Detail: "not one of the eleven frames, by value"}
	}
	if x, ok := f.(ErrorFrame); ok && !r.described {
		if err := checkErrorFrame(x, r.strict); err != nil {
			return nil, err
		}
	}
	e.dst = append(e.dst, openings[e.kind]...)
	e.frame(f)
	e.dst = append(e.dst, '}')
	if e.err != nil {
		return nil, e.err
	}
	return e.dst, nil
}

// checkErrorFrame is the order of wire.md 4 for an error frame: the marker, the id, the scope.
func checkErrorFrame(f ErrorFrame, strict bool) error {
	if code, ok := f.UnrecognizedCode.Get(); ok {
		return &CodecError{Fault: FallbackFrameNotEncodable, Kind: KindError, Code: code}
	}
	if id, ok := f.ID.Get(); ok && id == "" {
		return &CodecError{Fault: InvalidFields, Kind: KindError, Field: mID.String(), Detail: "must not be empty"}
	}
	if f.Code == 0 || f.Code >= endOfCodes {
		return &CodecError{Fault: InvalidFields, Kind: KindError, Field: mCode.String(), Detail: "is not a code of this version"}
	}
	return checkScope(f, strict)
}

func (e *encoder) frame(f Frame) {
	switch f := f.(type) {
	case Handshake:
		e.version(f.Version)
	case HandshakeAck:
		e.version(f.Version)
	case Request:
		e.id(f.ID)
		e.string(mOps, f.Ops)
		if v, ok := f.DeadlineMS.Get(); ok {
			e.uint(mDeadlineMS, v)
		}
		if v, ok := f.Namespace.Get(); ok {
			e.string(mNamespace, v)
		}
		if v, ok := f.ActorID.Get(); ok {
			e.string(mActorID, v)
		}
		if v, ok := f.VisibleNamespaces.Get(); ok {
			e.strings(mVisibleNamespaces, v)
		}
	case Response:
		e.id(f.ID)
		e.opaque(mResult, f.Result)
	case ErrorFrame:
		if id, ok := f.ID.Get(); ok {
			e.id(id)
		}
		e.string(mCode, f.Code.String())
		e.string(mMessage, f.Message)
		if code, ok := f.UnrecognizedCode.Get(); ok {
			e.string(mUnrecognizedCode, code)
		}
	case Cancel:
		e.id(f.ID)
	case Subscribe:
		e.id(f.ID)
		e.string(mTopic, f.Topic)
		if c, ok := f.ResumeCursor.Get(); ok {
			e.uint(mResumeCursor, uint64(c))
		}
	case SubscribeAck:
		e.id(f.ID)
		e.string(mTopic, f.Topic)
		e.uint(mStartCursor, uint64(f.StartCursor))
	case Unsubscribe:
		e.id(f.ID)
		e.string(mTopic, f.Topic)
	case UnsubscribeAck:
		e.id(f.ID)
		e.string(mTopic, f.Topic)
	case Event:
		e.string(mTopic, f.Topic)
		e.uint(mCursor, uint64(f.Cursor))
		e.string(mOccurredAt, f.OccurredAt)
		e.opaque(mPayload, f.Payload)
	}
}

func (e *encoder) fail(m member, detail string) {
	if e.err == nil {
		e.err = &CodecError{Fault: InvalidFields, Kind: e.kind, Field: m.String(), Detail: detail}
	}
}

func (e *encoder) name(m member) {
	e.dst = append(e.dst, labels[m]...)
}

func (e *encoder) string(m member, s string) {
	e.name(m)
	if !utf8.ValidString(s) {
		e.fail(m, "is not UTF-8")
		return
	}
	e.dst = appendString(e.dst, s)
}

func (e *encoder) id(id OperationID) {
	if id == "" && !e.described {
		e.fail(mID, "must not be empty")
	}
	e.string(mID, string(id))
}

func (e *encoder) uint(m member, n uint64) {
	e.name(m)
	e.dst = strconv.AppendUint(e.dst, n, 10)
}

func (e *encoder) version(v Version) {
	if v == 0 && e.strict {
		e.fail(mVersion, "must be 1 or more")
	}
	e.uint(mVersion, uint64(v))
}

func (e *encoder) strings(m member, list StringList) {
	e.name(m)
	e.dst = append(e.dst, '[')
	for i := range list.Len() {
		s := list.At(i)
		if !utf8.ValidString(s) {
			e.fail(m, "holds text that is not UTF-8")
			return
		}
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		e.dst = appendString(e.dst, s)
	}
	e.dst = append(e.dst, ']')
}

// opaque appends JSON text as it is, but for the white space around it, once it is known to be what
// a decoder takes in this place.
func (e *encoder) opaque(m member, v json.RawMessage) {
	s := scanner{buf: v}
	first := s.space()
	start := s.pos
	if first == 0 && start == len(v) {
		e.fail(m, "is missing; it is JSON text")
		return
	}
	ok := s.value(1)
	end := s.pos
	if !ok || !s.end() {
		if e.err == nil {
			e.err = &CodecError{Fault: InvalidJSON, Kind: e.kind, Field: m.String(), Offset: s.pos, Detail: s.fault}
		}
		return
	}
	if m == mPayload && e.strict && first != '{' {
		e.fail(m, "must be an object")
	}
	e.name(m)
	e.dst = append(e.dst, v[start:end]...)
}

// sizeHint is how long a frame gets with its prefix, or a little more, so that most need one
// allocation. Only the quotes in ops are common enough to be counted as escapes.
func sizeHint(f Frame) int {
	const (
		fixed  = PrefixSize + len(`{"kind":"unsubscribe_ack","id":"","topic":""}`)
		digits = len(`18446744073709551615`)
	)
	switch f := f.(type) {
	case Request:
		n := fixed + len(f.ID) + len(f.Ops) + strings.Count(f.Ops, `"`)
		if f.DeadlineMS.Present() {
			n += len(`,"deadline_ms":12345`)
		}
		if v, ok := f.Namespace.Get(); ok {
			n += len(`,"namespace":""`) + len(v)
		}
		if v, ok := f.ActorID.Get(); ok {
			n += len(`,"actor_id":""`) + len(v)
		}
		if v, ok := f.VisibleNamespaces.Get(); ok {
			n += len(`,"visible_namespaces":[]`) + len(v.text) + len(`"",`)*v.Len()
		}
		return n
	case Response:
		return fixed + len(f.ID) + len(f.Result)
	case ErrorFrame:
		id, _ := f.ID.Get()
		return fixed + len(`,"message":""`) + len(id) + len(f.Code.String()) + len(f.Message)
	case Cancel:
		return fixed + len(f.ID)
	case Subscribe:
		return fixed + len(`,"resume_cursor":`) + digits + len(f.ID) + len(f.Topic)
	case SubscribeAck:
		return fixed + len(`,"start_cursor":`) + digits + len(f.ID) + len(f.Topic)
	case Unsubscribe:
		return fixed + len(f.ID) + len(f.Topic)
	case UnsubscribeAck:
		return fixed + len(f.ID) + len(f.Topic)
	case Event:
		return fixed + len(`,"cursor":,"occurred_at":""`) + digits + len(f.Topic) + len(f.OccurredAt) + len(f.Payload)
	default:
		return fixed
	}
}
