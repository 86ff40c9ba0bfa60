package packs

import "encoding/json"

// Manifest is what a pack declares (dispatch.md 9). Manifest.Validate checks one.
type Manifest struct {
	Name        string
	Description string
	Requires    []string // names of the packs that must be present, and are opened first
	Verbs       []Verb
	Checks      []Check
	Topics      []string
	Schema      Schema
}

// Verb declares one verb. Name is the full name: every pack but core and kg prefixes it with its own.
type Verb struct {
	Name          string
	Description   string
	Category      Category
	Visibility    Visibility
	Params        []Param
	WriteKeys     []string // templates "space:{param}[:{param}]"
	Resource      string   // the param that identifies a record, or ""
	Writes        bool     // the verb changes something: what it did stands even when its answer is lost
	AlwaysVerbose bool
	Returns       string // one line on the shape of the result
}

// Category is the kind of speech act a verb is. The set is closed.
type Category string

// The categories of dispatch.md 9.
const (
	Assertive   Category = "assertive"
	Commissive  Category = "commissive"
	Declaration Category = "declaration"
	Directive   Category = "directive"
)

// Visibility says whether callers outside the process may call a verb. The zero value is internal.
type Visibility uint8

const (
	// Subhandler is an internal verb: other verbs and the operator's command line may call it.
	Subhandler Visibility = iota
	// Public is a verb that MCP and wire callers may call.
	Public
)

// Param declares one param of a verb.
type Param struct {
	Name        string
	Type        Type
	Required    bool
	Description string
	Enum        []string    // the strings allowed; for string and array<string>
	Default     any         // a plain JSON value, or nil for none
	Min, Max    json.Number // inclusive bounds of a number, "" for none
	MaxLength   int         // of every string in the value, at any depth, in bytes of UTF-8; 0 means DefaultMaxLength
	MaxItems    int         // of every array or object in the value, at any depth; 0 means DefaultMaxItems
	Nullable    bool        // null is a value
	Sensitive   bool        // sealed in the audit store
}

// Size bounds of params that declare none.
const (
	DefaultMaxLength = 64 << 10
	DefaultMaxItems  = 1000
)

// Type is the type of a param: one of the constants, or ArrayOf one of them.
type Type string

// The types of dispatch.md 9.
const (
	String   Type = "string"
	Integer  Type = "integer" // a literal without point or exponent, in int64
	Number   Type = "number"
	Boolean  Type = "boolean"
	Object   Type = "object"
	Array    Type = "array" // elements of any type
	UUID     Type = "uuid"  // 8-4-4-4-12 hex digits, compared in lower case
	Datetime Type = "datetime"
	Any      Type = "any"
)

// ArrayOf is the type array<T>. T is not itself an array.
func ArrayOf(t Type) Type { return "array<" + t + ">" }

// Check is a rule over the params of one call (dispatch.md 5), in CEL.
type Check struct {
	Name        string
	Rule        string // CEL, boolean; true means the params are fine
	Message     string // what the caller reads when it fails; or
	MessageRule string // CEL, string, in place of Message
	Verbs       []string
	// File, Line and Column are where Rule starts, for packs read from files. A pack written in Go
	// leaves them zero; problems then name the pack and the check.
	File         string
	Line, Column int
	// MessageLine and MessageColumn are where MessageRule starts in File. All of these count from 1,
	// columns in characters; the lines of a text over several start in the same column.
	MessageLine, MessageColumn int
}

// Schema is what a pack keeps in its backend.
type Schema struct {
	Tables     []string // every table the migrations make, so that two packs never share one
	Migrations []string // SQL scripts; number i brings the schema to version i+1. Never edited, only appended to.
}

// Listing is a verb as verbs() and a tool description show it.
type Listing struct {
	Verb        string   `json:"verb"`
	Pack        string   `json:"pack"`
	Category    Category `json:"category"`
	Signature   string   `json:"signature"` // e.g. get(id: string), optional params with a ?
	Description string   `json:"description"`
}
