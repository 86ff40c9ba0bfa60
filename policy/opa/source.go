package opa

import (
	"context"
	"errors"
	"fmt"
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
	// read returns the policy as it is now; a folder is waited for until it is at rest. Beside it, or
	// beside an error that is about the policy itself, stands what list said of it. There is no listing
	// beside an error of the system: the same files may be readable a moment later.
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

// same reports whether nothing changed: names, sizes, modes, times, and the very files. The time of the
// last change of any kind is among them where the system has it: a file can be written over by one of the
// same size and time of modification.
func (l *listing) same(other *listing) bool {
	if l == nil || other == nil || l.root != other.root || len(l.files) != len(other.files) {
		return false
	}
	for name, a := range l.files {
		b, ok := other.files[name]
		if !ok || a.Size() != b.Size() || a.Mode() != b.Mode() || !a.ModTime().Equal(b.ModTime()) || changeTime(a) != changeTime(b) || !os.SameFile(a, b) {
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
		return folder{path: g.cfg.Path, maxEntries: 10 * g.cfg.MaxFiles}, nil
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

// folderLoader is OPA's loader for folders. Links to files are followed. Hidden files are left out, for
// they are what editors and volume mounts leave behind, and so is what is no part of a policy, unopened.
func folderLoader(files fs.FS) bundle.DirectoryLoader {
	return bundle.NewFSLoaderWithRoot(files, ".").
		WithPathFormat(bundle.SlashRooted).
		WithFollowSymlinks(true).
		WithFilter(func(name string, info os.FileInfo, _ int) bool {
			return isHidden(name) || !info.IsDir() && classify(name) == otherFile
		})
}

func isHidden(name string) bool {
	base := path.Base(filepath.ToSlash(name))
	return len(base) > 1 && base[0] == '.' && classify(base) != manifestFile && classify(base) != signaturesFile
}

// folder is a policy in a folder.
type folder struct {
	path       string
	maxEntries int // looked at, of whatever kind: somebody will name their home
}

func (f folder) name() string { return f.path }

func (f folder) list() (*listing, error) {
	root, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return nil, err
	}
	l := &listing{root: root, files: map[string]os.FileInfo{}}
	files := os.DirFS(root)
	entries := 0
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > f.maxEntries {
			return fmt.Errorf("there are over %d files in it, too many for a policy; name the folder of the policy alone", f.maxEntries)
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
		if classify(name) == otherFile {
			return nil
		}
		if !info.Mode().IsRegular() {
			// Opening a pipe would wait for a writer.
			return fmt.Errorf("%s is not a regular file; take it out of the policy", name)
		}
		l.files[name] = info
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
			return nil, nil, err
		}
		now, err := f.list()
		if err != nil {
			return nil, nil, err
		}
		if !now.same(before) {
			before = now
			continue
		}
		// The root is where the links led, so that renaming one changes nothing half-way.
		b, loadErr := loadBundle(folderLoader(os.DirFS(now.root)), lim)
		after, err := f.list()
		if err != nil {
			return nil, nil, err
		}
		if !after.same(now) {
			before = after
			continue
		}
		var unread *unreadError
		if errors.As(loadErr, &unread) {
			return nil, nil, unread.err
		}
		return b, now, loadErr
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
