package kg

import "github.com/verbgate/verbgate/packs"

// What the pack tells its subscribers (session.md), once the change is in the store: which records it was
// about, and never what is in them. The event's namespace is the one the call worked in.
const (
	topicCreated = "kg.created"
	topicUpdated = "kg.updated"
	topicDeleted = "kg.deleted"
	topicLinked  = "kg.linked"
	topicMerged  = "kg.merged"
)

func topics() []string {
	return []string{topicCreated, topicUpdated, topicDeleted, topicLinked, topicMerged}
}

// maxToldIDs is how many of the ids of one create an event lists.
const maxToldIDs = 100

// tell emits an event and returns the answer of the call it is about.
func tell(call *packs.Call, topic string, event, answer any) (any, error) {
	return answer, call.Emit(topic, event)
}

// oneEvent is the payload of kg.created and kg.updated.
type oneEvent struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

// manyEvent is the payload of kg.created for a create with items. IDs are the first ones of Count.
type manyEvent struct {
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
}

// deletedEvent is the payload of kg.deleted.
type deletedEvent struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	EdgesDeleted int64  `json:"edges_deleted"`
}

// linkedEvent is the payload of kg.linked. There is none when the edge was there already.
type linkedEvent struct {
	ID       string `json:"id"`
	SourceID string `json:"source_id"`
	TargetID string `json:"target_id"`
	Relation string `json:"relation"`
}

// mergedEvent is the payload of kg.merged: the record that stays, and the one that is gone.
type mergedEvent struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	MergedID     string `json:"merged_id"`
	EdgesMoved   int64  `json:"edges_moved"`
	EdgesDropped int64  `json:"edges_dropped"`
}
