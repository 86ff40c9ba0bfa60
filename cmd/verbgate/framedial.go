package main

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/verbgate/verbgate/wire/session"
)

// tlsFlags are the client's side of a tls:// socket.
type tlsFlags struct{ cert, key, ca string }

func (f *tlsFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.cert, "tls-cert", "", "with tls://, the client's certificate, in PEM")
	fs.StringVar(&f.key, "tls-key", "", "with tls://, the key of that certificate, in PEM")
	fs.StringVar(&f.ca, "tls-ca", "", "with tls://, who may have issued the server's certificate, in PEM (default: whom the system trusts)")
}

var errTLSFlags = errors.New("--tls-cert, --tls-key and --tls-ca are for a tls:// server")

// dialer is how a socket is connected to, and what messages call it.
func (c *config) dialer(server string, f tlsFlags) (session.Dialer, string, error) {
	e, err := parseEndpoint(server)
	if err != nil {
		return nil, "", &usageError{fmt.Errorf("--server: %w", err)}
	}
	if e.scheme != schemeTLS && f != (tlsFlags{}) {
		return nil, "", &usageError{errTLSFlags}
	}
	switch e.scheme {
	case schemeUnix:
		path, err := c.socket(e)
		if err != nil {
			return nil, "", &startError{err}
		}
		return session.DialUnix(path), schemeUnix + path, nil
	case schemeTLS:
		cfg, err := f.config()
		if err != nil {
			return nil, "", err
		}
		return session.DialTLS(e.at, cfg), e.String(), nil
	}
	return session.DialTCP(e.at), e.String(), nil
}

func (f tlsFlags) config() (*tls.Config, error) {
	if f.cert == "" || f.key == "" {
		return nil, &usageError{errors.New("a tls:// server wants to see a certificate; name it with --tls-cert and its key with --tls-key")}
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, &startError{fmt.Errorf("--tls-cert and --tls-key: %w", err)}
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	if f.ca != "" {
		if cfg.RootCAs, err = readPool(f.ca); err != nil {
			return nil, &startError{fmt.Errorf("--tls-ca: %w", err)}
		}
	}
	return cfg, nil
}

// noSession says what it means for the person at the command line that there is no connection.
func noSession(name string, err error) error {
	return &startError{fmt.Errorf("%s: %w; is it what serve --listen printed, and is the server running?", name, err)}
}
