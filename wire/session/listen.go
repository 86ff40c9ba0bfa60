package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Listener is where connections of one carrier come from, and how their peers are identified.
type Listener struct {
	net.Listener
	carrier    Carrier
	identifier Identifier
	release    func() // what closing does beyond the listener
	once       sync.Once
	closeErr   error
}

// NewListener makes a Listener of any other. An identifier of nil lets nobody in.
func NewListener(l net.Listener, carrier Carrier, identifier Identifier) *Listener {
	return &Listener{Listener: l, carrier: carrier, identifier: identifier, release: func() {}}
}

// Close stops listening; a Unix socket's file is removed if it is still the listener's own. Only the
// first call does anything.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.release()
		l.closeErr = l.Listener.Close()
	})
	return l.closeErr
}

// Carrier is what the listener's connections run over.
func (l *Listener) Carrier() Carrier { return l.carrier }

// TLSConfig is a listener's on TCP with certificates on both sides.
type TLSConfig struct {
	Address      string // host:port
	Certificates []tls.Certificate
	ClientCAs    *x509.CertPool // who may have issued clients' certificates
	Identifier   Identifier     // usually a *CertificateIdentifier
}

// ListenTLS listens on TCP. A client without a certificate that ClientCAs' holders issued, or with one
// that is not valid at the time, does not get past the TLS handshake.
func ListenTLS(cfg TLSConfig) (*Listener, error) {
	switch {
	case len(cfg.Certificates) == 0:
		return nil, errors.New("a TLS listener needs a certificate of its own")
	case cfg.ClientCAs == nil:
		return nil, errors.New("a TLS listener needs to know who issues clients' certificates")
	case cfg.Identifier == nil:
		return nil, errors.New("a TLS listener needs a table of certificates")
	}
	inner, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", cfg.Address, err)
	}
	secured := tls.NewListener(inner, &tls.Config{
		Certificates: cfg.Certificates,
		ClientCAs:    cfg.ClientCAs,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		// A resumed session would carry a certificate's verification beyond the connection it was for.
		SessionTicketsDisabled: true,
	})
	return NewListener(secured, TLS, cfg.Identifier), nil
}

// ErrNotLoopback is why ListenTCP refuses an address.
var ErrNotLoopback = errors.New("plain TCP is for loopback addresses only; use TLS, or 127.0.0.1 or [::1]")

// ListenTCP listens on plain TCP, on a loopback address given by number. Everyone on the machine can
// connect, so it is for those who ask for it.
func ListenTCP(address string, identifier Identifier) (*Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("listen on %q: %w", address, ErrNotLoopback)
	}
	inner, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return NewListener(inner, TCP, identifier), nil
}

// temporary says whether accepting may work again later: the process or the system is out of
// something, or a peer went before it was accepted.
func temporary(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
