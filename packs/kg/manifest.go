package kg

import (
	"encoding/json"
	"fmt"

	"github.com/verbgate/verbgate/packs"
)

// Manifest describes the pack.
func (Pack) Manifest() packs.Manifest {
	return packs.Manifest{
		Name:        "kg",
		Description: "A knowledge graph: entities, notes, and typed edges between them.",
		Verbs:       append(writingVerbs(), readingVerbs()...),
		Checks:      checks(),
		Topics:      topics(),
		Schema:      schema(),
	}
}

const (
	recordShape = "{id, kind, entity_kind, name, description?, tags, properties, namespace, created_at, updated_at} for an entity, " +
		"{id, kind, note_kind?, title?, content, tags, properties, namespace, created_at, updated_at} for a note"
	edgeShape    = "{id, kind: \"edge\", source_id, target_id, relation, weight?, properties, namespace, created_at}"
	summaryShape = "{id, kind, entity_kind | note_kind?, name | title?, tags, namespace, updated_at}"
)

// writingVerbs change something. Two changes of one record within one request share a write key when
// they name it in full, in either case, or by the same prefix: keys are compared as text, before anything
// is looked up, so a prefix and the full id do not meet, nor do two prefixes of different length. link
// has none: edges can be added in any order, and adding the same one twice does nothing.
func writingVerbs() []packs.Verb {
	return []packs.Verb{
		{
			Name:        "create",
			Description: "Create an entity or a note in the namespace of the call, or up to 1000 of them at once with items: all or none.",
			Category:    packs.Commissive,
			Visibility:  packs.Public,
			Writes:      true,
			Params: []packs.Param{
				choice("kind", `What to create; required unless items is given.`, "", kindEntity, kindNote),
				label("entity_kind", `What sort of thing the entity is, as in "concept"; required for an entity.`),
				text("name", "The entity's name; required for an entity.", maxName),
				text("description", "What the entity is, in a few sentences.", maxText),
				label("note_kind", `What sort of note it is, as in "observation".`),
				text("title", "The note's title.", maxName),
				text("content", "The note's text; required for a note.", maxText),
				tags("Words to filter by; each counts once."),
				properties("Any further data. Numbers keep their spelling."),
				{
					Name: "items", Type: packs.ArrayOf(packs.Object), MaxItems: maxItems,
					Description: "In place of all other params: up to 1000 objects, each with the fields of one entity or note, kind included.",
				},
			},
			Returns: "The record: " + recordShape + ". With items: {count, ids}, the ids in the order of the items.",
		},
		{
			Name:        "update",
			Description: "Change the given fields of an entity or a note and leave the others as they are.",
			Category:    packs.Declaration,
			Visibility:  packs.Public,
			Writes:      true,
			Resource:    "id",
			WriteKeys:   []string{"record:{id}"},
			Params: []packs.Param{
				id("id", "The entity or note to change."),
				label("entity_kind", "The entity's new kind."),
				text("name", "The entity's new name.", maxName),
				nullable(text("description", "The entity's new description; null removes it.", maxText)),
				nullable(label("note_kind", "The note's new kind; null removes it.")),
				nullable(text("title", "The note's new title; null removes it.", maxName)),
				text("content", "The note's new text.", maxText),
				nullable(tags("The new tags, in place of all the old ones; null removes them.")),
				nullable(properties("Properties to set, by name; a null in it removes that one, the others stay. null removes all.")),
			},
			Returns: "The changed record: " + recordShape + ".",
		},
		{
			Name: "delete",
			Description: "Delete an entity or a note together with all its edges, or one edge. Edges of other namespaces go too; " +
				"edges_deleted counts those that neighbors shows.",
			Category:   packs.Declaration,
			Visibility: packs.Public,
			Writes:     true,
			Resource:   "id",
			WriteKeys:  []string{"record:{id}"},
			Params:     []packs.Param{id("id", "The entity, note or edge to delete.")},
			Returns:    "{id, kind, deleted: true, edges_deleted}.",
		},
		{
			Name: "link",
			Description: "Join two records by a typed edge, which belongs to the namespace of the call. Repeating a link gives the edge that is there; " +
				"repeating it with another weight or other properties is a conflict.",
			Category:   packs.Commissive,
			Visibility: packs.Public,
			Writes:     true,
			Resource:   "source_id",
			Params: []packs.Param{
				id("source_id", "The entity or note the edge starts from."),
				id("target_id", "The entity or note it leads to; not the source itself."),
				needed(label("relation", `How the two are related, read from source to target, as in "introduced_by".`)),
				{Name: "weight", Type: packs.Number, Min: "0", Description: "How strong or certain the relation is; the scale is yours."},
				properties("Any further data about the edge. Numbers keep their spelling."),
			},
			Returns: edgeShape + " and created: false when the edge was there already.",
		},
		{
			Name: "merge_entity",
			Description: "Make one entity of two, both in the namespace of the call: edges move to into_id, tags are united, " +
				"a description or property that into_id lacks is taken over, and from_id is deleted.",
			Category:   packs.Declaration,
			Visibility: packs.Public,
			Writes:     true,
			Resource:   "into_id",
			WriteKeys:  []string{"record:{into_id}", "record:{from_id}"},
			Params: []packs.Param{
				id("into_id", "The entity that stays."),
				id("from_id", "The entity that is merged into it and deleted."),
			},
			Returns: mergeShape,
		},
		{
			Name: "merge_note",
			Description: "Make one note of two, both in the namespace of the call: edges move to into_id, tags are united, " +
				"a title, kind or property that into_id lacks is taken over, and from_id is deleted.",
			Category:   packs.Declaration,
			Visibility: packs.Public,
			Writes:     true,
			Resource:   "into_id",
			WriteKeys:  []string{"record:{into_id}", "record:{from_id}"},
			Params: []packs.Param{
				id("into_id", "The note that stays."),
				id("from_id", "The note that is merged into it and deleted."),
				choice("content", `"append" puts the text of from_id after that of into_id, unless they are equal; "keep" drops it.`, "append", "append", "keep"),
			},
			Returns: mergeShape,
		},
	}
}

const mergeShape = "{id, merged_id, edges_moved, edges_dropped, record}. Edges between the two, and those that into_id has already, are dropped. " +
	"Both numbers count the edges that neighbors shows; edges of other namespaces move too."

// readingVerbs change nothing.
func readingVerbs() []packs.Verb {
	return []packs.Verb{
		{
			Name:        "get",
			Description: "Show one entity, note or edge.",
			Category:    packs.Assertive,
			Visibility:  packs.Public,
			Resource:    "id",
			Params:      []packs.Param{id("id", "The entity, note or edge to show.")},
			Returns:     recordShape + "; for an edge " + edgeShape + ".",
		},
		{
			Name:        "list",
			Description: "List entities and notes of the readable namespaces in the order of their creation, page by page.",
			Category:    packs.Assertive,
			Visibility:  packs.Public,
			Params: append(filters(),
				text("name_prefix", "Only those whose name or title begins with this, in either case.", maxName),
				choice("order", "Which come first.", "newest", "newest", "oldest"),
				limit(listLimit, listMost),
				cursorParam(),
			),
			Returns: "{items: [record], next_cursor?}. A page of long records may hold fewer than limit; the last page has no next_cursor.",
		},
		{
			Name: "search",
			Description: "Find entities and notes of the readable namespaces by the words in their names, texts and tags, best first. " +
				"A word also finds longer words that begin with it. A hit in the name counts most, then one in the tags, then one in the text; " +
				fmt.Sprintf("among more than %d records with the words the newest are ranked, and those that have them in name and tags.", maxRanked),
			Category:   packs.Assertive,
			Visibility: packs.Public,
			Params: append([]packs.Param{
				needed(text("query", "The words to look for. There is no query language: every character is text.", maxQuery)),
				choice("match", `Whether a hit must have all the words or any of them.`, matchAll, matchAll, matchAny),
				limit(searchLimit, searchMost),
			}, filters()...),
			Returns: "{items: [" + summaryShape + " with score and snippet?], count}. score is 1 for the best hit and less for the others.",
		},
		{
			Name: "neighbors",
			Description: "List the edges of a record with the records at their far ends, the newest edge first. " +
				"Edges and records outside the readable namespaces are left out.",
			Category:   packs.Assertive,
			Visibility: packs.Public,
			Resource:   "id",
			Params: []packs.Param{
				id("id", "The entity or note whose neighbours to list."),
				choice("direction", `"out" follows edges that start from the record, "in" those that lead to it.`, "both", outgoing, incoming, "both"),
				label("relation", "Only edges of this relation."),
				choice("kind", "Only neighbours of this kind.", "", kindEntity, kindNote),
				limit(listLimit, listMost),
				cursorParam(),
			},
			Returns: "{id, items: [{edge_id, direction, relation, weight?, properties, namespace, created_at, record: " + summaryShape + "}], next_cursor?}.",
		},
		{
			Name:        "stats",
			Description: "Count the entities, notes and edges of the readable namespaces.",
			Category:    packs.Assertive,
			Visibility:  packs.Public,
			Returns: fmt.Sprintf("{entities, notes, edges, by_entity_kind, by_note_kind, by_relation, by_namespace}; "+
				"by_namespace counts entities and notes; the other three name the %d most frequent.", shownCounts),
		},
	}
}

func filters() []packs.Param {
	return []packs.Param{
		choice("kind", "Only records of this kind.", "", kindEntity, kindNote),
		label("entity_kind", "Only entities of this kind."),
		label("note_kind", "Only notes of this kind."),
		text("tag", "Only records with this tag.", maxTag),
	}
}

func id(name, description string) packs.Param {
	return packs.Param{
		Name: name, Type: packs.String, Required: true, MaxLength: packs.MaxIDLength,
		Description: description + " A full id, or at least its first 8 hex digits, which are looked for in the readable namespaces.",
	}
}

func text(name, description string, limit int) packs.Param {
	return packs.Param{Name: name, Type: packs.String, Description: description, MaxLength: limit}
}

// label is the name of a kind or a relation; the check named labels says what it looks like.
func label(name, description string) packs.Param { return text(name, description, maxLabel) }

func choice(name, description, preset string, values ...string) packs.Param {
	p := packs.Param{Name: name, Type: packs.String, Description: description, Enum: values}
	if preset != "" {
		p.Default = preset
	}
	return p
}

func tags(description string) packs.Param {
	return packs.Param{Name: "tags", Type: packs.ArrayOf(packs.String), Description: description, MaxLength: maxTag, MaxItems: maxTags}
}

func properties(description string) packs.Param {
	return packs.Param{Name: "properties", Type: packs.Object, Description: description}
}

func limit(preset, most int) packs.Param {
	return packs.Param{
		Name: "limit", Type: packs.Integer, Description: "How many at most.",
		Default: number(preset), Min: "1", Max: number(most),
	}
}

func cursorParam() packs.Param {
	return packs.Param{
		Name: "cursor", Type: packs.String, MaxLength: maxCursor,
		Description: "next_cursor of the page before, with the same filters and order; leave it out for the first page.",
	}
}

func number(n int) json.Number { return json.Number(fmt.Sprint(n)) }

func needed(p packs.Param) packs.Param {
	p.Required = true
	return p
}

func nullable(p packs.Param) packs.Param {
	p.Nullable = true
	return p
}
