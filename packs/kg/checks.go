package kg

import "github.com/verbgate/verbgate/packs"

// checks are what must hold of the params together, in CEL, so that a call that cannot succeed is
// refused with a reason before the gate is asked and before anything is looked up. The handlers hold
// to the same rules by themselves; items, whose members no manifest types, are theirs alone. has() is
// true of a null, so only params that are not nullable are looked into.
func checks() []packs.Check {
	return []packs.Check{
		{
			Name:    "items-or-one",
			Verbs:   []string{"create"},
			Rule:    `has(params.items) != has(params.kind)`,
			Message: `give either kind and the fields of one record, or items for several; inside items each has its own kind`,
		},
		{
			Name:  "items-alone",
			Verbs: []string{"create"},
			Rule: `!has(params.items) || !(has(params.entity_kind) || has(params.name) || has(params.description) || has(params.note_kind) ||
				has(params.title) || has(params.content) || has(params.tags) || has(params.properties))`,
			Message: `items stands alone: put the other fields into each item`,
		},
		{
			Name:    "items-some",
			Verbs:   []string{"create"},
			Rule:    `!has(params.items) || size(params.items) > 0`,
			Message: `items is empty; there is nothing to create`,
		},
		{
			Name:    "entity-complete",
			Verbs:   []string{"create"},
			Rule:    `!has(params.kind) || params.kind != "entity" || has(params.name) && has(params.entity_kind)`,
			Message: `an entity needs a name and an entity_kind, as in create(kind="entity", entity_kind="concept", name="LoRA")`,
		},
		{
			Name:  "entity-fields",
			Verbs: []string{"create"},
			Rule: `!has(params.kind) || params.kind != "entity" ||
				!(has(params.note_kind) || has(params.title) || has(params.content))`,
			Message: `note_kind, title and content are a note's; an entity has entity_kind, name and description`,
		},
		{
			Name:    "note-complete",
			Verbs:   []string{"create"},
			Rule:    `!has(params.kind) || params.kind != "note" || has(params.content)`,
			Message: `a note needs content, as in create(kind="note", content="…")`,
		},
		{
			Name:  "note-fields",
			Verbs: []string{"create"},
			Rule: `!has(params.kind) || params.kind != "note" ||
				!(has(params.entity_kind) || has(params.name) || has(params.description))`,
			Message: `entity_kind, name and description are an entity's; a note has note_kind, title and content`,
		},
		{
			Name:    "name-speaks",
			Verbs:   []string{"create", "update"},
			Rule:    `!has(params.name) || params.name.matches("\\S")`,
			Message: `name is blank; write something`,
		},
		{
			Name:    "content-some",
			Verbs:   []string{"create", "update"},
			Rule:    `!has(params.content) || size(params.content) > 0`,
			Message: `content is empty; write something`,
		},
		{
			Name:    "entity-kind-form",
			Verbs:   []string{"create", "update", "list", "search"},
			Rule:    `!has(params.entity_kind) || params.entity_kind.matches("^[a-z][a-z0-9_]*$")`,
			Message: `entity_kind must ` + labelRules + `, as in "concept"`,
		},
		{
			Name:    "note-kind-form",
			Verbs:   []string{"create", "list", "search"},
			Rule:    `!has(params.note_kind) || params.note_kind.matches("^[a-z][a-z0-9_]*$")`,
			Message: `note_kind must ` + labelRules + `, as in "observation"`,
		},
		{
			Name:    "relation-form",
			Verbs:   []string{"link"},
			Rule:    `params.relation.matches("^[a-z][a-z0-9_]*$")`,
			Message: `relation must ` + labelRules + `, as in "introduced_by"`,
		},
		{
			Name:    "relation-filter-form",
			Verbs:   []string{"neighbors"},
			Rule:    `!has(params.relation) || params.relation.matches("^[a-z][a-z0-9_]*$")`,
			Message: `relation must ` + labelRules + `, as in "introduced_by"`,
		},
		{
			Name:    "kind-filters",
			Verbs:   []string{"list", "search"},
			Rule:    `!(has(params.entity_kind) && has(params.note_kind))`,
			Message: `entity_kind and note_kind exclude each other: nothing is both an entity and a note`,
		},
		{
			Name:  "kind-filter-fits",
			Verbs: []string{"list", "search"},
			Rule: `!has(params.kind) || (params.kind == "entity" || !has(params.entity_kind)) &&
				(params.kind == "note" || !has(params.note_kind))`,
			Message: `entity_kind goes with kind="entity", note_kind with kind="note"`,
		},
		{
			Name:    "tag-speaks",
			Verbs:   []string{"list", "search"},
			Rule:    `!has(params.tag) || params.tag.matches("\\S")`,
			Message: `tag is blank; leave it out to see records with any tags`,
		},
		{
			Name:    "query-speaks",
			Verbs:   []string{"search"},
			Rule:    `params.query.matches("\\S")`,
			Message: `query is blank; write at least one word, as in search(query="LoRA")`,
		},
		{
			Name:  "change-something",
			Verbs: []string{"update"},
			Rule: `has(params.entity_kind) || has(params.name) || has(params.description) || has(params.note_kind) ||
				has(params.title) || has(params.content) || has(params.tags) || has(params.properties)`,
			Message: `there is nothing to change: give at least one field beside id`,
		},
		{
			Name:  "change-one-kind",
			Verbs: []string{"update"},
			Rule: `!((has(params.entity_kind) || has(params.name) || has(params.description)) &&
				(has(params.note_kind) || has(params.title) || has(params.content)))`,
			Message: `entity_kind, name and description are an entity's, note_kind, title and content a note's; no record has both`,
		},
		{
			Name:    "ends-given",
			Verbs:   []string{"link"},
			Rule:    `params.source_id != "" && params.target_id != ""`,
			Message: `link needs the ids of two records; an empty string is no id`,
		},
		{
			Name:    "ends-differ",
			Verbs:   []string{"link"},
			Rule:    `params.source_id != params.target_id`,
			Message: `source_id and target_id are the same; an edge joins two different records`,
		},
		{
			Name:    "merge-differ",
			Verbs:   []string{"merge_entity", "merge_note"},
			Rule:    `params.into_id != params.from_id`,
			Message: `into_id and from_id are the same; give two different records`,
		},
	}
}
