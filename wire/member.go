package wire

import "strings"

// member is a member's name, of any kind of frame.
type member uint8

const (
	mKind member = iota
	mID
	mVersion
	mOps
	mDeadlineMS
	mNamespace
	mActorID
	mVisibleNamespaces
	mResult
	mCode
	mMessage
	mTopic
	mResumeCursor
	mStartCursor
	mCursor
	mOccurredAt
	mPayload
	mUnrecognizedCode // in the tools' JSON only
	members
)

// longestName is the length of "visible_namespaces"; a longer name is no member's.
const longestName = 18

var memberNames = [members]string{
	"kind", "id", "version", "ops", "deadline_ms", "namespace", "actor_id", "visible_namespaces",
	"result", "code", "message", "topic", "resume_cursor", "start_cursor", "cursor", "occurred_at",
	"payload", "unrecognized_code",
}

func (m member) String() string { return memberNames[m] }

func parseMember(name []byte) (member, bool) {
	switch string(name) {
	case "kind":
		return mKind, true
	case "id":
		return mID, true
	case "version":
		return mVersion, true
	case "ops":
		return mOps, true
	case "deadline_ms":
		return mDeadlineMS, true
	case "namespace":
		return mNamespace, true
	case "actor_id":
		return mActorID, true
	case "visible_namespaces":
		return mVisibleNamespaces, true
	case "result":
		return mResult, true
	case "code":
		return mCode, true
	case "message":
		return mMessage, true
	case "topic":
		return mTopic, true
	case "resume_cursor":
		return mResumeCursor, true
	case "start_cursor":
		return mStartCursor, true
	case "cursor":
		return mCursor, true
	case "occurred_at":
		return mOccurredAt, true
	case "payload":
		return mPayload, true
	case "unrecognized_code":
		return mUnrecognizedCode, true
	}
	return 0, false
}

// memberSet is a set of members.
type memberSet uint32

func set(ms ...member) memberSet {
	var s memberSet
	for _, m := range ms {
		s |= 1 << m
	}
	return s
}

func (s memberSet) has(m member) bool { return s&(1<<m) != 0 }

// first is the member that comes first in the table of wire.md 3; the set must not be empty.
func (s memberSet) first() member {
	for m := mKind; ; m++ {
		if s.has(m) {
			return m
		}
	}
}

// String is the set's names, in the same order.
func (s memberSet) String() string {
	var names []string
	for m := range members {
		if s.has(m) {
			names = append(names, m.String())
		}
	}
	return strings.Join(names, ", ")
}

// shape is what members a kind has beside kind.
type shape struct{ required, optional memberSet }

// shapes is the table of wire.md 3.
var shapes = [endOfKinds]shape{
	KindHandshake:    {required: set(mVersion)},
	KindHandshakeAck: {required: set(mVersion)},
	KindRequest: {
		required: set(mID, mOps),
		optional: set(mDeadlineMS, mNamespace, mActorID, mVisibleNamespaces),
	},
	KindResponse:       {required: set(mID, mResult)},
	KindError:          {required: set(mCode, mMessage), optional: set(mID)},
	KindCancel:         {required: set(mID)},
	KindSubscribe:      {required: set(mID, mTopic), optional: set(mResumeCursor)},
	KindSubscribeAck:   {required: set(mID, mTopic, mStartCursor)},
	KindUnsubscribe:    {required: set(mID, mTopic)},
	KindUnsubscribeAck: {required: set(mID, mTopic)},
	KindEvent:          {required: set(mTopic, mCursor, mOccurredAt, mPayload)},
}
