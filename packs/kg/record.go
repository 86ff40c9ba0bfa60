package kg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The kinds of things an id can name.
const (
	kindEntity = "entity"
	kindNote   = "note"
	kindEdge   = "edge"
)

// record is an entity or a note, as it is kept and as it is shown. Which of the optional members may
// be there depends on Kind: EntityKind, Name and Description are an entity's, NoteKind, Title and
// Content a note's.
type record struct {
	seq int64

	ID          string          `json:"id"`
	Kind        string          `json:"kind"`
	EntityKind  *string         `json:"entity_kind,omitempty"`
	NoteKind    *string         `json:"note_kind,omitempty"`
	Name        *string         `json:"name,omitempty"`
	Title       *string         `json:"title,omitempty"`
	Description *string         `json:"description,omitempty"`
	Content     *string         `json:"content,omitempty"`
	Tags        []string        `json:"tags"`
	Properties  json.RawMessage `json:"properties"`
	Namespace   string          `json:"namespace"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
}

// recordColumns are what scanRecord reads, of the table alias r.
const recordColumns = `r.seq, r.id, r.kind, r.sub_kind, r.namespace, r.created_at, r.updated_at, r.name, r.tags, r.properties, r.body`

func scanRecord(scan func(...any) error, more ...any) (*record, error) {
	var (
		r                   record
		subKind, name, body *string
		tags, props         string
	)
	dest := append([]any{&r.seq, &r.ID, &r.Kind, &subKind, &r.Namespace, &r.CreatedAt, &r.UpdatedAt, &name, &tags, &props, &body}, more...)
	if err := scan(dest...); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(tags), &r.Tags); err != nil {
		return nil, fmt.Errorf("stored tags of %s: %w", r.ID, err)
	}
	r.Properties = json.RawMessage(props)
	*r.subKind(), *r.name(), *r.body() = subKind, name, body
	return &r, nil
}

// subKind, name and body are the members that the table keeps in one column for both kinds.
func (r *record) subKind() **string { return pick(r, &r.EntityKind, &r.NoteKind) }
func (r *record) name() **string    { return pick(r, &r.Name, &r.Title) }
func (r *record) body() **string    { return pick(r, &r.Description, &r.Content) }

func pick(r *record, ofEntity, ofNote **string) **string {
	if r.Kind == kindNote {
		return ofNote
	}
	return ofEntity
}

// foldedName is the name as name_prefix compares it.
func (r *record) foldedName() *string {
	n := *r.name()
	if n == nil {
		return nil
	}
	f := strings.ToLower(*n)
	return &f
}

// size is about how many bytes the record takes in an answer.
func (r *record) size() int {
	n := 512 + len(r.Properties)
	for _, s := range []*string{*r.name(), *r.body()} {
		if s != nil {
			n += len(*s)
		}
	}
	return n
}

// summary is a record as lists of hits and neighbours show it: without its text and properties.
type summary struct {
	ID         string   `json:"id"`
	Kind       string   `json:"kind"`
	EntityKind *string  `json:"entity_kind,omitempty"`
	NoteKind   *string  `json:"note_kind,omitempty"`
	Name       *string  `json:"name,omitempty"`
	Title      *string  `json:"title,omitempty"`
	Tags       []string `json:"tags"`
	Namespace  string   `json:"namespace"`
	UpdatedAt  string   `json:"updated_at"`
}

func (r *record) summary() summary {
	return summary{
		ID: r.ID, Kind: r.Kind, EntityKind: r.EntityKind, NoteKind: r.NoteKind, Name: r.Name, Title: r.Title,
		Tags: r.Tags, Namespace: r.Namespace, UpdatedAt: r.UpdatedAt,
	}
}

// edge is a typed edge, as it is kept and as it is shown.
type edge struct {
	seq int64

	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	SourceID   string          `json:"source_id"`
	TargetID   string          `json:"target_id"`
	Relation   string          `json:"relation"`
	Weight     json.Number     `json:"weight,omitempty"`
	Properties json.RawMessage `json:"properties"`
	Namespace  string          `json:"namespace"`
	CreatedAt  string          `json:"created_at"`
}

// stamp spells an instant as records show it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// encode spells a value as JSON for the store: numbers as they came, nothing escaped that JSON does
// not ask for, members in the order of their names.
func encode(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buf.String(), "\n"), nil
}

// decodeObject reads a stored object back; numbers keep their spelling.
func decodeObject(text []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("stored properties: %w", err)
	}
	return m, nil
}
