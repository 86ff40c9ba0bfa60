package kg

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// created is the answer to create with items.
type created struct {
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
}

// create makes one record, or all of items or none.
func (g *graph) create(ctx context.Context, call *packs.Call) (any, error) {
	if _, many := call.Params["items"]; !many {
		r, err := newRecord(call, &fields{from: call.Params})
		if err != nil {
			return nil, err
		}
		if err := g.store.Write(ctx, func(tx *sql.Tx) error { return insert(ctx, tx, []*record{r}) }); err != nil {
			return nil, err
		}
		return tell(call, topicCreated, oneEvent{ID: r.ID, Kind: r.Kind}, r)
	}
	records, err := newRecords(call)
	if err != nil {
		return nil, err
	}
	if err := g.store.Write(ctx, func(tx *sql.Tx) error { return insert(ctx, tx, records) }); err != nil {
		return nil, err
	}
	out := created{Count: len(records), IDs: make([]string, len(records))}
	for i, r := range records {
		out.IDs[i] = r.ID
	}
	return tell(call, topicCreated, manyEvent{Count: out.Count, IDs: out.IDs[:min(len(out.IDs), maxToldIDs)]}, out)
}

func newRecords(call *packs.Call) ([]*record, error) {
	if len(call.Params) > 1 {
		return nil, &packs.InvalidError{Param: "items", Message: "stands alone: put kind and the other fields into each item"}
	}
	items, ok := call.Params["items"].([]any)
	switch {
	case !ok:
		return nil, &packs.InvalidError{Param: "items", Message: `must be an array of objects, as in [{"kind": "note", "content": "…"}]`}
	case len(items) == 0:
		return nil, &packs.InvalidError{Param: "items", Message: "is empty; there is nothing to create"}
	case len(items) > maxItems:
		return nil, &packs.InvalidError{Param: "items", Message: fmt.Sprintf("has %d elements, more than the %d allowed; split it", len(items), maxItems)}
	}
	records := make([]*record, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, &packs.InvalidError{Param: fmt.Sprintf("items[%d]", i), Message: `must be an object, as in {"kind": "note", "content": "…"}`}
		}
		r, err := newRecord(call, &fields{from: m, where: fmt.Sprintf("items[%d].", i)})
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// newRecord reads and completes a new record.
func newRecord(call *packs.Call, f *fields) (*record, error) {
	r := &record{Namespace: call.Token.Namespace(), CreatedAt: stamp(call.Time), UpdatedAt: stamp(call.Time)}
	kind, how := f.text("kind", maxLabel)
	switch {
	case how != given:
		f.fail("kind", `is missing; write kind="entity" or kind="note"`)
	case *kind == kindEntity:
		f.only("is no field of an entity", "kind", "entity_kind", "name", "description", "tags", "properties")
		r.Kind = kindEntity
		r.EntityKind = required(f, "entity_kind", `say what sort of thing it is, as in entity_kind="concept"`, f.label)
		r.Name = required(f, "name", `an entity needs one, as in name="LoRA"`, bounded(f.spoken, maxName))
		r.Description, _ = f.text("description", maxText)
	case *kind == kindNote:
		f.only("is no field of a note", "kind", "note_kind", "title", "content", "tags", "properties")
		r.Kind = kindNote
		r.NoteKind, _ = f.label("note_kind")
		r.Title, _ = f.spoken("title", maxName)
		r.Content = required(f, "content", `a note needs text, as in content="…"`, bounded(f.spoken, maxText))
	default:
		f.fail("kind", `must be "entity" or "note"; edges are made with link`)
	}
	r.Tags, _ = f.tags()
	props, _ := f.object("properties")
	r.Properties = f.properties(props)
	if f.err != nil {
		return nil, f.err
	}
	var err error
	r.ID, err = newID()
	return r, err
}

func required(f *fields, name, hint string, read func(string) (*string, presence)) *string {
	s, how := read(name)
	if how != given {
		f.fail(name, "is missing; %s", hint)
	}
	return s
}

func bounded(read func(string, int) (*string, presence), limit int) func(string) (*string, presence) {
	return func(name string) (*string, presence) { return read(name, limit) }
}
