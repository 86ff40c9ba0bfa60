package packs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

// sound is a manifest with something of everything; each case of the table spoils one thing.
func sound() packs.Manifest {
	return packs.Manifest{
		Name: "notes", Description: "Notes.\nTwo lines are fine.", Requires: []string{"kg"},
		Verbs: []packs.Verb{{
			Name: "notes.add", Description: "Adds a note.", Category: packs.Commissive, Visibility: packs.Public,
			Params: []packs.Param{
				{Name: "id", Type: packs.UUID, Required: true},
				{Name: "text", Type: packs.String, MaxLength: 100},
				{Name: "kind", Type: packs.String, Enum: []string{"a", "b"}, Default: "a"},
				{Name: "limit", Type: packs.Integer, Min: "1", Max: "100", Default: json.Number("10")},
				{Name: "weight", Type: packs.Number, Min: "0.1", Max: "1e2"},
				{Name: "ids", Type: packs.ArrayOf(packs.UUID), MaxItems: 5},
				{Name: "tags", Type: packs.ArrayOf(packs.String), Enum: []string{"x", "y"}, Default: []any{"x"}},
				{Name: "key", Type: packs.String, Sensitive: true},
				{Name: "meta", Type: packs.Object, MaxItems: 3, MaxLength: 10},
				{Name: "rest", Type: packs.Any},
				{Name: "at", Type: packs.Datetime, Nullable: true},
			},
			WriteKeys: []string{"record:{id}", "name:{kind}:{text}", "record:{ids}"},
			Resource:  "id",
		}},
		Checks: []packs.Check{
			{Name: "short-text", Rule: "true", Message: "Shorten it.", Verbs: []string{"notes.add"}},
			{Name: "other", Rule: "true", MessageRule: "'x'"},
		},
		Topics: []string{"notes.added"},
		Schema: packs.Schema{Tables: []string{"notes_note"}, Migrations: []string{"CREATE TABLE notes_note (id TEXT)"}},
	}
}

func TestValidate(t *testing.T) {
	type m = packs.Manifest
	param := func(m *m, name string) *packs.Param { return m.Verbs[0].Param(name) }
	tests := []struct {
		name  string
		spoil func(*m)
		want  string // "" is sound; else a part of one of the errors, which must say where
	}{
		{"OK", func(*m) {}, ""},
		{"OKCoreBare", func(m *m) {
			*m = packs.Manifest{Name: "core", Verbs: []packs.Verb{{Name: "verbs", Category: packs.Assertive}}}
		}, ""},
		{"OKKgBare", func(m *m) {
			*m = packs.Manifest{Name: "kg", Verbs: []packs.Verb{{Name: "get", Category: packs.Assertive}}}
		}, ""},
		{"OKNamespaceDeclared", func(m *m) {
			m.Verbs[0].Params = append(m.Verbs[0].Params, packs.Param{Name: "namespace", Type: packs.String})
		}, ""},
		{"OKReservedOnlyWhenWhole", func(m *m) { m.Verbs[0].Name = "notes.subscribe"; m.Checks[0].Verbs[0] = "notes.subscribe" }, ""},
		{"OK32Characters", func(m *m) { m.Verbs[0].Name = "notes." + strings.Repeat("a", 32); m.Checks[0].Verbs = nil }, ""},
		{"OKNoEnumIsNil", func(m *m) { param(m, "kind").Enum = nil }, ""},
		{"OKSeveralArrayTypes", func(m *m) {
			for _, typ := range []packs.Type{"array<any>", "array<object>", "array<number>", "array<integer>", "array<boolean>", "array<datetime>"} {
				param(m, "rest").Type = typ
				require.NoError(t, m.Validate())
			}
		}, ""},

		{"ErrPackEmpty", func(m *m) { m.Name = "" }, `pack "": the name is empty; give it one`},
		{"ErrPackUpper", func(m *m) { m.Name = "Notes" }, `pack "Notes": has an upper-case letter`},
		{"ErrPackDigit", func(m *m) { m.Name = "1notes" }, `pack "1notes": does not begin with a letter`},
		{"ErrPackDash", func(m *m) { m.Name = "no-tes" }, `pack "no-tes": has the character '-'; use`},
		{"ErrPackVeryLong", func(m *m) { m.Name = strings.Repeat("a", 5000) }, strings.Repeat("a", 80) + "\"…: is 5000 characters long"},
		{"ErrEnumUTF8", func(m *m) { param(m, "kind").Enum = []string{"a", "\xff"} }, `the enum value "\xff" is not valid UTF-8`},
		{"ErrPackLong", func(m *m) { m.Name = strings.Repeat("a", 33) }, `is 33 characters long; shorten it to 32`},
		{"ErrPackDescriptionBidi", func(m *m) { m.Description = "x\u202ey" }, `the description holds the invisible character '\u202e'`},
		{"ErrDescriptionUTF8", func(m *m) { m.Description = "\xff" }, `the description is not valid UTF-8`},
		{"ErrRequiresSelf", func(m *m) { m.Requires = []string{"notes"} }, `requires "notes": a pack cannot require itself`},
		{"ErrRequiresTwice", func(m *m) { m.Requires = []string{"kg", "kg"} }, `requires "kg": the pack is named twice`},
		{"ErrRequiresName", func(m *m) { m.Requires = []string{"k g"} }, `requires "k g": has the character ' '`},

		{"ErrVerbNoPrefix", func(m *m) { m.Verbs[0].Name = "add" }, `pack "notes": verb "add": lacks the pack's prefix; write notes.add`},
		{"ErrVerbOtherPrefix", func(m *m) { m.Verbs[0].Name = "kg.add" }, `verb "kg.add": carries the prefix "kg" of another pack; begin it with notes.`},
		{"ErrVerbTwoDots", func(m *m) { m.Verbs[0].Name = "notes.a.b" }, `has a second dot`},
		{"ErrVerbDoubleDot", func(m *m) { m.Verbs[0].Name = "notes..add" }, `has a second dot`},
		{"ErrVerbTrailingDot", func(m *m) { m.Verbs[0].Name = "notes." }, `verb "notes.": the name is empty`},
		{"ErrVerbUpper", func(m *m) { m.Verbs[0].Name = "notes.Add" }, `upper-case`},
		{"ErrVerbUnderscoreFirst", func(m *m) { m.Verbs[0].Name = "notes._add" }, `does not begin with a letter`},
		{"ErrVerbLong", func(m *m) { m.Verbs[0].Name = "notes." + strings.Repeat("a", 33) }, `shorten it to 32`},
		{"ErrVerbHomoglyph", func(m *m) { m.Verbs[0].Name = "notes.d\u0435lete" }, `verb "notes.d\u0435lete": has the character U+0435, which is not ASCII and may look like another`},
		{"ErrVerbFullwidthDot", func(m *m) { m.Verbs[0].Name = "notes\uff0eadd" }, `verb "notes\uff0eadd": lacks the pack's prefix`},
		{"ErrVerbTwice", func(m *m) { m.Verbs = append(m.Verbs, m.Verbs[0]) }, `verb "notes.add": the verb is declared twice`},
		{"ErrBareWithPrefix", func(m *m) { m.Name = "kg"; m.Verbs[0].Name = "kg.add" }, `the verbs of the pack kg carry no prefix`},
		{"ErrReservedSubscribe", func(m *m) { m.Name = "core"; m.Verbs[0].Name = "subscribe" }, `verb "subscribe": the name is reserved`},
		{"ErrReservedDiscover", func(m *m) { m.Name = "kg"; m.Verbs[0].Name = "discover" }, `verb "discover": the name is reserved`},
		{"ErrCategoryEmpty", func(m *m) { m.Verbs[0].Category = "" }, `the category is ""; it must be one of assertive`},
		{"ErrCategoryCase", func(m *m) { m.Verbs[0].Category = "Assertive" }, `the category is "Assertive"`},
		{"ErrVisibility", func(m *m) { m.Verbs[0].Visibility = 7 }, `the visibility is 7`},
		{"ErrVerbDescription", func(m *m) { m.Verbs[0].Description = "a\x00" }, `the description holds the invisible character '\x00'`},

		{"ErrParamTwice", func(m *m) { param(m, "text").Name = "id" }, `pack "notes": verb "notes.add": param "id": the param is declared twice`},
		{"ErrParamName", func(m *m) { param(m, "text").Name = "the text" }, `param "the text": has the character ' '`},
		{"ErrParamHomoglyph", func(m *m) { param(m, "text").Name = "t\u0435xt" }, `param "t\u0435xt": has the character U+0435`},
		{"ErrParamHelp", func(m *m) { param(m, "rest").Name = "help" }, `param "help": the name is reserved`},
		{"ErrParamPresentation", func(m *m) { param(m, "rest").Name = "presentation" }, `param "presentation": the name is reserved`},
		{"ErrParamPresentationPerOp", func(m *m) { param(m, "rest").Name = "presentation_per_op" }, `the name is reserved`},
		{"ErrNamespaceType", func(m *m) { param(m, "rest").Name = "namespace" }, `param "namespace": a verb that takes the namespace itself declares it as a string`},
		{"ErrNamespaceDefault", func(m *m) { param(m, "kind").Name = "namespace" }, `a namespace has the caller's default`},
		{"ErrTypeEmpty", func(m *m) { param(m, "rest").Type = "" }, `param "rest": the type is "";`},
		{"ErrTypeUnknown", func(m *m) { param(m, "rest").Type = "int" }, `the type is "int"; it must be one of string`},
		{"ErrTypeNestedArray", func(m *m) { param(m, "rest").Type = "array<array>" }, `the type is "array<array>"`},
		{"ErrTypeNestedArrayOf", func(m *m) { param(m, "rest").Type = packs.ArrayOf(packs.ArrayOf(packs.String)) }, `the type is "array<array<string>>"`},
		{"ErrTypeSpace", func(m *m) { param(m, "rest").Type = "array< string>" }, `the type is`},
		{"ErrTypeUnclosed", func(m *m) { param(m, "rest").Type = "array<string" }, `the type is`},
		{"ErrEnumType", func(m *m) { param(m, "rest").Enum = []string{"x"} }, `an enum is for string and array<string> params only`},
		{"ErrEnumEmpty", func(m *m) { param(m, "kind").Enum = []string{} }, `the enum is empty`},
		{"ErrEnumTwice", func(m *m) { param(m, "kind").Enum = []string{"a", "b", "a"} }, `the enum value "a" is there twice`},
		{"ErrEnumTooLong", func(m *m) { param(m, "kind").MaxLength = 2; param(m, "kind").Enum = []string{"a", "abc"} }, `"abc" is longer than max_length 2`},
		{"ErrEnumBlank", func(m *m) { param(m, "kind").Enum = []string{"a", "b "} }, `begins or ends with white space`},
		{"ErrDefaultRequired", func(m *m) { param(m, "kind").Required = true }, `is required and has a default`},
		{"ErrDefaultType", func(m *m) { param(m, "kind").Default = true }, `the default must be a string, got a boolean`},
		{"ErrDefaultEnum", func(m *m) { param(m, "kind").Default = "c" }, `the default must be one of "a", "b", got "c"`},
		{"ErrDefaultGoInt", func(m *m) { param(m, "limit").Default = 10 }, `write numbers as json.Number("1")`},
		{"ErrDefaultMax", func(m *m) { param(m, "limit").Default = json.Number("101") }, `the default must be at most 100, got 101`},
		{"ErrDefaultElement", func(m *m) { param(m, "tags").Default = []any{"x", "z"} }, `the default element [1] must be one of`},
		{"ErrDefaultStrings", func(m *m) { param(m, "tags").Default = []string{"x"} }, `got a Go value of type []string`},
		{"ErrMinType", func(m *m) { param(m, "text").Min = "1" }, `min is for integer and number params only`},
		{"ErrMinSyntax", func(m *m) { param(m, "weight").Min = "1." }, `min is not a JSON number`},
		{"ErrMinInfinite", func(m *m) { param(m, "weight").Min = "-1e999" }, `min is a number too large`},
		{"ErrMinPoint", func(m *m) { param(m, "limit").Min = "0.5" }, `min is 0.5; the bound of an integer is a literal`},
		{"ErrMinMax", func(m *m) { param(m, "limit").Min = "101"; param(m, "limit").Default = nil }, `min 101 is above max 100`},
		{"ErrMinMaxBig", func(m *m) { param(m, "weight").Min = "100000000000000000000000000001"; param(m, "weight").Max = "1e29" }, `is above max`},
		{"ErrMaxLengthNegative", func(m *m) { param(m, "text").MaxLength = -1 }, `max_length is -1`},
		{"ErrMaxLengthType", func(m *m) { param(m, "limit").MaxLength = 3 }, `max_length is for params that hold strings only`},
		{"ErrMaxLengthUUID", func(m *m) { param(m, "ids").MaxLength = 3 }, `max_length is for params that hold strings only`},
		{"ErrMaxItemsNegative", func(m *m) { param(m, "ids").MaxItems = -5 }, `max_items is -5`},
		{"ErrMaxItemsType", func(m *m) { param(m, "text").MaxItems = 5 }, `max_items is for arrays and objects only`},

		{"ErrKeyNoParam", func(m *m) { m.Verbs[0].WriteKeys[0] = "record" }, `write key "record": a template names one or two params`},
		{"ErrKeyThreeParams", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{id}:{text}:{kind}" }, `a template names one or two params`},
		{"ErrKeyBraces", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:id" }, `"id" is not a param in braces`},
		{"ErrKeySpace", func(m *m) { m.Verbs[0].WriteKeys[0] = "Record:{id}" }, `the space "Record": has an upper-case letter`},
		{"ErrKeyUnknown", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{ident}" }, `the verb has no param "ident"`},
		{"ErrKeyType", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{limit}" }, `the param "limit" has type integer`},
		{"ErrKeySensitive", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{key}" }, `the param "key" is sensitive`},
		{"ErrKeySameParam", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{id}:{id}" }, `names the param "id" twice`},
		{"ErrKeyTwoLists", func(m *m) { m.Verbs[0].WriteKeys[0] = "record:{ids}:{tags}" }, `two array params in one template`},
		{"ErrKeyTwice", func(m *m) { m.Verbs[0].WriteKeys[1] = "record:{id}" }, `the template is declared twice`},
		{"ErrResourceUnknown", func(m *m) { m.Verbs[0].Resource = "ident" }, `verb "notes.add": the resource names the param "ident"`},
		{"ErrResourceType", func(m *m) { m.Verbs[0].Resource = "ids" }, `the resource param "ids" has type array<uuid>`},

		{"ErrCheckName", func(m *m) { m.Checks[0].Name = "Short" }, `pack "notes": check "Short": has an upper-case letter`},
		{"ErrCheckTwice", func(m *m) { m.Checks[1].Name = "short-text" }, `check "short-text": the check is declared twice`},
		{"ErrCheckNoRule", func(m *m) { m.Checks[0].Rule = " \n" }, `the rule is empty`},
		{"ErrCheckNoMessage", func(m *m) { m.Checks[0].Message = "" }, `has neither message nor message_rule`},
		{"ErrCheckBothMessages", func(m *m) { m.Checks[0].MessageRule = "'x'" }, `has both message and message_rule`},
		{"ErrCheckVerb", func(m *m) { m.Checks[0].Verbs = []string{"notes.ad"} }, `names the verb "notes.ad", which the pack does not declare; did you mean notes.add?`},
		{"ErrCheckVerbTwice", func(m *m) { m.Checks[0].Verbs = []string{"notes.add", "notes.add"} }, `names the verb "notes.add" twice`},
		{"ErrCheckMessageControl", func(m *m) { m.Checks[0].Message = "a\u2028b" }, `the message holds the invisible character '\u2028'`},

		{"ErrNameOfTheStoresTopics", func(m *m) { m.Name = "audit" }, `pack "audit": the topics of that name are the event store's`},
		{"ErrTopicPrefix", func(m *m) { m.Topics = []string{"kg.added"} }, `topic "kg.added": a topic is <pack>.<event>; begin it with notes.`},
		{"ErrTopicNoDot", func(m *m) { m.Topics = []string{"notes"} }, `topic "notes": a topic is <pack>.<event>`},
		{"ErrTopicEvent", func(m *m) { m.Topics = []string{"notes.a.b"} }, `topic "notes.a.b": has the character '.'`},
		{"ErrTopicTwice", func(m *m) { m.Topics = []string{"notes.a", "notes.a"} }, `the topic is declared twice`},
		{"ErrTableName", func(m *m) { m.Schema.Tables = []string{"notes; drop"} }, `table "notes; drop": has the character ';'`},
		{"ErrTableTwice", func(m *m) { m.Schema.Tables = []string{"notes_a", "notes_a"} }, `table "notes_a": the table is declared twice`},
		{"ErrTableReserved", func(m *m) { m.Schema.Tables = []string{"sqlite_master"} }, `the prefix belongs to the database`},
		{"ErrNoMigration", func(m *m) { m.Schema.Migrations = nil }, `declares tables but no migration`},
		{"ErrNoTables", func(m *m) { m.Schema.Tables = nil }, `has migrations but declares no table`},
		{"ErrMigrationEmpty", func(m *m) { m.Schema.Migrations = append(m.Schema.Migrations, " ") }, `migration 2: the script is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := sound()
			tt.spoil(&m)
			err := m.Validate()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			for line := range strings.Lines(err.Error()) {
				require.True(t, strings.HasPrefix(line, `pack "`), "every line names the pack: %s", line)
			}
		})
	}
}

func TestValidateJoinsEveryProblem(t *testing.T) {
	m := sound()
	m.Verbs[0].Category = "x"
	m.Verbs[0].Param("rest").Type = "thing"
	m.Checks[1].Rule = ""
	m.Topics = []string{"x"}
	require.Len(t, strings.Split(m.Validate().Error(), "\n"), 4)
}
