package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
)

var pathCases = []struct {
	name, text string
	want       policy.Path
	canonical  string
	pos        int // of the error
}{
	{name: "OK member", text: "email", want: policy.Path{{Field: "email"}}},
	{name: "OK nested", text: "rows[3].k", want: policy.Path{{Field: "rows"}, {Kind: policy.Element, Index: "3"}, {Field: "k"}}},
	{name: "OK leading index", text: "[0].k", want: policy.Path{{Kind: policy.Element, Index: "0"}, {Field: "k"}}},
	{name: "OK every element", text: "items[*].email", want: policy.Path{{Field: "items"}, {Kind: policy.EveryElement}, {Field: "email"}}},
	{name: "OK every member", text: "users.*.email", want: policy.Path{{Field: "users"}, {Kind: policy.EveryMember}, {Field: "email"}}},
	{name: "OK every member of the root", text: "*", want: policy.Path{{Kind: policy.EveryMember}}},
	{name: "OK every member of the root, with the dot", text: ".*", want: policy.Path{{Kind: policy.EveryMember}}, canonical: "*"},
	{name: "OK leading zeros", text: "a[007]", want: policy.Path{{Field: "a"}, {Kind: policy.Element, Index: "7"}}, canonical: "a[7]"},
	{name: "OK only zeros", text: "a[000]", want: policy.Path{{Field: "a"}, {Kind: policy.Element, Index: "0"}}, canonical: "a[0]"},
	{name: "OK index beyond an int", text: "a[99999999999999999999]", want: policy.Path{{Field: "a"}, {Kind: policy.Element, Index: "99999999999999999999"}}},
	{name: "OK indexes side by side", text: "a[1][*]", want: policy.Path{{Field: "a"}, {Kind: policy.Element, Index: "1"}, {Kind: policy.EveryElement}}},
	{name: "OK any text in a name", text: "some-key.é ü", want: policy.Path{{Field: "some-key"}, {Field: "é ü"}}},
	{name: "Err empty", text: "", pos: 0},
	{name: "Err leading dot", text: ".a", pos: 0},
	{name: "Err trailing dot", text: "a.", pos: 2},
	{name: "Err two dots", text: "a..b", pos: 2},
	{name: "Err only a dot", text: ".", pos: 1},
	{name: "Err empty brackets", text: "a[]", pos: 2},
	{name: "Err negative index", text: "a[-1]", pos: 2},
	{name: "Err name in brackets", text: `a["b"]`, pos: 2},
	{name: "Err not closed", text: "a[1", pos: 1},
	{name: "Err stray bracket", text: "a]", pos: 1},
	{name: "Err name after a bracket", text: "a[1]b", pos: 4},
	{name: "Err dot before a bracket", text: "a.[1]", pos: 2},
	{name: "Err pattern", text: "a.b*", pos: 2},
	{name: "Err pattern in brackets", text: "a[1*]", pos: 2},
}

func TestParsePath(t *testing.T) {
	for _, tc := range pathCases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := policy.ParsePath(tc.text)
			if tc.want == nil {
				var bad *policy.PathError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, tc.pos, bad.Pos, bad.Error())
				require.Empty(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			canonical := tc.canonical
			if canonical == "" {
				canonical = tc.text
			}
			require.Equal(t, canonical, got.String())
		})
	}
}

// Whatever parses is spelled in one way, and that spelling is the same path.
func FuzzParsePath(f *testing.F) {
	for _, tc := range pathCases {
		f.Add(tc.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := policy.ParsePath(text)
		if err != nil {
			return
		}
		require.NotEmpty(t, path)
		again, err := policy.ParsePath(path.String())
		require.NoError(t, err)
		require.Equal(t, path, again)
	})
}
