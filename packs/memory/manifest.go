package memory

import (
	"encoding/json"
	"strconv"

	"github.com/verbgate/verbgate/packs"
)

// Bounds of the params. Content is kept short enough that an answer of maxLimit memories fits a
// response frame.
const (
	maxContent      = 16 << 10 // bytes
	maxQuery        = 1 << 10  // bytes
	maxTerms        = 32
	maxTag          = 64 // bytes
	maxTags         = 32
	defaultLimit    = 10
	maxLimit        = 100
	defaultSalience = 0.5
)

const shape = "{id, content, about?, tags, salience, namespace, created_at}"

// Manifest describes the pack.
func (Pack) Manifest() packs.Manifest {
	return packs.Manifest{
		Name:        "memory",
		Description: "Short texts worth keeping, found again by their words, age and weight.",
		Requires:    []string{"kg"},
		Verbs: []packs.Verb{
			{
				Name:        "memory.remember",
				Description: "Keep a text in the namespace of the call.",
				Category:    packs.Commissive,
				Visibility:  packs.Public,
				Writes:      true,
				Params: []packs.Param{
					{Name: "content", Type: packs.String, Required: true, MaxLength: maxContent, Description: "What to keep, in words that will be looked for later."},
					{Name: "about", Type: packs.String, MaxLength: packs.MaxIDLength, Description: "The id of an entity or note that this is about. You must be able to get it."},
					{Name: "tags", Type: packs.ArrayOf(packs.String), MaxLength: maxTag, MaxItems: maxTags, Description: "Words to filter by; they are searched too. Each counts once."},
					{Name: "salience", Type: packs.Number, Default: number(defaultSalience), Min: "0", Max: "1", Description: "How much it matters, from 0 to 1."},
				},
				Returns: shape + ".",
			},
			{
				Name: "memory.recall",
				Description: "Find memories of the readable namespaces that have any of the words, best first. " +
					"What counts is how many of the telling words a memory has, then how recent and how salient it is.",
				Category:   packs.Assertive,
				Visibility: packs.Public,
				Params: []packs.Param{
					queryParam(),
					{Name: "limit", Type: packs.Integer, Default: number(defaultLimit), Min: "1", Max: number(maxLimit), Description: "How many at most."},
					{Name: "tag", Type: packs.String, MaxLength: maxTag, Description: "Only memories with this tag."},
				},
				Returns: "{items: [" + shape + " with score, from 0 to 1], count}.",
			},
			{
				Name:        "memory.forget",
				Description: "Delete a memory.",
				Category:    packs.Declaration,
				Visibility:  packs.Public,
				Writes:      true,
				Resource:    "id",
				WriteKeys:   []string{"memory:{id}"},
				Params:      []packs.Param{idParam("The memory to delete.")},
				Returns:     "{id, namespace, forgotten: true}.",
			},
			{
				Name:        "memory.recall_score",
				Description: "Explain the score that memory.recall gives a memory for a query at this moment.",
				Category:    packs.Assertive,
				Visibility:  packs.Subhandler,
				Resource:    "id",
				Params:      []packs.Param{idParam("The memory to explain."), queryParam()},
				Returns: "{id, namespace, recalled, score, parts: {text, recency, salience: {value, weight, points}}, age_days, terms: [{term, match, weight}]}. " +
					"points are value times weight and add up to score. recalled is false when recall would not return the memory whatever its limit.",
			},
		},
		Checks: checks(),
		Topics: topics(),
		Schema: schema(),
	}
}

func queryParam() packs.Param {
	return packs.Param{
		Name: "query", Type: packs.String, Required: true, MaxLength: maxQuery,
		Description: "The words to look for. There is no query language: every character is text.",
	}
}

func idParam(what string) packs.Param {
	return packs.Param{
		Name: "id", Type: packs.String, Required: true, MaxLength: packs.MaxIDLength,
		Description: what + " A full id, or at least its first 8 hex digits, which are looked for in the readable namespaces.",
	}
}

func number(f float64) json.Number { return json.Number(strconv.FormatFloat(f, 'f', -1, 64)) }

// checks refuse, before the gate is asked, what no handler could carry out. Sizes and ranges are the
// manifest's. The handlers hold to the same rules by themselves.
func checks() []packs.Check {
	return []packs.Check{
		{
			Name:    "content-speaks",
			Verbs:   []string{"memory.remember"},
			Rule:    `params.content.matches("\\S")`,
			Message: `content is blank; write what to keep, as in memory.remember(content="The build needs Go 1.26")`,
		},
		{
			Name:    "tags-speak",
			Verbs:   []string{"memory.remember"},
			Rule:    `!has(params.tags) || params.tags.all(t, t.matches("\\S"))`,
			Message: `a tag is blank; leave it out`,
		},
		{
			Name:    "about-form",
			Verbs:   []string{"memory.remember"},
			Rule:    `!has(params.about) || params.about.matches("^[0-9A-Fa-f][0-9A-Fa-f-]{7,35}$")`,
			Message: `about is not an id; give the full id of an entity or note, or at least its first 8 hex digits`,
		},
		{
			Name:    "query-speaks",
			Verbs:   []string{"memory.recall", "memory.recall_score"},
			Rule:    `params.query.matches("\\S")`,
			Message: `query is blank; write at least one word, as in memory.recall(query="build")`,
		},
		{
			Name:    "tag-speaks",
			Verbs:   []string{"memory.recall"},
			Rule:    `!has(params.tag) || params.tag.matches("\\S")`,
			Message: `tag is blank; leave it out to find memories with any tags`,
		},
		{
			Name:    "id-form",
			Verbs:   []string{"memory.forget", "memory.recall_score"},
			Rule:    `params.id.matches("^[0-9A-Fa-f][0-9A-Fa-f-]{7,35}$")`,
			Message: `id is not an id; give a full one such as "1b4e28ba-2fa1-4d2b-883f-0016d3cca427", or at least its first 8 hex digits`,
		},
	}
}
