package kg_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

// plant stores a note under an id of the test's choice, which no verb allows.
func (w *world) plant(id, namespace string) {
	w.t.Helper()
	w.exec(`INSERT INTO kg_records (id, kind, namespace, created_at, updated_at, tags, properties, body) VALUES (?, 'note', ?, '', '', '[]', '{}', 'planted')`, id, namespace)
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.backend.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	}))
}

func TestIDs(t *testing.T) {
	const (
		one     = "aaaaaaaa-1111-4111-8111-111111111111"
		foreign = "aaaaaaaa-2222-4222-8222-222222222222"
		alone   = "bbbbbbbb-3333-4333-8333-333333333333"
		far     = "cccccccc-4444-4444-8444-444444444444"
	)
	w := open(t)
	w.plant(one, "a")
	w.plant(foreign, "z")
	w.plant(alone, "a2")
	w.plant(far, "z")
	for i := range 7 {
		w.plant(fmt.Sprintf("dddddddd-000%d-4444-8444-444444444444", i), "a")
	}
	w.plant("dddddddd-0000-4444-8444-44444444444f", "z") // fits, and is nobody's business
	me := in("a", "a2")
	for _, tt := range []struct {
		name, id   string
		who        packs.Token
		want       string
		kind, text string
	}{
		{name: "OK full", id: one, who: me, want: one},
		{name: "OK full in upper case", id: strings.ToUpper(one), who: me, want: one},
		{name: "Err full without dashes", id: strings.ReplaceAll(one, "-", ""), who: me, kind: invalid, text: "dashes"},
		{name: "OK full resolves globally", id: far, who: me, want: far},
		{name: "OK prefix", id: "bbbbbbbb", who: me, want: alone},
		{name: "OK prefix in upper case", id: "BBBBBBBB", who: me, want: alone},
		{name: "OK prefix that ends in a dash", id: "bbbbbbbb-", who: me, want: alone},
		{name: "OK prefix with dashes", id: "bbbbbbbb-3333-4", who: me, want: alone},
		{name: "OK prefix without dashes", id: "bbbbbbbb33334", who: me, want: alone},
		{name: "OK prefix of all digits but one", id: alone[:35], who: me, want: alone},
		{name: "OK prefix that fits a foreign one too", id: "aaaaaaaa", who: me, want: one},
		{name: "Err full that is not there", id: "aaaaaaaa-1111-4111-8111-111111111112", who: me, kind: notFound, text: "no record"},
		{name: "Err prefix of a foreign one", id: "cccccccc", who: me, kind: notFound, text: "no record"},
		{name: "Err prefix of nothing", id: "eeeeeeee", who: me, kind: notFound, text: "no record"},
		{name: "Err prefix for a caller who reads nothing", id: "bbbbbbbb", who: token{namespace: "a"}, kind: notFound, text: "no record"},
		{name: "Err prefix for a namespace nobody knows", id: "bbbbbbbb", who: in("*"), kind: notFound, text: "no record"},
		{name: "Err ambiguous", id: "dddddddd-000", who: me, kind: ambiguous, text: "and others"},
		{name: "Err seed", id: "abc", who: me, kind: invalid, text: "3 hex digits are too few"},
		{name: "Err seven digits", id: "bbbbbbb", who: me, kind: invalid, text: "at least its first 8 hex digits"},
		{name: "Err empty", id: "", who: me, kind: invalid, text: "empty string is no id"},
		{name: "Err too many digits", id: one + "1", who: me, kind: invalid, text: "this has 33"},
		{name: "Err no hex", id: "bbbbbbbg", who: me, kind: invalid, text: "hex digits"},
		{name: "Err wildcard", id: "bbbbbbb%", who: me, kind: invalid, text: "hex digits"},
		{name: "Err wildcards only", id: "%%%%%%%%", who: me, kind: invalid, text: "hex digits"},
		{name: "Err dash misplaced", id: "bbbbbbb-b3333", who: me, kind: invalid, text: "dashes"},
		{name: "Err dash missing", id: "bbbbbbbb33334333-8333", who: me, kind: invalid, text: "dashes"},
		{name: "Err NUL", id: "bbbbbbbb\x00", who: me, kind: invalid, text: "hex digits"},
		{name: "Err urn", id: "urn:uuid:" + one, who: me, kind: invalid, text: "hex digits"},
		{name: "Err braces", id: "{" + one + "}", who: me, kind: invalid, text: "hex digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.call(tt.who, "get", object{"id": tt.id})
			requireKind(t, err, tt.kind, tt.text)
			if tt.kind == ok {
				require.Equal(t, tt.want, got["id"])
			}
			// Locate sees what the handlers see.
			at, err := w.instance.(packs.Locator).Locate(context.Background(), packs.ResourceRef{Verb: "get", Param: "id", ID: tt.id, Token: tt.who})
			if tt.kind == ambiguous {
				require.ErrorAs(t, err, new(*packs.AmbiguousIDError))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.kind == ok, at.Exists)
			require.Equal(t, tt.want, at.ID)
		})
	}
	t.Run("Err ambiguous lists five of the readable ones", func(t *testing.T) {
		_, err := w.call(me, "get", object{"id": "dddddddd"})
		var e *packs.AmbiguousIDError
		require.ErrorAs(t, err, &e)
		require.True(t, e.More)
		require.Equal(t, "dddddddd", e.Prefix)
		require.Equal(t, []string{
			"dddddddd-0000-4444-8444-444444444444", "dddddddd-0001-4444-8444-444444444444", "dddddddd-0002-4444-8444-444444444444",
			"dddddddd-0003-4444-8444-444444444444", "dddddddd-0004-4444-8444-444444444444",
		}, e.Matches)
	})
	t.Run("Err ambiguous lists two and no others", func(t *testing.T) {
		w.plant("dddddddd-0006-5444-8444-444444444444", "a")
		_, err := w.call(me, "get", object{"id": "dddddddd-0006"})
		var e *packs.AmbiguousIDError
		require.ErrorAs(t, err, &e)
		require.False(t, e.More)
		require.Len(t, e.Matches, 2)
	})
}

func TestLocate(t *testing.T) {
	w := open(t)
	entity, note := w.entity(in("a"), "x"), w.note(in("b"), "y")
	edge := w.must(in("c"), "link", object{"source_id": entity, "target_id": note, "relation": "says"})["id"].(string)
	for _, tt := range []struct {
		name, id string
		want     packs.Location
	}{
		{"OK entity", entity, packs.Location{Exists: true, ID: entity, Namespace: "a", Kind: "entity"}},
		{"OK note", note, packs.Location{Exists: true, ID: note, Namespace: "b", Kind: "note"}},
		{"OK edge", edge, packs.Location{Exists: true, ID: edge, Namespace: "c", Kind: "edge"}},
		{"OK nothing", "11111111-1111-4111-8111-111111111111", packs.Location{}},
		{"OK prefix that is out of sight", entity[:8], packs.Location{}},
		{"OK no id", "no id", packs.Location{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.instance.(packs.Locator).Locate(context.Background(), packs.ResourceRef{Verb: "get", Param: "id", ID: tt.id, Token: in("d")})
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	t.Run("Err cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := w.instance.(packs.Locator).Locate(ctx, packs.ResourceRef{Verb: "get", Param: "id", ID: entity, Token: in("a")})
		require.ErrorIs(t, err, context.Canceled)
	})
}
