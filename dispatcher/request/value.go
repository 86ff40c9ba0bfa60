package request

// Kind is the kind of a Value. The zero Kind is null.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	Reference
)

// Value is one immutable argument value. The zero value is null.
type Value struct{}

// Kind tells what the value is.
func (v Value) Kind() Kind { return Null }

// HasRef reports whether the value is, or holds at any depth, a reference to $prev.
func (v Value) HasRef() bool { return false }

// Any returns the value as plain JSON: nil, bool, string, json.Number, []any, map[string]any, freshly
// made. The last of repeated object keys wins. Each reference is replaced by what resolve returns for
// it, as it is, not copied; the first error ends the walk and is returned. resolve may be nil when
// HasRef is false.
func (v Value) Any(resolve func(Ref) (any, error)) (any, error) { return nil, nil }

// Ref returns the path of a Reference.
func (v Value) Ref() Ref { return Ref{} }

// Ref is a path into the result of the preceding operation.
type Ref struct{ Steps []Step }

// Step is one step of a path: a member name, or an element index when IsIndex.
type Step struct {
	Field   string
	Index   string // decimal digits without leading zeros; may be too large for an int
	IsIndex bool
}

// String is the canonical spelling of request.md 3: rows[3].k, [0].k, "" for the whole result.
func (r Ref) String() string { return "" }

// DSL is the reference as a caller may write it: $prev.rows[3].k, quoted where a field needs it.
func (r Ref) DSL() string { return "" }
