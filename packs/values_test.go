package packs_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestParams(t *testing.T) {
	p := packs.Params(decode(t, `{"s":"x","b":true,"i":9007199254740993,"f":1.5,"e":1e400,"l":["a",1,"b"],"o":{"k":"v"},"n":null}`))
	require.True(t, p.Has("s"))
	require.False(t, p.Has("n"))
	require.False(t, p.Has("absent"))
	require.Equal(t, "x", p.String("s"))
	require.True(t, p.Bool("b"))
	require.EqualValues(t, 9007199254740993, p.Int("i"))
	require.InDelta(t, 1.5, p.Float("f"), 0)
	require.Equal(t, []string{"a", "b"}, p.Strings("l"))
	require.Equal(t, []any{"a", json.Number("1"), "b"}, p.List("l"))
	require.Equal(t, map[string]any{"k": "v"}, p.Object("o"))

	// Another type is the zero value, never a panic.
	for _, name := range []string{"s", "b", "e", "l", "o", "n", "absent"} {
		require.Zero(t, p.Int(name), name)
		require.Zero(t, p.Float(name), name)
	}
	for _, name := range []string{"b", "i", "o", "n", "absent"} {
		require.Empty(t, p.String(name), name)
		require.Empty(t, p.Strings(name), name)
		require.Nil(t, p.List(name), name)
	}
	require.False(t, p.Bool("s"))
	require.Nil(t, p.Object("l"))
	require.False(t, packs.Params(nil).Has("x"))
}

func TestErrors(t *testing.T) {
	cause := errors.New("disk on fire")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&packs.NotFoundError{Kind: "note", ID: "a\nb"}, `not found: no note with id "a\nb"`},
		{&packs.AmbiguousIDError{Prefix: "12345678", Matches: []string{"a", "b"}, More: true}, `ambiguous id prefix "12345678": it fits a, b and others; give more digits`},
		{&packs.NamespaceMismatchError{Message: "two"}, "namespace mismatch: two"},
		{&packs.ConflictError{Message: "taken"}, "conflict: taken"},
		{&packs.InvalidError{Message: "wrong"}, "wrong"},
		{&packs.InvalidError{Param: "id", Message: "wrong"}, "id: wrong"},
		{&packs.UnavailableError{Backend: "main", Err: cause}, "backend main is unavailable: disk on fire"},
		{&packs.InvokeError{Verb: "get", Code: "not_found", Message: "gone"}, "get: gone"},
		{&packs.CheckError{Check: "short", Message: "shorten it"}, "check short: shorten it"},
	} {
		require.EqualError(t, tt.err, tt.want)
	}
	require.ErrorIs(t, &packs.UnavailableError{Err: cause}, cause)
	require.ErrorIs(t, &packs.CheckError{Err: cause}, cause)
}

type named struct{ packs.Pack }

func TestRegistered(t *testing.T) {
	before := packs.Registered()
	packs.Register(named{})
	after := packs.Registered()
	require.Len(t, after, len(before)+1)
	after[0] = nil
	require.NotNil(t, packs.Registered()[0], "the answer is a copy")
}
