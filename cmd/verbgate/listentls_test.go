package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// authority issues certificates into files of a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

// issue writes NAME.pem and NAME-key.pem; the first certificate is the authority's own.
func (a *authority) issue(name string, template *x509.Certificate) {
	a.t.Helper()
	a.n++
	template.SerialNumber = big.NewInt(a.n)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	issuer, signer := a.cert, a.key
	if issuer == nil {
		issuer, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	require.NoError(a.t, err)
	if a.cert == nil {
		a.key = key
		a.cert, err = x509.ParseCertificate(der)
		require.NoError(a.t, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	for suffix, block := range map[string]*pem.Block{"": {Type: "CERTIFICATE", Bytes: der}, "-key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(a.t, os.WriteFile(a.file(name+suffix), pem.EncodeToMemory(block), 0o600))
	}
}

// client issues a client's certificate.
func (a *authority) client(name, uri string, change func(*x509.Certificate)) {
	a.t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"ops"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if uri != "" {
		parsed, err := url.Parse(uri)
		require.NoError(a.t, err)
		c.URIs = []*url.URL{parsed}
	}
	if change != nil {
		change(c)
	}
	a.issue(name, c)
}

func (a *authority) server() {
	a.t.Helper()
	a.issue("server", &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// flags are how a client names its certificate.
func (a *authority) flags(name string) []string {
	return []string{"--tls-cert", a.file(name), "--tls-key", a.file(name + "-key"), "--tls-ca", a.file("ca")}
}

// tlsConfiguration is a configuration file that maps two of the certificates.
func (a *authority) tlsConfiguration() string {
	text := fmt.Sprintf(`
tls:
  cert: server.pem
  key: server-key.pem
  client_ca: %s
  clients:
    - name: spiffe://example.org/watcher
      actor: service:watcher
      namespace: ops
      visible: [local, team]
    - {name: "CN=bySubject,O=ops", actor: "user:alice", namespace: local}
`, a.file("ca"))
	require.NoError(a.t, os.WriteFile(a.file("verbgate"), []byte(text), 0o600))
	return a.file("verbgate")
}

func TestListenTLS(t *testing.T) {
	a, other := newAuthority(t, "ours"), newAuthority(t, "theirs")
	a.server()
	a.client("watcher", "spiffe://example.org/watcher", nil)
	a.client("bySubject", "", nil)
	a.client("unmapped", "spiffe://example.org/stranger", nil)
	a.client("expired", "spiffe://example.org/watcher", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	})
	other.client("foreign", "spiffe://example.org/watcher", nil)
	gate, dir := t.TempDir(), t.TempDir()
	writePolicy(t, gate, `{"decision": "allow"} if { input.verb != "get" } else := {"decision": "deny", "reason": sprintf("%s:%s over %s in %s reading %v", [input.token.actor.kind, input.token.actor.id, input.context.transport, input.token.namespace, input.token.read])}`)
	s := launch(t, dir, "--config", a.tlsConfiguration(), "--policy", gate, "serve", "--listen", "tls://127.0.0.1:0")
	s.url = schemeTLS + s.await("serving the framed protocol")["address"].(string)
	// Somebody is there all the time, and does not notice the others.
	w := watch(t, append(a.flags("watcher"), "--server", s.url)...)
	w.awaitSaid("msg=following", 1)

	who := `get(id="00000000-0000-4000-8000-000000000000")`
	for _, c := range []struct {
		name  string
		flags []string
		code  int
		want  string
	}{
		{"OKMapped", a.flags("watcher"), exitFailed, `service:watcher over tls in ops reading [\"ops\", \"local\", \"team\"]`},
		{"OKMappedBySubject", a.flags("bySubject"), exitFailed, `user:alice over tls in local reading [\"local\"]`},
		{"ErrUnmapped", a.flags("unmapped"), exitStart, `identity_rejected: the certificate's name, "spiffe://example.org/stranger", is mapped to no actor`},
		{"ErrExpired", a.flags("expired"), exitStart, "expired certificate"},
		{"ErrForeign", append(other.flags("foreign")[:4:4], "--tls-ca", a.file("ca")), exitStart, "certificate required"}, // it is not even shown
		{"ErrServerUnknown", append(a.flags("watcher")[:4:4], "--tls-ca", other.file("ca")), exitStart, "certificate signed by unknown authority"},
		{"ErrNoCertificate", nil, exitBad, "name it with --tls-cert and its key with --tls-key"},
		{"ErrNoSuchFile", []string{"--tls-cert", "nowhere.pem", "--tls-key", "nowhere.pem"}, exitStart, "--tls-cert and --tls-key: open nowhere.pem"},
		{"ErrNoSuchCA", append(a.flags("watcher")[:4:4], "--tls-ca", a.file("ca-key")), exitStart, "holds no certificate in PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := s.ask(who, c.flags...)
			require.Equal(t, c.code, code, out+errs)
			require.Contains(t, out+errs, c.want)
		})
	}

	t.Run("ErrContext", func(t *testing.T) {
		cfg, err := tlsFlags{a.file("watcher"), a.file("watcher-key"), a.file("ca")}.config()
		require.NoError(t, err)
		client, err := session.Dial(t.Context(), session.ClientConfig{Dial: session.DialTLS(strings.TrimPrefix(s.url, schemeTLS), cfg)})
		require.NoError(t, err)
		defer client.Close()
		for _, req := range []session.ClientRequest{
			{ActorID: wire.Some("root")}, {Namespace: wire.Some("ops")}, {VisibleNamespaces: wire.Some([]string{})},
		} {
			req.Ops = "stats()"
			_, err := client.Request(t.Context(), req)
			var remote *session.RemoteError
			require.ErrorAs(t, err, &remote)
			require.Equal(t, wire.ContextRejected, remote.Code)
		}
	})
	t.Run("ErrForeignShown", func(t *testing.T) {
		foreign, err := tls.LoadX509KeyPair(other.file("foreign"), other.file("foreign-key"))
		require.NoError(t, err)
		cfg, err := tlsFlags{a.file("watcher"), a.file("watcher-key"), a.file("ca")}.config()
		require.NoError(t, err)
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
		_, err = session.Dial(t.Context(), session.ClientConfig{Dial: session.DialTLS(strings.TrimPrefix(s.url, schemeTLS), cfg)})
		require.ErrorContains(t, err, "unknown certificate authority")
	})
	t.Run("ErrPlain", func(t *testing.T) {
		_, err := session.Dial(t.Context(), session.ClientConfig{Dial: session.DialTCP(strings.TrimPrefix(s.url, schemeTLS))})
		require.Error(t, err)
	})
	t.Run("ErrOldTLS", func(t *testing.T) {
		cfg, err := tlsFlags{a.file("watcher"), a.file("watcher-key"), a.file("ca")}.config()
		require.NoError(t, err)
		cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		_, err = session.Dial(t.Context(), session.ClientConfig{Dial: session.DialTLS(strings.TrimPrefix(s.url, schemeTLS), cfg)})
		require.ErrorContains(t, err, "protocol version")
	})

	code, _, errs := s.ask(`create(kind="note", content="at the end")`, a.flags("bySubject")...)
	require.Equal(t, exitOK, code, errs)
	w.until("at the end")
	require.NotContains(t, w.stderr(), "lost")
	w.interrupt()
	s.stop()
	records := auditRecords(t, dir, audit.Filter{Verb: "create"})
	require.Len(t, records, 1)
	require.Equal(t, "user:alice", records[0].Actor)
}

// A connection ends when the certificate does.
func TestListenTLSExpires(t *testing.T) {
	a := newAuthority(t, "ours")
	a.server()
	gate := t.TempDir()
	writePolicy(t, gate, `{"decision": "allow"}`)
	s := launch(t, t.TempDir(), "--config", a.tlsConfiguration(), "--policy", gate, "serve", "--listen", "tls://127.0.0.1:0")
	s.url = schemeTLS + s.await("serving the framed protocol")["address"].(string)
	a.client("watcher", "spiffe://example.org/watcher", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(5*time.Second)
	})
	w := watch(t, append(a.flags("watcher"), "--server", s.url)...)
	w.awaitSaid("msg=following", 1)
	w.awaitSaid("the connection was lost", 1)
	w.awaitSaid("could not be taken up again yet", 1)
	w.interrupt()
	s.stop()
}

// What is wrong with the configuration of a tls:// socket is found before anything is made.
func TestListenTLSConfiguration(t *testing.T) {
	a := newAuthority(t, "ours")
	a.server()
	a.client("watcher", "spiffe://example.org/watcher", nil)
	good := a.tlsConfiguration()
	for _, c := range []struct {
		name string
		set  []string
		want string
	}{
		{"ErrNoCert", []string{"tls.cert="}, "the configuration has no tls.cert; tls:// needs tls.cert, tls.key, tls.client_ca and tls.clients"},
		{"ErrNoKey", []string{"tls.key="}, "the configuration has no tls.key"},
		{"ErrNoCA", []string{"tls.client_ca="}, "the configuration has no tls.client_ca"},
		{"ErrNoClients", []string{"tls.clients=[]"}, "the configuration has no tls.clients"},
		{"ErrWrongKey", []string{"tls.key=" + a.file("watcher-key")}, "tls.cert and tls.key: tls: private key does not match public key"},
		{"ErrNoFile", []string{"tls.cert=/nowhere.pem"}, "tls.cert and tls.key: open /nowhere.pem"},
		{"ErrCANoCertificate", []string{"tls.client_ca=" + a.file("ca-key")}, "tls.client_ca: " + a.file("ca-key") + " holds no certificate in PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			args := []string{"--config", good}
			for _, set := range c.set {
				args = append(args, "--set", set)
			}
			s := launch(t, dir, append(args, "serve", "--listen", "tls://127.0.0.1:0")...)
			require.Equal(t, exitStart, s.end())
			require.Contains(t, s.log.String(), "listen on tls://127.0.0.1:0: "+c.want)
			require.NoDirExists(t, dir)
		})
	}
}
