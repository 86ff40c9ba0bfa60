//go:build !unix

package session

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

// lockFile fails: without a peer's uid a Unix socket lets nobody in on such a system anyway.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("this system has no Unix sockets that tell their peer")
}
