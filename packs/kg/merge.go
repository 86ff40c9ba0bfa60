package kg

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/verbgate/verbgate/packs"
)

// merged is the answer to the merges.
type merged struct {
	ID           string  `json:"id"` // the record that stays
	MergedID     string  `json:"merged_id"`
	EdgesMoved   int64   `json:"edges_moved"`
	EdgesDropped int64   `json:"edges_dropped"`
	Record       *record `json:"record"`
}

func (g *graph) mergeEntity(ctx context.Context, call *packs.Call) (any, error) {
	return g.merge(ctx, call, kindEntity, func(into, from *record) {
		if into.Description == nil {
			into.Description = from.Description
		}
	})
}

func (g *graph) mergeNote(ctx context.Context, call *packs.Call) (any, error) {
	f := &fields{from: call.Params}
	keep := f.choice("content", "append", "keep") == "keep"
	if f.err != nil {
		return nil, f.err
	}
	return g.merge(ctx, call, kindNote, func(into, from *record) {
		if into.Title == nil {
			into.Title = from.Title
		}
		if into.NoteKind == nil {
			into.NoteKind = from.NoteKind
		}
		if !keep && *into.Content != *from.Content {
			both := *into.Content + "\n\n" + *from.Content
			into.Content = &both
		}
	})
}

// merge makes one record of two of a kind. Both must be in the token's primary namespace: a merge
// destroys a record and rewrites another, and the seeds have it compare where other verbs by id do not.
func (g *graph) merge(ctx context.Context, call *packs.Call, kind string, fill func(into, from *record)) (any, error) {
	intoID, err := packs.ParseIDRef("into_id", call.Params.String("into_id"))
	if err != nil {
		return nil, err
	}
	fromID, err := packs.ParseIDRef("from_id", call.Params.String("from_id"))
	if err != nil {
		return nil, err
	}
	out, err := packs.Within(ctx, g.store.Write, func(tx *sql.Tx) (merged, error) {
		into, err := mergeable(ctx, tx, call, intoID, kind)
		if err != nil {
			return merged{}, err
		}
		from, err := mergeable(ctx, tx, call, fromID, kind)
		if err != nil {
			return merged{}, err
		}
		if into.seq == from.seq {
			return merged{}, &packs.InvalidError{Param: "from_id", Message: "is the same record as into_id; give two different ones"}
		}
		fill(into, from)
		if err := unite(into, from); err != nil {
			return merged{}, err
		}
		out := merged{ID: into.ID, MergedID: from.ID, Record: into}
		if out.EdgesMoved, out.EdgesDropped, err = moveEdges(ctx, tx, call.Token.Readable(), into.seq, from.seq); err != nil {
			return merged{}, err
		}
		if err := remove(ctx, tx, from.seq); err != nil {
			return merged{}, err
		}
		return out, save(ctx, tx, into, call.Time)
	})
	if err != nil {
		return nil, err
	}
	return tell(call, topicMerged, mergedEvent{
		ID: out.ID, Kind: kind, MergedID: out.MergedID, EdgesMoved: out.EdgesMoved, EdgesDropped: out.EdgesDropped,
	}, out)
}

// mergeable finds one of the two. The namespace comes first: of a record in another one nothing else
// is told. That it exists is: the seeds ask for a mismatch of namespaces, which a full id that names
// nothing cannot have.
func mergeable(ctx context.Context, tx *sql.Tx, call *packs.Call, id packs.IDRef, kind string) (*record, error) {
	p, err := find(ctx, tx, id, call.Token.Readable())
	switch {
	case err != nil:
		return nil, err
	case p.namespace != call.Token.Namespace():
		return nil, &packs.NamespaceMismatchError{Message: fmt.Sprintf(
			"%s is not in the namespace %q this call works in; both records must be, so name theirs with namespace=", id.Param, call.Token.Namespace())}
	case p.kind != kind:
		return nil, &packs.InvalidError{Param: id.Param, Message: fmt.Sprintf("is the id of a record of the kind %s; %s merges two of the kind %s", p.kind, call.Verb, kind)}
	}
	return load(ctx, tx, p.seq)
}

// unite joins tags and properties; where both have a property, into keeps its own. It refuses what
// would be more than a record may hold, so that nothing is cut off silently.
func unite(into, from *record) error {
	for _, t := range from.Tags {
		if !slices.Contains(into.Tags, t) {
			into.Tags = append(into.Tags, t)
		}
	}
	if len(into.Tags) > maxTags {
		return &packs.ConflictError{Message: fmt.Sprintf("together the two have %d tags, more than the %d a record may have; remove some first", len(into.Tags), maxTags)}
	}
	if body := *into.body(); body != nil && len(*body) > maxText {
		return &packs.ConflictError{Message: fmt.Sprintf(
			"together the two contents have %d bytes, more than the %d allowed; shorten one, or keep only that of into_id with content=\"keep\"", len(*body), maxText)}
	}
	props, err := decodeObject(from.Properties)
	if err != nil {
		return err
	}
	own, err := decodeObject(into.Properties)
	if err != nil {
		return err
	}
	maps.Copy(props, own)
	f := &fields{}
	into.Properties = f.properties(props)
	if f.err != nil {
		return &packs.ConflictError{Message: fmt.Sprintf("together the properties of the two take more than the %d bytes allowed; remove some first", maxProps)}
	}
	return nil
}

// moveEdges hands the edges of one record to another, all of them. Those between the two, and those
// that the other has already in the same namespace, are dropped. It counts what the caller may read.
func moveEdges(ctx context.Context, tx *sql.Tx, readable []string, into, from int64) (moved, dropped int64, err error) {
	drop := func(condition string, args ...any) error {
		n, err := countEdges(ctx, tx, readable, from, condition, args...)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM kg_edges AS e WHERE `+condition, args...)
		}
		dropped += n
		return err
	}
	move := func(end string) error {
		n, err := countEdges(ctx, tx, readable, from, `e.`+end+` = ?`, from)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE kg_edges SET `+end+` = ? WHERE `+end+` = ?`, into, from)
		}
		moved += n
		return err
	}
	err = drop(`((e.source = ? AND e.target = ?) OR (e.source = ? AND e.target = ?))`, into, from, from, into)
	if err == nil {
		err = drop(`e.source = ? AND EXISTS (SELECT 1 FROM kg_edges k
			WHERE k.source = ? AND k.target = e.target AND k.relation = e.relation AND k.namespace = e.namespace)`, from, into)
	}
	if err == nil {
		err = drop(`e.target = ? AND EXISTS (SELECT 1 FROM kg_edges k
			WHERE k.target = ? AND k.source = e.source AND k.relation = e.relation AND k.namespace = e.namespace)`, from, into)
	}
	if err == nil {
		err = move("source")
	}
	if err == nil {
		err = move("target")
	}
	return moved, dropped, err
}
