package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// clock is a handler with one thing to say.
type clock struct{}

func (clock) Request(_ context.Context, peer session.Peer, req session.Request, _, _ int) ([]byte, bool) {
	return fmt.Appendf(nil, `{"carrier":"%s","asked":"%s","in":"%s"}`, peer.Carrier, req.Ops, req.Namespace), true
}

func (clock) ValidContext(string, []string) error { return nil }

func (clock) Subscribe(context.Context, session.Peer, string, *uint64) ([]string, error) {
	return nil, &session.Rejection{Message: "there is nothing to follow"}
}

// A server on a Unix socket, one request, and a shutdown.
func Example() {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "v.sock")

	server, err := session.New(session.Config{Handler: clock{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := session.ListenUnix(path, session.NewUnixIdentifier())
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- server.Serve(context.Background(), listener) }()

	client, err := session.Dial(context.Background(), session.ClientConfig{Dial: session.DialUnix(path)})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := client.Request(context.Background(), session.ClientRequest{Ops: "time()", Namespace: wire.Some("office")})
	fmt.Println(string(result), err)
	_, err = client.Subscribe(context.Background(), "gate.activation", wire.Optional[wire.Cursor]{})
	fmt.Println(err)

	_ = client.Close()
	fmt.Println(server.Shutdown(context.Background()), <-served)
	// Output:
	// {"carrier":"unix","asked":"time()","in":"office"} <nil>
	// subscription_denied: this server has no events
	// <nil> <nil>
}
