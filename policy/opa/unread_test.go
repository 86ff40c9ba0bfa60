//go:build unix

package opa_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy/opa"
)

// withoutReading runs fn while this process may not read the files it made with mode 0600. Nothing about
// the files changes for root, whom modes do not bind: the process stops being root meanwhile.
func withoutReading(t *testing.T, file string, fn func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(file, 0))
		defer func() { require.NoError(t, os.Chmod(file, 0o600)) }()
		fn()
		return
	}
	const nobody = 65534
	require.NoError(t, syscall.Seteuid(nobody))
	defer func() { require.NoError(t, syscall.Seteuid(0)) }()
	fn()
}

// readable is a folder that others may look into.
func readable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "policy")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// A policy that cannot be read says nothing about what is in it. It is read as soon as it can be, though
// nothing about it looks different then: a right that it revokes must not stay.
func TestUnreadableIsTriedAgain(t *testing.T) {
	for name, layout := range map[string]func(dir string) (path, file string, content func(reason string) []byte){
		"OK folder": func(dir string) (string, string, func(string) []byte) {
			return dir, filepath.Join(dir, "gate.rego"), func(reason string) []byte { return []byte(gateFile(reason)) }
		},
		"OK archive": func(dir string) (string, string, func(string) []byte) {
			path := filepath.Join(dir, "policy.tar.gz")
			return path, path, func(reason string) []byte {
				return tarGz(t, entry{name: "gate.rego", content: gateFile(reason)})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, file, content := layout(readable(t))
			require.NoError(t, os.WriteFile(file, content("one"), 0o600))
			synctest.Test(t, func(t *testing.T) {
				p := watched(t, path)
				defer func() { require.NoError(t, p.gate.Close()) }()
				require.NoError(t, os.WriteFile(file, content("revoked"), 0o600))
				withoutReading(t, file, func() {
					p.rest()
					p.rest()
					require.Equal(t, "one", p.decide().Reason)
					require.ErrorContains(t, p.gate.Status().LastError, "permission denied")
					require.Len(t, p.activations(), 2, "said once, not at every look")
					require.Equal(t, 1, strings.Count(p.logged(), "level=ERROR"))

					// One who asks is told again.
					require.ErrorContains(t, p.gate.Reload(t.Context()), "permission denied")
					require.Len(t, p.activations(), 3)
				})
				p.rest()
				require.Equal(t, "revoked", p.decide().Reason)
				require.NoError(t, p.gate.Status().LastError)

				// The same trouble again is news again. The policy did not change meanwhile.
				n := len(p.activations())
				withoutReading(t, file, func() {
					require.Error(t, p.gate.Reload(t.Context()))
					p.rest()
					require.Len(t, p.activations(), n+1)
				})
				p.rest()
				require.NoError(t, p.gate.Status().LastError)
				require.Len(t, p.activations(), n+1)
			})
		})
	}
}

// Nobody waits for a reload any more: the change it was about is still found.
func TestReloadGivenUpIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.rego"), []byte(gateFile("one")), 0o600))
	synctest.Test(t, func(t *testing.T) {
		p := watched(t, dir)
		defer func() { require.NoError(t, p.gate.Close()) }()
		p.write("gate.rego", gateFile("two"))
		impatient, cancel := context.WithTimeout(t.Context(), opa.StableFor/2)
		defer cancel()
		require.ErrorIs(t, p.gate.Reload(impatient), context.DeadlineExceeded)
		p.rest()
		require.Equal(t, "two", p.decide().Reason)
	})
}

// A file written over by one of the same size, name, inode and time of modification.
func TestSameTimeAndSizeIsNoticed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gate.rego")
	require.NoError(t, os.WriteFile(file, []byte(gateFile("one")), 0o600))
	epoch := time.Unix(0, 0)
	require.NoError(t, os.Chtimes(file, epoch, epoch))
	synctest.Test(t, func(t *testing.T) {
		p := watched(t, dir)
		defer func() { require.NoError(t, p.gate.Close()) }()
		p.write("gate.rego", gateFile("two"))
		require.NoError(t, os.Chtimes(file, epoch, epoch))
		p.rest()
		if opa.ChangeTime(t, file) == 0 {
			t.Skip("this system does not tell when a file was changed in any way")
		}
		require.Equal(t, "two", p.decide().Reason)
		n := len(p.activations())
		require.NoError(t, os.Chmod(file, 0o644))
		p.rest()
		require.Len(t, p.activations(), n, "a new mode alone is no activation")
	})
}

// What stands in a file's place and is none: the policy is refused in words, nobody waits for a writer,
// and it is read when the file is back.
func TestNoFileInItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		put  func(file string) error
		want string
	}{
		"Err pipe":           {func(file string) error { return syscall.Mkfifo(file, 0o600) }, "gate.rego is not a regular file"},
		"Err link to a pipe": {func(file string) error { return linkToPipe(file) }, "gate.rego is not a regular file"},
		"Err dangling link":  {func(file string) error { return os.Symlink("nowhere", file) }, "no such file"},
		"Err link to itself": {func(file string) error { return os.Symlink("gate.rego", file) }, "too many"},
		"Err folder":         {func(file string) error { return os.Mkdir(file, 0o700) }, "no .rego file in it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "gate.rego")
			require.NoError(t, os.WriteFile(file, []byte(gateFile("one")), 0o600))
			// No part of the policy, and not opened.
			require.NoError(t, linkToPipe(filepath.Join(dir, "notes.txt")))
			synctest.Test(t, func(t *testing.T) {
				p := watched(t, dir)
				defer func() { require.NoError(t, p.gate.Close()) }()
				require.NoError(t, os.Remove(file))
				require.NoError(t, tc.put(file))
				p.rest()
				p.rest()
				require.ErrorContains(t, p.gate.Status().LastError, tc.want)
				require.Equal(t, "one", p.decide().Reason)
				require.Len(t, p.activations(), 2)
				require.Equal(t, 1, strings.Count(p.logged(), "level=ERROR"))
				require.NoError(t, os.Remove(file))
				p.write("gate.rego", gateFile("two"))
				p.rest()
				require.Equal(t, "two", p.decide().Reason)
			})
		})
	}
}

// linkToPipe makes name a link to a pipe outside the policy.
func linkToPipe(name string) error {
	pipe := name + ".pipe"
	pipe = filepath.Join(filepath.Dir(filepath.Dir(name)), filepath.Base(pipe))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return err
	}
	return os.Symlink(pipe, name)
}
