package session_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// authority issues certificates for a test.
type authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(tb, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{tb, cert, key, pool}
}

// issue is a certificate with a subject, a URI unless it is empty, and an end.
func (a *authority) issue(subject, uri string, until time.Time) tls.Certificate {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		require.NoError(a.tb, err)
		template.URIs = []*url.URL{parsed}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a.tb, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) client(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.pool, Certificates: certs}
}

// onTLS serves on TLS until the end of the test and returns the address.
func onTLS(t *testing.T, ca *authority, s *session.Server) string {
	t.Helper()
	table, err := session.NewCertificateIdentifier([]session.CertificateRow{
		{Name: "spiffe://example/watcher", Kind: "service", ID: "watcher", Namespace: "ops", Readable: []string{"ops", "audit"}},
		{Name: "CN=plain", Kind: "service", ID: "plain"},
	})
	require.NoError(t, err)
	l, err := session.ListenTLS(session.TLSConfig{
		Address: "127.0.0.1:0", Certificates: []tls.Certificate{ca.issue("server", "", time.Now().Add(time.Hour))},
		ClientCAs: ca.pool, Identifier: table,
	})
	require.NoError(t, err)
	serve(t, s, l)
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	noLeak(t)
	ca, foreign := newAuthority(t), newAuthority(t)
	s := newServer(t, session.Config{Handler: identities()})
	address := onTLS(t, ca, s)
	hour := time.Now().Add(time.Hour)
	good := ca.client(ca.issue("x", "spiffe://example/watcher", hour))
	bystander := newClient(t, session.ClientConfig{Dial: session.DialTLS(address, good)})

	for name, c := range map[string]struct {
		client *tls.Config
		want   string // the answer
		fails  string // or the error
		code   wire.ErrorCode
	}{
		"OKURI":        {client: good, want: `"tls service:watcher ops ops,audit"`},
		"OKSubject":    {client: ca.client(ca.issue("plain", "", hour)), want: `"tls service:plain  "`},
		"ErrUnmapped":  {client: ca.client(ca.issue("stranger", "", hour)), code: wire.IdentityRejected, fails: `"CN=stranger", is mapped to no actor`},
		"ErrURIFirst":  {client: ca.client(ca.issue("plain", "spiffe://example/other", hour)), code: wire.IdentityRejected, fails: `"spiffe://example/other", is mapped`},
		"ErrCase":      {client: ca.client(ca.issue("Plain", "", hour)), code: wire.IdentityRejected, fails: "is mapped to no actor"},
		"ErrExpired":   {client: ca.client(ca.issue("plain", "", time.Now().Add(-time.Minute))), fails: "expired certificate"},
		"ErrForeign":   {client: ca.client(foreign.issue("plain", "", hour)), fails: "tls: "},
		"ErrNone":      {client: ca.client(), fails: "certificate required"},
		"ErrOldTLS":    {client: &tls.Config{RootCAs: ca.pool, MaxVersion: tls.VersionTLS12, Certificates: good.Certificates}, fails: "protocol version"},
		"ErrServerToo": {client: foreign.client(good.Certificates...), fails: "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := session.Dial(context.Background(), session.ClientConfig{Dial: session.DialTLS(address, c.client)})
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				var remote *session.RemoteError
				if c.code != 0 {
					require.ErrorAs(t, err, &remote)
					require.Equal(t, c.code, remote.Code)
				} else {
					require.NotErrorAs(t, err, &remote)
				}
			} else {
				require.NoError(t, err)
				text, err := client.Request(context.Background(), session.ClientRequest{})
				require.NoError(t, err)
				require.Equal(t, c.want, string(text))
				require.NoError(t, client.Close())
			}
			_, err = bystander.Request(context.Background(), session.ClientRequest{})
			require.NoError(t, err)
		})
	}
	t.Run("ErrContext", func(t *testing.T) {
		_, err := bystander.Request(context.Background(), session.ClientRequest{VisibleNamespaces: wire.Some([]string{})})
		var remote *session.RemoteError
		require.ErrorAs(t, err, &remote)
		require.Equal(t, wire.ContextRejected, remote.Code)
	})
	t.Run("ErrPlain", func(t *testing.T) { // no TLS at all: cut, with what TLS says
		_, err := session.Dial(context.Background(), session.ClientConfig{Dial: session.DialTCP(address)})
		require.Error(t, err)
	})
	t.Run("ErrExpires", func(t *testing.T) { // while it is connected
		conn, err := tls.Dial("tcp", address, ca.client(ca.issue("plain", "", time.Now().Add(2*time.Second))))
		require.NoError(t, err)
		defer conn.Close()
		p := &peer{tb: t, conn: conn}
		p.shake()
		p.getsError("", wire.IdentityRejected, "the certificate has expired")
		p.closed()
	})
}

func TestListenTLSConfig(t *testing.T) {
	ca := newAuthority(t)
	table, err := session.NewCertificateIdentifier(nil)
	require.NoError(t, err)
	certs := []tls.Certificate{ca.issue("server", "", time.Now().Add(time.Hour))}
	for name, c := range map[string]struct {
		cfg  session.TLSConfig
		want string
	}{
		"ErrCertificate": {session.TLSConfig{Address: "127.0.0.1:0", ClientCAs: ca.pool, Identifier: table}, "a certificate of its own"},
		"ErrClientCAs":   {session.TLSConfig{Address: "127.0.0.1:0", Certificates: certs, Identifier: table}, "who issues clients' certificates"},
		"ErrTable":       {session.TLSConfig{Address: "127.0.0.1:0", Certificates: certs, ClientCAs: ca.pool}, "a table of certificates"},
		"ErrAddress":     {session.TLSConfig{Address: "127.0.0.1", Certificates: certs, ClientCAs: ca.pool, Identifier: table}, "listen on 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.ListenTLS(c.cfg)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCertificateTable(t *testing.T) {
	row := session.CertificateRow{Name: "CN=a", Kind: "service", ID: "a"}
	for name, c := range map[string]struct {
		rows []session.CertificateRow
		want string
	}{
		"OK":       {[]session.CertificateRow{row}, ""},
		"ErrName":  {[]session.CertificateRow{{Kind: "service", ID: "a"}}, "row 0 has no name"},
		"ErrTwice": {[]session.CertificateRow{row, row}, `row 1: "CN=a" is mapped twice`},
		"ErrActor": {[]session.CertificateRow{{Name: "CN=a", ID: "a"}}, "is mapped to no actor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.NewCertificateIdentifier(c.rows)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
