package packs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

const someID = "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"

var idCases = []struct {
	name, given string
	text        string
	full        bool
	err         string
}{
	{name: "OK full", given: someID, text: someID, full: true},
	{name: "OK upper case", given: strings.ToUpper(someID), text: someID, full: true},
	{name: "Err full without dashes", given: strings.ReplaceAll(someID, "-", ""), err: "with its dashes"},
	{name: "OK all but one digit, no dashes", given: strings.ReplaceAll(someID, "-", "")[:31], text: someID[:35]},
	{name: "OK eight digits", given: "1b4e28ba", text: "1b4e28ba"},
	{name: "OK prefix in mixed case", given: "1B4e28bA", text: "1b4e28ba"},
	{name: "OK prefix with its dash", given: "1b4e28ba-", text: "1b4e28ba"},
	{name: "OK longer prefix", given: "1b4e28ba-2fa1-4d", text: "1b4e28ba-2fa1-4d"},
	{name: "OK longer prefix, no dashes", given: "1b4e28ba2fa14d", text: "1b4e28ba-2fa1-4d"},
	{name: "OK all but one digit", given: someID[:35], text: someID[:35]},
	{name: "Err empty", given: "", err: "an empty string is no id"},
	{name: "Err short", given: "1b4e28b", err: "7 hex digits are too few"},
	{name: "Err long", given: someID + "1", err: "this has 33"},
	{name: "Err very long", given: strings.Repeat("a", 1000), err: "this has 1000"},
	{name: "Err no hex", given: "1b4e28bg", err: "hex digits"},
	{name: "Err wildcard", given: "1b4e28b%", err: "hex digits"},
	{name: "Err line end", given: "1b4e28ba\n", err: "hex digits"},
	{name: "Err white space", given: " 1b4e28ba", err: "hex digits"},
	{name: "Err full-width digits", given: "１ｂ4e28ba", err: "hex digits"},
	{name: "Err dash misplaced", given: "1b4e28b-a2fa1", err: "dashes"},
	{name: "Err dash missing", given: "1b4e28ba2fa1-4d2b", err: "dashes"},
	{name: "Err second dash missing", given: "1b4e28ba-2fa14d2b", err: "dashes"},
	{name: "Err only dashes", given: "--------", err: "dashes"},
	{name: "Err braces", given: "{" + someID + "}", err: "hex digits"},
	{name: "Err urn", given: "urn:uuid:" + someID, err: "hex digits"},
}

func TestParseIDRef(t *testing.T) {
	for _, c := range idCases {
		t.Run(c.name, func(t *testing.T) {
			ref, err := packs.ParseIDRef("id", c.given)
			if c.err != "" {
				var invalid *packs.InvalidError
				require.ErrorAs(t, err, &invalid)
				require.Equal(t, "id", invalid.Param)
				require.Contains(t, invalid.Message, c.err)
				require.Contains(t, invalid.Message, "at least its first 8 hex digits")
				return
			}
			require.NoError(t, err)
			require.Equal(t, packs.IDRef{Param: "id", Given: c.given, Text: c.text, Full: c.full}, ref)
		})
	}
}

func TestIDRefRange(t *testing.T) {
	ref, err := packs.ParseIDRef("id", "1b4e28ba2fa1")
	require.NoError(t, err)
	from, to := ref.Range()
	for id, in := range map[string]bool{
		"1b4e28ba-2fa1-0000-0000-000000000000": true,
		"1b4e28ba-2fa1-ffff-ffff-ffffffffffff": true,
		"1b4e28ba-2fa0-ffff-ffff-ffffffffffff": false,
		"1b4e28ba-2fa2-0000-0000-000000000000": false,
	} {
		require.Equal(t, in, from <= id && id < to, id)
	}
}

func TestIDRefOne(t *testing.T) {
	ref, err := packs.ParseIDRef("id", "1B4E28BA")
	require.NoError(t, err)
	one, err := ref.One("memory", []string{someID})
	require.NoError(t, err)
	require.Equal(t, someID, one)

	_, err = ref.One("memory", nil)
	require.Equal(t, &packs.NotFoundError{Kind: "memory", ID: "1B4E28BA"}, err)

	matches := []string{"1", "2", "3", "4", "5", "6"}
	_, err = ref.One("memory", matches[:5])
	require.Equal(t, &packs.AmbiguousIDError{Prefix: "1B4E28BA", Matches: matches[:5]}, err)
	_, err = ref.One("memory", matches)
	require.Equal(t, &packs.AmbiguousIDError{Prefix: "1B4E28BA", Matches: matches[:5], More: true}, err)
}

func FuzzParseIDRef(f *testing.F) {
	for _, c := range idCases {
		f.Add(c.given)
	}
	f.Fuzz(func(t *testing.T, given string) {
		ref, err := packs.ParseIDRef("id", given)
		if err != nil {
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid)
			return
		}
		require.Equal(t, strings.ToLower(strings.ReplaceAll(given, "-", "")), strings.ReplaceAll(ref.Text, "-", ""))
		again, err := packs.ParseIDRef("id", ref.Text)
		require.NoError(t, err)
		require.Equal(t, ref.Text, again.Text)
		require.Equal(t, ref.Full, len(ref.Text) == 36)
	})
}
