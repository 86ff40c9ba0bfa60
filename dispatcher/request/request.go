// Package request turns the text of an ops argument into operations, and back (request.md 1 to 6).
//
// It is pure: it knows no verbs, no packs and no policy, and does no I/O.
package request

// Mode is how the operations of a request run.
type Mode uint8

// The modes of request.md 1.
const (
	Single Mode = iota
	Parallel
	Chain
)

// String is single, parallel or chain.
func (m Mode) String() string {
	switch m {
	case Parallel:
		return "parallel"
	case Chain:
		return "chain"
	case Single:
	}
	return "single"
}

// Request is a parsed ops text: at least one operation, at most MaxOps.
type Request struct {
	Mode Mode
	Ops  []Operation
}

// Operation is one verb call.
type Operation struct {
	Tool string
	Args []Arg // in the order of the text; names are unique
}

// Arg is one argument.
type Arg struct {
	Name  string
	Value Value
}

// Limits of request.md 5.
const (
	MaxOps   = 100
	MaxBytes = 1 << 20
	MaxDepth = 64
)
