package opa_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/compile"
	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/policy/opa"
)

type entry struct {
	name, content string
	kind          byte
}

func tarGz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	packed := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: e.kind, Size: int64(len(e.content))}
		if e.kind == tar.TypeSymlink {
			h.Linkname, h.Size, e.content = e.content, 0, ""
		}
		require.NoError(t, packed.WriteHeader(h))
		_, err := packed.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	require.NoError(t, zipped.Close())
	return buf.Bytes()
}

func bundleFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.tar.gz")
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

const allowGate = "package verbgate.gate\n\ndecision := data.may"

func TestOKArchive(t *testing.T) {
	for name, prefix := range map[string]string{"OK rooted": "/", "OK relative": "", "OK with dot": "./", "OK odd": "a/../"} {
		t.Run(name, func(t *testing.T) {
			raw := tarGz(t, entry{name: prefix + ".manifest", content: `{"revision": "v1"}`}, entry{name: prefix + "gate.rego", content: allowGate},
				entry{name: prefix + "data.json", content: `{"may": true}`}, entry{name: prefix + "sub", kind: tar.TypeDir}, entry{name: prefix + "gate_test.rego", content: "package"})
			g := opened(t, opa.Config{Path: bundleFile(t, raw), Timeout: time.Minute})
			require.Equal(t, policy.Decision{Verdict: policy.Allow, Gate: "opa", Revision: "v1"}, g.Decide(t.Context(), call(nil)))
		})
	}
}

func unzipped(t testing.TB, archive []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	return content
}

// zipped is one gzip member of the parts.
func zipped(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write(bytes.Join(parts, nil))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// Writers of tar fill up the last block of an archive with zeros.
func TestOKPaddedArchive(t *testing.T) {
	raw := unzipped(t, tarGz(t, entry{name: "gate.rego", content: "package verbgate.gate\n\ndecision := true"}))
	g := opened(t, opa.Config{Path: bundleFile(t, zipped(t, raw, make([]byte, 10240))), Timeout: time.Minute})
	require.Equal(t, policy.Allow, g.Decide(t.Context(), call(nil)).Verdict)
}

func TestErrArchive(t *testing.T) {
	gate := entry{name: "gate.rego", content: allowGate}
	for name, tc := range map[string]struct {
		raw  []byte
		want string
	}{
		"Err empty file":    {nil, "not complete or no .tar.gz"},
		"Err no archive":    {[]byte("package verbgate.gate"), "not complete or no .tar.gz"},
		"Err no policy":     {tarGz(t), "there is no .rego file"},
		"Err link":          {tarGz(t, gate, entry{name: "more.rego", content: "gate.rego", kind: tar.TypeSymlink}), "more.rego, which is neither a file nor a folder"},
		"Err device":        {tarGz(t, gate, entry{name: "more.rego", kind: tar.TypeChar}), "more.rego, which is neither a file nor a folder"},
		"Err same file":     {tarGz(t, gate, entry{name: "./gate.rego", content: "package other"}), "the file gate.rego is in it twice"},
		"Err signed":        {tarGz(t, gate, entry{name: "/.signatures.json", content: `{"signatures":["x"]}`}), "signed"},
		"Err hidden rego":   {tarGz(t, gate, entry{name: "._gate.rego", content: "\x00\x05\x16\x07"}), "._gate.rego"},
		"Err more after it": {append(tarGz(t, gate), "more"...), "more data after the end of the archive"},
		"Err two joined":    {append(tarGz(t, gate), tarGz(t, entry{name: "deny.rego", content: "package verbgate.gate\n\ndecision := false"})...), "more data after the end of the archive"},
		"Err zeros after":   {append(tarGz(t, gate), make([]byte, 512)...), "more data after the end of the archive"},
		"Err two in one":    {zipped(t, unzipped(t, tarGz(t, gate)), unzipped(t, tarGz(t, gate))), "more data after the end of the archive"},
		"Err split in two":  {append(zipped(t, unzipped(t, tarGz(t, gate))[:512]), zipped(t, unzipped(t, tarGz(t, gate))[512:])...), "not complete or no .tar.gz"},
		"Err bomb":          {tarGz(t, gate, entry{name: "zeros", content: strings.Repeat("0", 2<<20)}), "over 1048576 bytes"},
		"Err bomb in parts": {tarGz(t, gate, entry{name: "a/data.json", content: `"` + strings.Repeat("0", 600<<10) + `"`}, entry{name: "b/data.json", content: `"` + strings.Repeat("0", 600<<10) + `"`}), "over 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, refused(t, opa.Config{Path: bundleFile(t, tc.raw), MaxBytes: 1 << 20}), tc.want)
		})
	}
}

// A download that was cut is never activated, wherever it was cut; the policy in use stays.
func TestErrTruncatedArchive(t *testing.T) {
	var noise strings.Builder
	for i := range 3000 {
		noise.WriteString(`"` + strconv.Itoa(i*7919%3001) + `",`)
	}
	raw := tarGz(t, entry{name: "gate.rego", content: allowGate}, entry{name: "data.json", content: `{"may": true, "noise": [` + noise.String() + `0]}`})
	path := bundleFile(t, raw)
	g := opened(t, opa.Config{Path: path, Timeout: time.Minute, PollInterval: -1})
	revision := g.Status().Revision
	cuts := []int{0, 1, 300, len(raw) - 9, len(raw) - 8, len(raw) - 4, len(raw) - 1}
	for cut := 512; cut < len(raw); cut += 512 {
		cuts = append(cuts, cut)
	}
	require.Greater(t, len(cuts), 15)
	for _, cut := range cuts {
		require.NoError(t, os.WriteFile(path, raw[:cut], 0o644))
		require.Error(t, g.Reload(t.Context()), "cut at %d of %d", cut, len(raw))
		d := g.Decide(t.Context(), call(nil))
		require.Equal(t, policy.Allow, d.Verdict)
		require.Equal(t, revision, d.Revision)
		require.Error(t, g.Status().LastError)
	}
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	require.NoError(t, g.Reload(t.Context()))
	require.NoError(t, g.Status().LastError)
}

// A bundle that OPA has optimised decides as the policy it was made of.
func TestOptimisedBundle(t *testing.T) {
	var built bytes.Buffer
	require.NoError(t, compile.New().
		WithPaths("testdata/starter").
		WithAsBundle(true).
		WithFilter(func(name string, info os.FileInfo, _ int) bool { return strings.HasSuffix(name, "_test.rego") }).
		WithOptimizationLevel(1).
		WithEntrypoints("verbgate/gate/decision").
		WithOutput(&built).
		Build(context.Background()))
	optimised := opened(t, opa.Config{Path: bundleFile(t, built.Bytes()), Timeout: time.Minute})
	plain := opened(t, opa.Config{FS: fsOf("starter"), Timeout: time.Minute})
	for _, who := range []string{"ada", "eve"} {
		for _, kind := range []string{"user", "agent"} {
			for _, limit := range []string{`{}`, `{"limit":100}`, `{"limit":101}`, `{"limit":"101"}`} {
				in := call(params(t, limit))
				in.Token.Actor.ID, in.Token.Actor.Kind = who, kind
				want, got := plain.Decide(t.Context(), in), optimised.Decide(t.Context(), in)
				want.Revision, got.Revision = "", ""
				require.Equal(t, want, got)
			}
		}
	}
}
