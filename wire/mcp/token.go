package mcp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	tokenBytes = 32
	// minToken keeps a token somebody chose by hand from being guessed.
	minToken = 16
	maxToken = 4096
)

// TokenError says why the file at Path holds no usable bearer token.
type TokenError struct {
	Path string
	Why  string // what is wrong and what to do
}

func (e *TokenError) Error() string { return fmt.Sprintf("token file %s: %s", e.Path, e.Why) }

// LoadToken reads the bearer token of dispatch.md 10 from a file, or makes one at random: 64 hex
// digits, readable by its owner only. The folder must exist. created tells that it was made, which is
// the moment to tell the operator the path; the token itself belongs on no screen.
//
// A file that ReadToken refuses is a *TokenError. It is never changed.
func LoadToken(path string) (token string, created bool, err error) {
	token, err = ReadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		var bad *TokenError
		if errors.As(err, &bad) {
			bad.Why += ", or remove it to have a new one made"
		}
		return token, false, err
	}
	created, err = makeToken(path)
	if err != nil {
		return "", false, fmt.Errorf("make token file: %w", err)
	}
	// Read back: another process may have been first.
	token, err = ReadToken(path)
	return token, created, err
}

// ReadToken reads a bearer token from a file, for those who present it as for those who ask for it.
// A file that is no regular file, that others than its owner can read, or that holds no token is a
// *TokenError; one that is not there is fs.ErrNotExist.
func ReadToken(path string) (string, error) {
	// Not followed: a link could make somebody else's file the token. Lstat before Open, so that a
	// pipe does not block, and Stat after, so that nothing is swapped in between.
	before, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if !before.Mode().IsRegular() {
		return "", &TokenError{path, "it is not a regular file; name the file itself"}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if !os.SameFile(before, info) {
		return "", &TokenError{path, "it was replaced while it was opened; try again"}
	}
	if perm := info.Mode().Perm(); runtime.GOOS != "windows" && perm&0o077 != 0 {
		return "", &TokenError{path, fmt.Sprintf("others can read it (mode %04o); run chmod 600 on it", perm)}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxToken: // before white space is taken off: the rest of the file was not read
		return "", &TokenError{path, fmt.Sprintf("it holds more than %d bytes; put the token there and nothing else", maxToken)}
	case token == "":
		return "", &TokenError{path, "it is empty; put the token there"}
	case len(token) < minToken:
		return "", &TokenError{path, fmt.Sprintf("its token has %d characters, at least %d are needed; take a longer one", len(token), minToken)}
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &TokenError{path, "its token holds characters that a header cannot carry; put one token there and nothing else"}
	}
	return token, nil
}

// makeToken writes a new token beside path and links it into place, so that the file is whole from
// the moment it exists and an existing one stays. It reports whether the file is ours.
func makeToken(path string) (created bool, err error) {
	var secret [tokenBytes]byte
	rand.Read(secret[:]) // never fails
	tmp, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	_, err = tmp.WriteString(hex.EncodeToString(secret[:]) + "\n")
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return false, err
	}
	switch err = os.Link(tmp.Name(), path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, nil
	default:
		return false, err
	}
}
