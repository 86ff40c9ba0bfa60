package memory

// What the pack tells its subscribers (session.md), once the change is in the store: which memory it was
// about, and never what is in it. The event's namespace is the one the call worked in.
const (
	topicRemembered = "memory.remembered"
	topicForgotten  = "memory.forgotten"
)

func topics() []string { return []string{topicRemembered, topicForgotten} }

// event is the payload of both; About is of memory.remembered.
type event struct {
	ID    string `json:"id"`
	About string `json:"about,omitempty"`
}
