package opa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// stableFor is how long a folder must look the same before it is read (dispatch.md 6), and
// settleTries how often it is looked at for that.
const (
	stableFor   = 250 * time.Millisecond
	settleTries = 40
)

// source is a place a policy comes from.
type source interface {
	// name is the place as people know it.
	name() string
	// read returns the policy as it is now, together with what list said of it; a folder is waited
	// for until it is at rest.
	read(ctx context.Context, lim limits) (*loaded, *listing, error)
	// list looks at what is there without reading it; nil for a source that cannot change.
	list() (*listing, error)
}

type limits struct {
	bytes int64
	files int
	tests bool // read test files too
}

// listing is what a place looks like from outside.
type listing struct {
	root  string // after following links
	files map[string]os.FileInfo
}

// same reports whether nothing changed: names, sizes, times, and the very files.
func (l *listing) same(other *listing) bool {
	if l == nil || other == nil || l.root != other.root || len(l.files) != len(other.files) {
		return false
	}
	for name, a := range l.files {
		b, ok := other.files[name]
		if !ok || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
			return false
		}
	}
	return true
}

// newSource finds out what kind of place the configuration names. It is asked anew each time, for a
// path may be a folder today and an archive tomorrow.
func (g *Gate) newSource() (source, error) {
	if g.cfg.FS != nil {
		return fsSource{g.cfg.FS}, nil
	}
	info, err := os.Stat(g.cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file or folder")
	case err != nil:
		return nil, err
	case info.IsDir():
		return folder{g.cfg.Path}, nil
	case info.Mode().IsRegular() && (strings.HasSuffix(g.cfg.Path, ".tar.gz") || strings.HasSuffix(g.cfg.Path, ".tgz")):
		return archive{g.cfg.Path}, nil
	}
	return nil, errors.New("a policy is a folder or a .tar.gz bundle; put the .rego files into a folder and name that")
}

// fsSource is a policy built into the program.
type fsSource struct{ files fs.FS }

func (fsSource) name() string            { return "(built in)" }
func (fsSource) list() (*listing, error) { return nil, nil }

func (s fsSource) read(_ context.Context, lim limits) (*loaded, *listing, error) {
	b, err := loadBundle(folderLoader(s.files), lim)
	return b, nil, err
}

// folderLoader is OPA's loader for folders. Links to files are followed, hidden files left out: they
// are what editors and volume mounts leave behind.
func folderLoader(files fs.FS) bundle.DirectoryLoader {
	return bundle.NewFSLoaderWithRoot(files, ".").
		WithPathFormat(bundle.SlashRooted).
		WithFollowSymlinks(true).
		WithFilter(func(name string, _ os.FileInfo, _ int) bool { return isHidden(name) })
}

func isHidden(name string) bool {
	base := path.Base(filepath.ToSlash(name))
	return len(base) > 1 && base[0] == '.' && classify(base) != manifestFile && classify(base) != signaturesFile
}

// folder is a policy in a folder.
type folder struct{ path string }

func (f folder) name() string { return f.path }

func (f folder) list() (*listing, error) {
	root, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return nil, err
	}
	l := &listing{root: root, files: map[string]os.FileInfo{}}
	files := os.DirFS(root)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if isHidden(name) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		info, err := fs.Stat(files, name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			// Its rules would silently be missing.
			return fmt.Errorf("%s is a link to a folder; only links to files are followed inside a policy", name)
		}
		if classify(name) != otherFile {
			l.files[name] = info
		}
		return nil
	})
	return l, err
}

// read takes a folder that looked the same before and after: all of one version, or none.
func (f folder) read(ctx context.Context, lim limits) (*loaded, *listing, error) {
	before, err := f.list()
	if err != nil {
		return nil, nil, err
	}
	for range settleTries {
		if err := sleep(ctx, stableFor); err != nil {
			return nil, before, err
		}
		now, err := f.list()
		if err != nil {
			return nil, before, err
		}
		if !now.same(before) {
			before = now
			continue
		}
		// The root is where the links led, so that renaming one changes nothing half-way.
		b, loadErr := loadBundle(folderLoader(os.DirFS(now.root)), lim)
		after, err := f.list()
		if err != nil {
			return nil, now, err
		}
		if after.same(now) {
			return b, now, loadErr
		}
		before = after
	}
	return nil, nil, errors.New("the folder keeps changing; a folder is read once it has been at rest for a moment. Roll out by renaming a link, or use a .tar.gz bundle")
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// archive is a policy in a .tar.gz bundle.
type archive struct{ path string }

func (a archive) name() string { return a.path }

func (a archive) list() (*listing, error) {
	info, err := os.Stat(a.path)
	if err != nil {
		return nil, err
	}
	return &listing{root: a.path, files: map[string]os.FileInfo{"": info}}, nil
}

func (a archive) read(_ context.Context, lim limits) (*loaded, *listing, error) {
	l, err := a.list()
	if err != nil {
		return nil, nil, err
	}
	b, err := readArchive(a.path, lim)
	return b, l, err
}

func readArchive(name string, lim limits) (*loaded, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, lim.bytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > lim.bytes {
		return nil, tooLarge(lim.bytes)
	}
	if err := checkArchive(raw, lim.bytes); err != nil {
		return nil, err
	}
	return loadBundle(bundle.NewTarballLoaderWithBaseURL(bytes.NewReader(raw), ""), lim)
}

func tooLarge(limit int64) error {
	return fmt.Errorf("the policy is over %d bytes; policies are limited to that", limit)
}

// checkArchive reads an archive to its very end, its checksum included. OPA's loader stops at the end
// of the tar, takes no notice of links, and bounds single files but not their sum.
func checkArchive(raw []byte, limit int64) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("the archive is not complete or no .tar.gz: %w", err)
	}
	counted := &io.LimitedReader{R: unzipped, N: limit + 1}
	entries := tar.NewReader(counted)
	for {
		header, err := entries.Next()
		if err == io.EOF {
			break
		}
		if counted.N <= 0 {
			return tooLarge(limit)
		}
		if err != nil {
			return fmt.Errorf("the archive is not complete or no .tar.gz: %w", err)
		}
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			return fmt.Errorf("the archive holds %s, which is neither a file nor a folder", header.Name)
		}
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return fmt.Errorf("the archive is not complete or no .tar.gz: %w", err)
	}
	if counted.N <= 0 {
		return tooLarge(limit)
	}
	return nil
}
