package mcp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

func TestLoadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http.token")
	first, created, err := mcp.LoadToken(path)
	require.NoError(t, err)
	require.True(t, created)
	require.Regexp(t, `^[0-9a-f]{64}$`, first)
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	again, created, err := mcp.LoadToken(path)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left behind")
	other, _, err := mcp.LoadToken(filepath.Join(t.TempDir(), "http.token"))
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}

// Processes that start together end up with one token.
func TestLoadTokenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http.token")
	var wg sync.WaitGroup
	tokens := make([]string, 16)
	made := make([]bool, 16)
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], made[i], err = mcp.LoadToken(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := 0
	for i := range tokens {
		require.Equal(t, tokens[0], tokens[i])
		if made[i] {
			count++
		}
	}
	require.Equal(t, 1, count)
}

func TestLoadTokenFile(t *testing.T) {
	const good = "0123456789abcdef"
	tests := []struct {
		name, content string
		mode          fs.FileMode
		want          string // of the error, "" for none
	}{
		{"OK", good, 0o600, ""},
		{"OKSpaceAround", "  " + good + "\r\n", 0o400, ""},
		{"ErrEmpty", "", 0o600, "it is empty"},
		{"ErrBlank", " \n", 0o600, "it is empty"},
		{"ErrShort", "abc", 0o600, "3 characters, at least 16"},
		{"ErrInnerSpace", good + " " + good, 0o600, "a header cannot carry"},
		{"ErrNUL", good + "\x00", 0o600, "a header cannot carry"},
		{"ErrNotASCII", good + "é", 0o600, "a header cannot carry"},
		{"ErrLong", strings.Repeat("x", 5000), 0o600, "more than 4096 bytes"},
		{"ErrMoreAfterSpace", good + strings.Repeat(" ", 5000) + "x", 0o600, "more than 4096 bytes"}, // a prefix is no token
		{"ErrGroup", good, 0o640, "mode 0640"},
		{"ErrOthers", good, 0o604, "mode 0604"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.mode&0o077 != 0 {
				t.Skip("no such modes here")
			}
			path := filepath.Join(t.TempDir(), "http.token")
			require.NoError(t, os.WriteFile(path, []byte(tt.content), 0o600))
			require.NoError(t, os.Chmod(path, tt.mode))
			token, created, err := mcp.LoadToken(path)
			require.False(t, created)
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, good, token)
				return
			}
			var bad *mcp.TokenError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, path, bad.Path)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), good)
			require.ErrorContains(t, err, "or remove it to have a new one made")
			// Who presents a token is told the same, but for what only the server makes.
			_, err = mcp.ReadToken(path)
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "remove it")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, tt.content, string(after), "the file is not changed")
		})
	}
	t.Run("ErrFolder", func(t *testing.T) {
		_, _, err := mcp.LoadToken(t.TempDir())
		require.ErrorContains(t, err, "not a regular file")
	})
	t.Run("ErrLink", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "real"), []byte(good), 0o600))
		require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
		_, _, err := mcp.LoadToken(filepath.Join(dir, "link"))
		require.ErrorContains(t, err, "not a regular file")
	})
	t.Run("ErrNone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none")
		_, err := mcp.ReadToken(path)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoFileExists(t, path, "reading makes nothing")
	})
	t.Run("ErrNoFolder", func(t *testing.T) {
		_, created, err := mcp.LoadToken(filepath.Join(t.TempDir(), "none", "http.token"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.False(t, created)
	})
}
