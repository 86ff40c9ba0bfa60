package kg

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/verbgate/verbgate/packs"
)

// update changes the fields that are given and leaves the others. null clears one that may be missing.
func (g *graph) update(ctx context.Context, call *packs.Call) (any, error) {
	id, err := packs.ParseIDRef("id", call.Params.String("id"))
	if err != nil {
		return nil, err
	}
	if len(call.Params) < 2 {
		return nil, &packs.InvalidError{Message: "nothing to change: give at least one field beside id"}
	}
	r, err := packs.Within(ctx, g.store.Write, func(tx *sql.Tx) (*record, error) {
		p, err := find(ctx, tx, id, call.Token.Readable())
		if err != nil {
			return nil, err
		}
		if p.kind == kindEdge {
			return nil, &packs.InvalidError{Param: "id", Message: "this is an edge, and edges do not change; delete it and link again"}
		}
		r, err := load(ctx, tx, p.seq)
		if err != nil {
			return nil, err
		}
		if err := change(r, call.Params); err != nil {
			return nil, err
		}
		return r, save(ctx, tx, r, call.Time)
	})
	if err != nil {
		return nil, err
	}
	return tell(call, topicUpdated, oneEvent{ID: r.ID, Kind: r.Kind}, r)
}

// change applies the fields of an update to a record.
func change(r *record, params packs.Params) error {
	f := &fields{from: params, nulls: true}
	if r.Kind == kindEntity {
		f.only("is no field of an entity, which this is", "id", "entity_kind", "name", "description", "tags", "properties")
		replace(f, "entity_kind", &r.EntityKind, f.label, false)
		replace(f, "name", &r.Name, bounded(f.spoken, maxName), false)
		replace(f, "description", &r.Description, bounded(f.text, maxText), true)
	} else {
		f.only("is no field of a note, which this is", "id", "note_kind", "title", "content", "tags", "properties")
		replace(f, "note_kind", &r.NoteKind, f.label, true)
		replace(f, "title", &r.Title, bounded(f.spoken, maxName), true)
		replace(f, "content", &r.Content, bounded(f.spoken, maxText), false)
	}
	if tags, how := f.tags(); how != absent {
		r.Tags = tags
	}
	if changes, how := f.object("properties"); how == cleared {
		r.Properties = json.RawMessage("{}")
	} else if how == given {
		props, err := decodeObject(r.Properties)
		if err != nil {
			return err
		}
		for name, v := range changes {
			if v == nil {
				delete(props, name)
			} else {
				props[name] = v
			}
		}
		r.Properties = f.properties(props)
	}
	return f.err
}

// replace reads a field into its place; null empties one that is nullable.
func replace(f *fields, name string, field **string, read func(string) (*string, presence), nullable bool) {
	s, how := read(name)
	switch {
	case how == given:
		*field = s
	case how == cleared && nullable:
		*field = nil
	case how == cleared:
		f.fail(name, "is null, and a record cannot be without; leave it out to keep what is there")
	}
}
