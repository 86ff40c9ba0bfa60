package dispatcher_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
)

func TestValidateNamespace(t *testing.T) {
	for _, ok := range []string{"local", "a", "a:b", "A-Z_.9:x", ".", strings.Repeat("x", 256)} {
		require.NoError(t, dispatcher.ValidateNamespace(ok), ok)
	}
	for _, bad := range []string{"", " ", "*", "a b", "../x", "a/b", ":a", "a:", "a::b", ":", "é", "a\x00", "a\n", "a\u202e", strings.Repeat("x", 257)} {
		require.Error(t, dispatcher.ValidateNamespace(bad), bad)
	}
}

func TestMalformedNamespaces(t *testing.T) {
	for arg, says := range map[string]string{
		`null`: "not null", `5`: "not a number", `true`: "not a boolean", `["a"]`: "not an array", `{"a":"leak"}`: "not an object",
		`""`: "empty", `" "`: "byte 0", `"*"`: "byte 0", `"../x"`: "byte 2", `"a::b"`: "empty segment",
	} {
		h := newHouse(t)
		entry := h.one(`probe.echo(namespace=` + arg + `)`)
		require.Equal(t, dispatcher.CodeInvalidNamespace, entry.Code, arg)
		require.Contains(t, entry.Error, "invalid input: ")
		require.Contains(t, entry.Error, says)
		require.NotContains(t, entry.Error, "leak", "never echoing a non-string")
		require.Empty(t, h.inputs, "the gate was not asked")
	}
	h := newHouse(t)
	env := h.run(`[probe.echo(namespace=7), probe.echo(namespace="ok")]`)
	require.Equal(t, 1, env.Summary.Succeeded, "per operation")

	broken := caller
	broken.Namespace = "not valid"
	require.Equal(t, dispatcher.CodeInvalidNamespace, h.runAs(broken, `probe.echo()`).Results[0].Code)
	broken = caller
	broken.Visible = []string{"*"}
	require.Equal(t, dispatcher.CodeInvalidNamespace, h.runAs(broken, `probe.echo()`).Results[0].Code, "an unknown scope is never all")
}

func FuzzValidateNamespace(f *testing.F) {
	for _, s := range []string{"local", "a:b", ":", "a::b", "", "é", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ns string) {
		if dispatcher.ValidateNamespace(ns) != nil {
			return
		}
		require.True(t, len(ns) >= 1 && len(ns) <= 256)
		for _, segment := range strings.Split(ns, ":") {
			require.NotEmpty(t, segment)
			require.Empty(t, strings.Trim(segment, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."))
		}
	})
}
