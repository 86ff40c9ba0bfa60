package session

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// UnixIdentifier identifies the peer of a Unix socket by the uid the kernel reports: the daemon's own
// is the actor user:<login>, or user:<uid> where there is no login name. Nobody else, root included,
// is let in.
type UnixIdentifier struct {
	uid   uint32
	login string
}

// NewUnixIdentifier looks up who this process runs as.
func NewUnixIdentifier() *UnixIdentifier {
	uid := strconv.Itoa(os.Geteuid())
	id := &UnixIdentifier{uid: uint32(os.Geteuid()), login: uid}
	if u, err := user.LookupId(uid); err == nil && u.Username != "" {
		id.login = u.Username
	}
	return id
}

// Identify is Identifier's.
func (u *UnixIdentifier) Identify(conn io.ReadWriteCloser) (Identity, error) {
	uid, err := peerUID(conn)
	if err != nil {
		return Identity{}, fmt.Errorf("the peer's uid: %w", err)
	}
	if uid != u.uid {
		return Identity{}, &Rejection{fmt.Sprintf("uid %d is not the user this server runs as", uid)}
	}
	return Identity{Kind: "user", ID: u.login}, nil
}

// peerUID is the uid of the process at the other end of a Unix socket when it connected.
func peerUID(conn any) (uint32, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid uint32
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = socketUID(int(fd)) }); err != nil {
		return 0, err
	}
	return uid, failed
}

// CertificateRow is the actor that one certificate name is mapped to.
type CertificateRow struct {
	// Name is the certificate's first URI SAN or, where it has none, its subject as x509's
	// pkix.Name.String spells it ("CN=watcher,O=ops"). It is compared byte by byte.
	Name      string
	Kind, ID  string   // the actor
	Namespace string   // its write namespace
	Readable  []string // its readable namespaces
}

// CertificateIdentifier identifies the peer of a TLS connection by its verified certificate.
type CertificateIdentifier struct{ rows map[string]CertificateRow }

// NewCertificateIdentifier checks the table: names are unique, and every row names an actor.
func NewCertificateIdentifier(rows []CertificateRow) (*CertificateIdentifier, error) {
	table := make(map[string]CertificateRow, len(rows))
	for i, row := range rows {
		switch _, twice := table[row.Name]; {
		case row.Name == "":
			return nil, fmt.Errorf("certificate row %d has no name", i)
		case twice:
			return nil, fmt.Errorf("certificate row %d: %q is mapped twice", i, row.Name)
		case row.Kind == "" || row.ID == "":
			return nil, fmt.Errorf("certificate row %d: %q is mapped to no actor", i, row.Name)
		}
		table[row.Name] = row
	}
	return &CertificateIdentifier{table}, nil
}

// Identify is Identifier's. The identity ends when the certificate does.
func (t *CertificateIdentifier) Identify(conn io.ReadWriteCloser) (Identity, error) {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return Identity{}, errors.New("not a TLS connection")
	}
	chains := secured.ConnectionState().VerifiedChains
	if len(chains) == 0 {
		return Identity{}, errors.New("the peer's certificate was not verified")
	}
	name := CertificateName(chains[0][0])
	row, ok := t.rows[name]
	if !ok || name == "" {
		return Identity{}, &Rejection{fmt.Sprintf("the certificate's name, %q, is mapped to no actor", name)}
	}
	return Identity{
		Kind: row.Kind, ID: row.ID, Namespace: row.Namespace,
		Visible: append([]string{}, row.Readable...), Fixed: true, Expires: expiry(chains),
	}, nil
}

// CertificateName is what a certificate is looked up by: its first URI SAN, else its subject.
func CertificateName(cert *x509.Certificate) string {
	if len(cert.URIs) > 0 {
		return cert.URIs[0].String()
	}
	return cert.Subject.String()
}

// expiry is when the last of the chains is no longer valid, each as short as its shortest link.
func expiry(chains [][]*x509.Certificate) time.Time {
	var last time.Time
	for _, chain := range chains {
		first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
		if first.After(last) {
			last = first
		}
	}
	return last
}

// StaticIdentity lets everyone in as one actor: for carriers that show nothing about the peer, which
// are plain TCP on loopback and pipes.
type StaticIdentity Identity

// Identify is Identifier's.
func (f StaticIdentity) Identify(io.ReadWriteCloser) (Identity, error) { return Identity(f), nil }
