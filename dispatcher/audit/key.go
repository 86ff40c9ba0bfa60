package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	keySize    = 32  // bytes
	maxKeyFile = 128 // bytes: the key in hex, and room for blanks around it
)

// Key seals sensitive values. It is safe for concurrent use. Nothing prints the secret.
type Key struct {
	id     string
	secret [keySize]byte
}

// KeyError says why a key file cannot be used, and the way out.
type KeyError struct {
	Path    string
	Problem string
	Remedy  string
	Err     error // the system's error, or nil
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("key file %s: %s; %s", e.Path, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// LoadKey reads the key in the file at path, 64 hex digits, and makes the file with a new key, mode
// 0600, when there is none. Several processes may do so at once: all get the same key. A file that
// others than its owner may read or write, or that holds anything but the key and blanks around it, is
// a *KeyError.
func LoadKey(path string) (*Key, error) {
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(path); err != nil {
		return nil, &KeyError{Path: path, Problem: "it cannot be made", Remedy: "give this user the right to write its folder, or choose another data folder", Err: err}
	}
	return readKey(path)
}

func readKey(path string) (*Key, error) {
	// Not to wait for a writer if it is a pipe. The file that was opened is what is looked at, whatever
	// its name stands for by then; a link to it is followed.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &KeyError{Path: path, Problem: "not a regular file", Remedy: "move away what has its name"}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, &KeyError{
			Path: path, Problem: fmt.Sprintf("its mode %#o lets others than its owner at it", mode),
			Remedy: "run chmod 600 on it; if others may have read it, delete it, and a new key is made at the next start",
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(text) > maxKeyFile {
		text = nil // whatever it holds, not a key alone
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != keySize {
		// Not the cause: it would quote a part of the key.
		return nil, &KeyError{
			Path: path, Problem: "it does not hold a key of 64 hex digits",
			Remedy: "restore it; without it, delete it, and a new key is made at the next start, whose seals do not compare with the old ones",
		}
	}
	key := &Key{secret: [keySize]byte(secret)}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("key id"))
	key.id = hex.EncodeToString(mac.Sum(nil)[:8])
	return key, nil
}

func unreadable(path string, err error) error {
	return &KeyError{Path: path, Problem: "it cannot be read", Remedy: "give this user the right to read it", Err: err}
}

// makeKey writes a new key beside path and links it there, so that nobody ever reads half a key and
// whoever comes second finds the first one's. Losing that race is not an error.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // a second name of the key, no harm
	secret := make([]byte, keySize)
	rand.Read(secret)
	_, err = fmt.Fprintln(file, hex.EncodeToString(secret))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// ID names the key in seals; it tells nothing about the secret.
func (k *Key) ID() string { return k.id }

// String is the key's name, never the secret.
func (k *Key) String() string { return "audit key " + k.id }

// GoString is String.
func (k *Key) GoString() string { return k.String() }
