package opa

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
)

// loaded is a policy as read and parsed, not yet compiled.
type loaded struct {
	modules  map[string]*ast.Module // the ones that judge
	tests    map[string]*ast.Module
	data     map[string]any
	revision string // the manifest's, else the digest
	digest   string // of the files that judge
	content  string // of all files read, tests included
	ignored  []string
}

// fileKind is what a file of a policy is to us. The set is closed.
type fileKind uint8

const (
	otherFile fileKind = iota
	regoFile
	testFile
	dataFile
	manifestFile
	signaturesFile
	unfitFile // part of a bundle, of a kind that does not run here
	lookalike // looks like data and is not read
)

func classify(name string) fileKind {
	base := path.Base(filepath.ToSlash(name))
	switch base {
	case "data.json", "data.yaml", "data.yml":
		return dataFile
	case bundle.ManifestExt, bundle.ManifestProtoExt:
		return manifestFile
	case ".signatures.json":
		return signaturesFile
	case bundle.WasmFile, bundle.PlanFile, bundle.PlanProtoFile, "patch.json":
		return unfitFile
	}
	switch {
	case strings.HasSuffix(base, "_test.rego"):
		return testFile
	case strings.HasSuffix(base, bundle.RegoExt):
		return regoFile
	case strings.HasSuffix(base, ".json"), strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yml"):
		return lookalike
	}
	return otherFile
}

// unreadError says that a file could not be read, which says nothing about what is in it.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// loadBundle reads a policy with OPA's own bundle reader. It is an *unreadError when files, or else bytes,
// did not arrive.
func loadBundle(files bundle.DirectoryLoader, lim limits) (*loaded, error) {
	rec := &recorder{DirectoryLoader: files, lim: lim, sums: map[string][sha256.Size]byte{}}
	b, err := bundle.NewCustomReader(rec).
		WithRegoVersion(ast.RegoV1).
		WithProcessAnnotations(true).
		WithSizeLimitBytes(lim.bytes).
		Read()
	if rec.unread != nil {
		return nil, &unreadError{rec.unread}
	}
	if err != nil {
		return nil, err
	}
	if v := b.Manifest.RegoVersion; v != nil && *v != 0 && *v != 1 {
		return nil, fmt.Errorf("the manifest asks for rego_version %d; 0 and 1 are supported", *v)
	}
	out := &loaded{modules: map[string]*ast.Module{}, tests: map[string]*ast.Module{}, data: b.Data, ignored: rec.ignored}
	for _, m := range b.Modules {
		if classify(m.Path) == testFile {
			out.tests[m.Path] = m.Parsed
		} else {
			out.modules[m.Path] = m.Parsed
		}
	}
	if len(out.modules) == 0 {
		return nil, errors.New("there is no .rego file in it; a policy needs at least one")
	}
	out.digest = rec.digest(func(name string) bool { return classify(name) != testFile })
	out.content = rec.digest(func(string) bool { return true })
	if out.revision = b.Manifest.Revision; out.revision == "" {
		out.revision = out.digest
	}
	return out, nil
}

// recorder hands on the files of a policy, bounded in number and size, and remembers what they held.
type recorder struct {
	bundle.DirectoryLoader
	lim     limits
	sums    map[string][sha256.Size]byte
	ignored []string
	unread  error // the first that is about reading and not about what was read
}

func (r *recorder) NextFile() (*bundle.Descriptor, error) {
	for {
		d, err := r.DirectoryLoader.NextFile()
		if err != nil {
			if err != io.EOF {
				r.unread = err
			}
			return nil, err
		}
		next, err := r.take(d)
		if closeErr := d.Close(); err == nil && closeErr != nil {
			err = closeErr
		}
		if next != nil || err != nil {
			return next, err
		}
	}
}

// take returns nil for a file that is no part of the policy.
func (r *recorder) take(d *bundle.Descriptor) (*bundle.Descriptor, error) {
	// One spelling for every file, so that the same file twice is noticed.
	name := path.Clean("/" + filepath.ToSlash(d.Path()))
	switch classify(name) {
	case otherFile:
		return nil, nil
	case lookalike:
		r.ignored = append(r.ignored, name[1:])
		return nil, nil
	case testFile:
		if !r.lim.tests {
			return nil, nil
		}
	case signaturesFile:
		return nil, errors.New("the policy is signed, and there is no key to check it with; leave out " + name[1:])
	case unfitFile:
		return nil, fmt.Errorf("%s: only Rego and data run here, no WebAssembly, plan or delta bundle; build it with the target rego", name[1:])
	case regoFile, dataFile, manifestFile:
	}
	if _, twice := r.sums[name]; twice {
		return nil, fmt.Errorf("the file %s is in it twice", name[1:])
	}
	if len(r.sums) >= r.lim.files {
		return nil, fmt.Errorf("the policy has over %d files; policies are limited to that", r.lim.files)
	}
	var content bytes.Buffer
	_, err := d.Read(&content, r.lim.bytes+1)
	if err == nil {
		return nil, tooLarge(r.lim.bytes) // it did not end before
	}
	if err != io.EOF {
		r.unread = err
		return nil, err
	}
	r.lim.bytes -= int64(content.Len())
	r.sums[name] = sha256.Sum256(content.Bytes())
	return bundle.NewDescriptor(name, name, &content), nil
}

// digest is a short hash over names and contents of the files chosen, in the order of their names.
func (r *recorder) digest(choose func(name string) bool) string {
	var names []string
	for name := range r.sums {
		if choose(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%d:%s", len(name), name)
		sum := r.sums[name]
		h.Write(sum[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}
