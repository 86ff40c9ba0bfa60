package audit_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
)

func newKey(t testing.TB) *audit.Key {
	t.Helper()
	key, err := audit.LoadKey(filepath.Join(t.TempDir(), "audit.key"))
	require.NoError(t, err)
	return key
}

func seal(t testing.TB, key *audit.Key, path string, value any) string {
	t.Helper()
	sealed, ok := key.Seal(path, value).(map[string]any)
	require.True(t, ok)
	require.Len(t, sealed, 1)
	text, ok := sealed["$sealed"].(string)
	require.True(t, ok)
	return text
}

func number(s string) json.Number { return json.Number(s) }

// sealClasses: values in one class have one seal, values of two classes two.
var sealClasses = [][]any{
	{nil},
	{true},
	{false},
	{""},
	{"1"},
	{"true"},
	{"null"},
	{"1e0"},
	{number("0"), number("-0"), number("0.0"), number("0e9"), number("-0.00e-7"), number("0e99999999999999999999999999")},
	{number("1"), number("1.0"), number("1e0"), number("10e-1"), number("0.1e1"), number("1E+0"), number("100e-00002"), 1, 1.0},
	{number("-1"), number("-1.00")},
	{number("10"), number("1e1"), number("1E1"), number("10.0")},
	{number("9007199254740992")},
	{number("9007199254740993"), number("9007199254740993.0"), number("9007199254740.993e3")},
	{number("0.1"), number("1e-1"), number("0.10")},
	{number("0.1000000000000000055511151231257827")},
	{number("1e-300"), number("0.1e-299")},
	{number("1e99999999999999999999999999"), number("10e99999999999999999999999998")},
	{number("nonsense"), number(""), number("1e"), number(".5"), number("0x10"), number("--1"), func() {}, make(chan int)},
	{[]any{}, []string{}},
	{[]any{nil}},
	{[]any{number("1"), number("2")}, []any{number("1.0"), number("2")}, []int{1, 2}},
	{[]any{number("2"), number("1")}},
	{[]any{number("12")}},
	{[]any{[]any{number("1")}, number("2")}},
	{[]any{[]any{number("1"), number("2")}}},
	{[]any{"a", "b"}},
	{[]any{"ab"}, []string{"ab"}},
	{[]any{"", "ab"}},
	{map[string]any{}, map[string]string{}},
	{map[string]any{"a": nil}},
	{map[string]any{"a": "b"}, map[string]string{"a": "b"}},
	{map[string]any{"ab": ""}},
	{map[string]any{"a": "1", "b": "2"}},
	{map[string]any{"a": "2", "b": "1"}},
	{map[string]any{"a": map[string]any{"b": "2"}}},
	{map[string]any{"$sealed": "v1:x:y"}},
	{"\xff"},
	{"\ufffd"},
}

func TestSeal(t *testing.T) {
	key := newKey(t)
	seen := map[string]string{}
	for i, class := range sealClasses {
		for _, value := range class {
			name := fmt.Sprintf("class %d", i)
			text := seal(t, key, "params.x", value)
			require.Regexp(t, "^v1:"+key.ID()+":[0-9a-f]{64}$", text)
			if other, ok := seen[text]; ok {
				require.Equal(t, other, name, "%#v", value)
			}
			seen[text] = name
			require.Equal(t, text, seal(t, key, "params.x", class[0]), "%#v", value)
			require.NotEqual(t, text, seal(t, key, "params.y", value), "the path counts")
			require.NotEqual(t, text, seal(t, newKey(t), "params.x", value), "the key counts")
		}
	}
	require.Len(t, seen, len(sealClasses))
	// The border between path and value counts too.
	require.NotEqual(t, seal(t, key, "a", "bc"), seal(t, key, "ab", "c"))
	require.NotEqual(t, seal(t, key, "p", "n"), seal(t, key, "ps\x01", nil))
}

// Two JSON texts have one seal exactly when their values are equal.
func FuzzSeal(f *testing.F) {
	for _, class := range sealClasses {
		for _, value := range class {
			if text, err := json.Marshal(value); err == nil {
				f.Add("p", string(text), string(text))
				f.Add("p", string(text), "1.0")
			}
		}
	}
	key := newKey(f)
	f.Fuzz(func(t *testing.T, path, a, b string) {
		decode := func(s string) (v any, ok bool) {
			d := json.NewDecoder(strings.NewReader(s))
			d.UseNumber()
			return v, d.Decode(&v) == nil
		}
		x, ok := decode(a)
		y, ok2 := decode(b)
		if !ok || !ok2 {
			return
		}
		same := seal(t, key, path, x) == seal(t, key, path, y)
		if jsonText(t, x) == jsonText(t, y) {
			require.True(t, same)
		} else if same {
			// Different spellings of one value: numbers only.
			require.Equal(t, strip(x), strip(y))
		}
	})
}

func jsonText(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// strip replaces numbers, and keeps everything else.
func strip(v any) any {
	switch v := v.(type) {
	case json.Number:
		return "a number"
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, strip(e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = strip(e)
		}
		return out
	}
	return v
}

func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.key")
	key, err := audit.LoadKey(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	again, err := audit.LoadKey(path)
	require.NoError(t, err)
	require.Equal(t, key.ID(), again.ID())
	require.Equal(t, seal(t, key, "p", "v"), seal(t, again, "p", "v"), "equal values stay equal over a restart")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	secret := strings.TrimSpace(string(text))
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		shown := fmt.Sprintf(format, key)
		require.Contains(t, shown, key.ID())
		require.NotContains(t, shown, secret)
		require.Less(t, len(shown), 40)
	}
	require.NotContains(t, secret, key.ID())
}

func TestLoadKeyErrors(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	write := func(content string, mode os.FileMode) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			require.NoError(t, os.Chmod(path, mode))
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		problem string // "" for none
	}{
		{"OK", write(good+"\n", 0o600), ""},
		{"OK no line end", write(good, 0o600), ""},
		{"OK read-only", write(good, 0o400), ""},
		{"Err group may read", write(good, 0o640), "its mode 0640 lets others"},
		{"Err all may read", write(good, 0o604), "its mode 0604 lets others"},
		{"Err all may write", write(good, 0o602), "its mode 0602 lets others"},
		{"Err empty", write("", 0o600), "64 hex digits"},
		{"Err short", write(good[2:], 0o600), "64 hex digits"},
		{"Err long", write(good+"00", 0o600), "64 hex digits"},
		{"Err very long", write(strings.Repeat(good, 1000), 0o600), "64 hex digits"},
		{"OK blanks around it", write("\n "+good+strings.Repeat(" ", 60)+"\r\n", 0o600), ""},
		{"Err something far behind it", write(good+strings.Repeat(" ", 64)+"x", 0o600), "64 hex digits"},
		{"Err blanks without end", write(good+strings.Repeat(" ", 65), 0o600), "64 hex digits"},
		{"Err not hex", write("secret-word"+good[11:], 0o600), "64 hex digits"},
		{"Err folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a regular file"},
		{"Err pipe", func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, "not a regular file"},
		{"OK link to a key", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".real", []byte(good), 0o600))
			require.NoError(t, os.Symlink(path+".real", path))
		}, ""},
		{"Err link to a key that others may read", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".real", []byte(good), 0o644))
			require.NoError(t, os.Chmod(path+".real", 0o644))
			require.NoError(t, os.Symlink(path+".real", path))
		}, "its mode 0644 lets others"},
		{"Err link to nothing", func(t *testing.T, path string) { require.NoError(t, os.Symlink("nosuch", path)) }, "cannot be read"},
		{"Err folder is a file", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Dir(path)))
			require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "audit.key")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			c.prepare(t, path)
			_, err := audit.LoadKey(path)
			if c.problem == "" {
				require.NoError(t, err)
				return
			}
			var bad *audit.KeyError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, path, bad.Path)
			require.Contains(t, bad.Problem, c.problem)
			require.NotEmpty(t, bad.Remedy)
			require.NotContains(t, err.Error(), "secret-word")
		})
	}
}

func TestLoadKeyAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.key")
	const callers = 16
	found := make([]string, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			key, err := audit.LoadKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			found[i] = key.ID()
		})
	}
	group.Wait()
	for _, id := range found {
		require.Equal(t, found[0], id)
	}
}
