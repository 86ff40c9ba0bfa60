package session

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is how long the path of a Unix socket may be, in bytes.
const maxSocketPath = 107

// SocketPathError is a path that no Unix socket can have.
type SocketPathError struct{ Path string }

// Error says how long the path is and how long it may be.
func (e *SocketPathError) Error() string {
	return fmt.Sprintf("the socket path %s is %d bytes long, where at most %d are possible; choose a shorter one",
		e.Path, len(e.Path), maxSocketPath)
}

// SocketInUseError is a socket path on which a daemon answers.
type SocketInUseError struct{ Path string }

// Error names the path.
func (e *SocketInUseError) Error() string {
	return fmt.Sprintf("a daemon is already listening on %s; stop it, or choose another path", e.Path)
}

// ListenUnix listens on a Unix socket with mode 0600. Missing folders are made with mode 0700; a folder
// others can write to is refused. A dead socket on the path is replaced; a live one is a
// *SocketInUseError, and any other file is left alone. Beside the socket a file with ".lock" added
// keeps two daemons from starting at once; it stays.
func ListenUnix(path string, identifier Identifier) (*Listener, error) {
	if len(path) > maxSocketPath {
		return nil, &SocketPathError{path}
	}
	if err := prepareFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	switch {
	case errors.Is(err, errLocked):
		return nil, &SocketInUseError{path}
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l, err := bind(path, identifier, lock)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return l, nil
}

// prepareFolder makes the socket's folder.
func prepareFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	// Where others can remove files, they can put a socket of theirs in place of ours. The sticky bit
	// keeps them from it.
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("others can write to the socket's folder %s (mode %04o); make it 0700", dir, info.Mode().Perm())
	}
	return nil
}

func bind(path string, identifier Identifier, lock *os.File) (*Listener, error) {
	if err := removeDead(path); err != nil {
		return nil, err
	}
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	inner.SetUnlinkOnClose(false) // it would remove whatever is at the path by then
	if err := os.Chmod(path, 0o600); err != nil {
		_ = inner.Close()
		return nil, fmt.Errorf("protect %s: %w", path, err)
	}
	ours, err := os.Lstat(path)
	if err != nil {
		_ = inner.Close()
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	l := NewListener(inner, Unix, identifier)
	l.release = func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, ours) {
			_ = os.Remove(path)
		}
		_ = lock.Close()
	}
	return l, nil
}

// removeDead removes a socket on which nobody answers.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket; remove it, or choose another path", path)
	}
	answer, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = answer.Close()
		return &SocketInUseError{path}
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove the dead socket: %w", err)
		}
		return nil
	default:
		// A full backlog, say, or no permission: somebody may well be there.
		return fmt.Errorf("find out whether %s is alive: %w", path, err)
	}
}
