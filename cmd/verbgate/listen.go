package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/wire/session"
)

// Schemes of sockets.
const (
	schemeUnix = "unix://"
	schemeTLS  = "tls://"
	schemeTCP  = "tcp://"
)

// endpoint is a socket that is named on the command line or in the configuration.
type endpoint struct {
	scheme string
	at     string // a path or host:port; "" with unix:// for the default
}

func (e endpoint) String() string { return e.scheme + e.at }

// framed reports whether a text names a socket of the framed protocol.
func framed(text string) bool {
	return strings.HasPrefix(text, schemeUnix) || strings.HasPrefix(text, schemeTLS) || strings.HasPrefix(text, schemeTCP)
}

// parseEndpoint reads the name of a socket.
func parseEndpoint(text string) (endpoint, error) {
	for _, scheme := range []string{schemeUnix, schemeTLS, schemeTCP} {
		at, ok := strings.CutPrefix(text, scheme)
		switch {
		case !ok:
			continue
		case scheme == schemeUnix:
			return endpoint{scheme, at}, nil
		}
		host, port, err := net.SplitHostPort(at)
		if err != nil || host == "" || port == "" {
			return endpoint{}, fmt.Errorf("%q: write a host and a port, as %s127.0.0.1:7434", text, scheme)
		}
		return endpoint{scheme, at}, nil
	}
	return endpoint{}, fmt.Errorf("%q is not a socket; write unix://, unix:///path, tls://host:port or tcp://127.0.0.1:port", text)
}

// checkListen accepts what can stand in the configuration, where a path cannot start from the folder
// that a program happens to run in.
func checkListen(text string) error {
	e, err := parseEndpoint(text)
	if err == nil && e.scheme == schemeUnix && e.at != "" && !filepath.IsAbs(e.at) && !strings.HasPrefix(e.at, "~/") {
		return fmt.Errorf("%q: write a whole path, as unix:///run/verbgate.sock or unix://~/verbgate.sock", text)
	}
	return err
}

// socket is the path of a Unix socket.
func (c *config) socket(e endpoint) (string, error) {
	if e.at != "" {
		base, err := os.Getwd()
		if err != nil {
			return "", err
		}
		return absolute(e.at, base)
	}
	// The XDG rules say that a relative path there is to be ignored.
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "verbgate", "verbgate.sock"), nil
	}
	return filepath.Join(c.DataDir, "verbgate.sock"), nil
}

// opening is a socket that has been found fit to be opened.
type opening struct {
	name string
	open func() (*session.Listener, error)
}

// openings checks sockets, and all that belongs to them, before anything is made or opened: what may
// not be served leaves no trace.
func (c *config) openings(sockets []string) ([]opening, error) {
	var out []opening
	for _, text := range sockets {
		e, err := parseEndpoint(text)
		if err != nil {
			return nil, &usageError{fmt.Errorf("listen: %w", err)}
		}
		o, err := c.opening(e)
		if err != nil {
			return nil, &startError{fmt.Errorf("listen on %s: %w", text, err)}
		}
		if slices.ContainsFunc(out, func(other opening) bool { return other.name == o.name }) {
			return nil, &usageError{fmt.Errorf("listen: %s is there twice", o.name)}
		}
		out = append(out, o)
	}
	return out, nil
}

func (c *config) opening(e endpoint) (opening, error) {
	switch e.scheme {
	case schemeUnix:
		path, err := c.socket(e)
		if err != nil {
			return opening{}, err
		}
		return opening{schemeUnix + path, func() (*session.Listener, error) {
			return session.ListenUnix(path, session.NewUnixIdentifier())
		}}, nil
	case schemeTLS:
		cfg, err := c.tlsListener(e.at)
		if err != nil {
			return opening{}, err
		}
		return opening{e.String(), func() (*session.Listener, error) { return session.ListenTLS(cfg) }}, nil
	}
	if !c.TCP.Plain {
		return opening{}, errors.New("tcp:// is not secured and lets every local process in; use unix:// or tls://, or allow it with tcp.plain: true")
	}
	if host, _, _ := net.SplitHostPort(e.at); !net.ParseIP(host).IsLoopback() { // no IP is none
		return opening{}, fmt.Errorf("tcp:// is for loopback addresses given by number, as 127.0.0.1 or [::1], not %s; use tls://", host)
	}
	return opening{e.String(), func() (*session.Listener, error) { return session.ListenTCP(e.at, c.anyone()) }}, nil
}

// anyone is who comes by a socket that shows nothing about the peer. What the peer says of itself is
// worth nothing, so frames may not say who it is.
func (c *config) anyone() session.Identifier {
	return session.StaticIdentity{Kind: "anonymous", ID: "tcp", Namespace: c.Namespace, Visible: slices.Clone(c.Visible), Fixed: true}
}

// tlsListener reads the certificates and the table of clients.
func (c *config) tlsListener(address string) (session.TLSConfig, error) {
	for _, key := range []struct {
		name  string
		empty bool
	}{{"tls.cert", c.TLS.Cert == ""}, {"tls.key", c.TLS.Key == ""}, {"tls.client_ca", c.TLS.ClientCA == ""}, {"tls.clients", len(c.TLS.Clients) == 0}} {
		if key.empty {
			return session.TLSConfig{}, fmt.Errorf("the configuration has no %s; tls:// needs tls.cert, tls.key, tls.client_ca and tls.clients", key.name)
		}
	}
	cert, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
	if err != nil {
		return session.TLSConfig{}, fmt.Errorf("tls.cert and tls.key: %w", err)
	}
	clients, err := readPool(c.TLS.ClientCA)
	if err != nil {
		return session.TLSConfig{}, fmt.Errorf("tls.client_ca: %w", err)
	}
	rows := make([]session.CertificateRow, 0, len(c.TLS.Clients))
	for _, r := range c.TLS.Clients {
		kind, id, _ := splitActor(r.Actor) // checked when it was read
		rows = append(rows, session.CertificateRow{Name: r.Name, Kind: kind, ID: id, Namespace: r.Namespace, Readable: r.Visible})
	}
	table, err := session.NewCertificateIdentifier(rows)
	if err != nil {
		return session.TLSConfig{}, fmt.Errorf("tls.clients: %w", err)
	}
	return session.TLSConfig{Address: address, Certificates: []tls.Certificate{cert}, ClientCAs: clients, Identifier: table}, nil
}

// readPool reads certificates in PEM.
func readPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return pool, nil
}

// beside runs answer, if there is one, beside the sockets, until ctx ends or one of them does; then the
// others end as well.
func (s service) beside(ctx context.Context, a *app, answer func(context.Context) error) error {
	if len(s.sockets) == 0 {
		return answer(ctx)
	}
	server, err := session.New(session.Config{
		Handler:      &handler{dispatcher: a.dispatcher, cfg: s.cfg, log: s.log, turns: make(chan struct{}, framedTurns)},
		Events:       newEvents(a.store, a.dispatcher.Topics()),
		Operators:    s.cfg.operator,
		TrustActorID: bool(s.cfg.Unix.TrustActorID),
		Logger:       s.log,
	})
	if err != nil {
		return &startError{err}
	}
	listeners, err := openAll(s.sockets)
	if err != nil {
		return &startError{err}
	}
	a.sessions.Store(server)
	for _, l := range listeners {
		s.log.Info("serving the framed protocol", "transport", string(l.Carrier()), "address", l.Addr().String())
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() { // ends when the server was shut down
		defer end()
		served <- server.Serve(context.WithoutCancel(ctx), listeners...)
	}()
	drained := make(chan struct{})
	go func() { // ends when ctx has ended and the connections with it
		defer close(drained)
		<-ctx.Done()
		if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
			s.log.Warn("not every connection ended as it should", "error", err)
		}
	}()
	var answered error
	if answer != nil {
		answered = answer(ctx)
		end()
	}
	if err = <-served; errors.Is(err, session.ErrShutdown) {
		err = nil // it was asked to end before it had begun
	}
	<-drained
	return errors.Join(answered, err)
}

// openAll opens all sockets or none.
func openAll(sockets []opening) ([]*session.Listener, error) {
	var out []*session.Listener
	for _, o := range sockets {
		l, err := o.open()
		if err != nil {
			for _, open := range out {
				_ = open.Close() // nobody has connected
			}
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// operator says who may follow the topics of the gate.
func (c *config) operator(id session.Identity) bool {
	return slices.Contains(c.Operators, id.Kind+":"+id.ID)
}
