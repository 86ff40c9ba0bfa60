package opa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/open-policy-agent/opa/v1/bundle"
)

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
	raw, err := readFile(a.path, lim.bytes+1)
	if err != nil {
		return nil, nil, err
	}
	b, err := unpack(raw, lim)
	return b, l, err
}

// readFile reads a file, or as much of it as limit says.
func readFile(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

func unpack(raw []byte, lim limits) (*loaded, error) {
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
// of the tar, takes no notice of links, and bounds single files but not their sum. What follows an
// archive, be it a second one joined to it, would be policy that nobody reads: it is refused.
func checkArchive(raw []byte, limit int64) error {
	rest := bytes.NewReader(raw) // an io.ByteReader, so nothing beyond the first gzip member is read ahead
	unzipped, err := gzip.NewReader(rest)
	if err != nil {
		return fmt.Errorf("the archive is not complete or no .tar.gz: %w", err)
	}
	unzipped.Multistream(false)
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
	var padding zeros
	if _, err := io.Copy(&padding, counted); err != nil {
		return fmt.Errorf("the archive is not complete or no .tar.gz: %w", err)
	}
	switch {
	case counted.N <= 0:
		return tooLarge(limit)
	case padding.broken || rest.Len() > 0:
		return errors.New("there is more data after the end of the archive; write all files of the policy into one .tar.gz")
	}
	return nil
}

// zeros takes what pads a tar after its end, and notices whatever else there is.
type zeros struct{ broken bool }

func (z *zeros) Write(p []byte) (int, error) {
	for _, b := range p {
		z.broken = z.broken || b != 0
	}
	return len(p), nil
}
