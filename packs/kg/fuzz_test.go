package kg_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

// Any id text finds the one record there is, or is refused as one that is wrong, or names nothing.
func FuzzID(f *testing.F) {
	const id = "1b4e28ba-2fa1-4d2b-883f-0016d3cca427"
	for _, s := range []string{id, id[:8], id[:9], id[:13], "1B4E28BA2FA1", "abc", "", "%%%%%%%%", "1b4e28ba-", "1b4e28ba--2fa1", "urn:uuid:" + id, "\x00", "ffffffffg", id + "0"} {
		f.Add(s)
	}
	w := open(f)
	w.plant(id, "a")
	w.plant("1b4e28ba-ffff-4d2b-883f-0016d3cca427", "z")
	f.Fuzz(func(t *testing.T, text string) {
		w := w.of(t)
		if !utf8.ValidString(text) {
			return // refused before any handler
		}
		got, err := w.call(in("a"), "get", object{"id": text})
		if err == nil {
			require.Equal(t, id, got["id"], "%q", text)
			require.GreaterOrEqual(t, len(text), 8)
			return
		}
		var bad *packs.InvalidError
		var missing *packs.NotFoundError
		require.True(t, asOneOf(err, &bad, &missing), "%q: %v", text, err)
		if errors.As(err, &bad) {
			require.Equal(t, "id", bad.Param)
		}
	})
}

// Any cursor is one that an answer gave, or is refused.
func FuzzCursor(f *testing.F) {
	w := open(f)
	me := in("a")
	for range 3 {
		w.note(me, "x")
	}
	good := w.must(me, "list", object{"limit": number(1)})["next_cursor"].(string)
	for _, s := range []string{good, "", "AQ", good + "\n", good[1:], "AQAAAAAAAAAAAAAAAQ", "====", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := w.of(t)
		if !utf8.ValidString(text) {
			return
		}
		got, err := w.call(me, "list", object{"limit": number(1), "cursor": text})
		if err != nil {
			var bad *packs.InvalidError
			require.ErrorAs(t, err, &bad, "%q", text)
			require.Equal(t, "cursor", bad.Param)
			return
		}
		// Good ones are canonical: going on from an equal place gives an equal answer.
		again, err := w.call(me, "list", object{"limit": number(1), "cursor": text})
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.Len(t, text, len(good))
	})
}

// Any query finds the record made of it, or is refused as one that is wrong.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"LoRA", `"`, `a" OR "b`, "NEAR(a b)", "name:x", "画像認識", "🚀❤️", "don't", "x*", "^x", "a\x00b", "ภาษาไทย", "e\u0301", "\u0301", "ﬁ ǅ İ ß", "AND OR NOT", "u1f680", "\U00031350",
	} {
		f.Add(s)
	}
	w := open(f)
	me := in("a")
	w.entity(in("z"), "secret canary")
	f.Fuzz(func(t *testing.T, text string) {
		w := w.of(t)
		if !utf8.ValidString(text) {
			return
		}
		got, err := w.call(me, "search", object{"query": text})
		if err != nil {
			require.ErrorAs(t, err, new(*packs.InvalidError), "%q", text)
			return
		}
		require.Empty(t, got["items"], "%q", text)
		made, err := w.call(me, "create", object{"kind": "note", "content": "before " + text + " after"})
		require.NoError(t, err)
		got, err = w.call(me, "search", object{"query": text, "tag": "none"})
		require.NoError(t, err)
		require.Empty(t, got["items"])
		got, err = w.call(me, "search", object{"query": text})
		require.NoError(t, err)
		if searchable(text) {
			require.Equal(t, []string{made["id"].(string)}, pluck(got, "id"), "%q", text)
		}
		w.must(me, "delete", object{"id": made["id"]})
	})
}

// searchable: FTS5's tables know fewer letters than ours; what they do not know is not found.
func searchable(text string) bool {
	for _, r := range text {
		if r > 0x24f && r < 0x2e80 || r > 0xd7ff {
			return false
		}
	}
	return true
}
