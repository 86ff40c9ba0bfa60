package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
)

// Dialer makes a client's connections: the first, and another after one was lost.
type Dialer func(ctx context.Context) (io.ReadWriteCloser, error)

// DialUnix connects to a Unix socket, and makes sure that its server runs as the user of this process:
// what a request holds is not for whoever put a socket in the way.
func DialUnix(path string) Dialer {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		if len(path) > maxSocketPath {
			return nil, &SocketPathError{path}
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err == nil && uid != uint32(os.Geteuid()) {
			err = fmt.Errorf("the server on %s runs as uid %d, not as the user of this process", path, uid)
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// DialTLS connects over TLS. The configuration brings the client's certificate and, in RootCAs, who
// may have issued the server's.
func DialTLS(address string, cfg *tls.Config) Dialer {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		d := tls.Dialer{Config: cfg}
		return d.DialContext(ctx, "tcp", address)
	}
}

// DialTCP connects over plain TCP, which servers offer on loopback only.
func DialTCP(address string) Dialer {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}
