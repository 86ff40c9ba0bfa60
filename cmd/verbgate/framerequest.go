package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// requestFramed sends the request to a server of the framed protocol and prints the envelope.
func (c *cli) requestFramed(ctx context.Context, cfg *config, f remoteFlags, ops string) error {
	dial, name, err := cfg.dialer(f.server, f.tls)
	if err != nil {
		return err
	}
	// What does not parse is not sent, as over HTTP; here it can be shown with a caret. White space around
	// a text is no part of it.
	if _, err := request.Parse(ops); err != nil {
		return err
	}
	client, err := session.Dial(ctx, session.ClientConfig{Dial: dial})
	if err != nil {
		return noSession(name, err)
	}
	defer client.Close() // it has nothing to say: the answer is here, or is not
	result, err := client.Request(ctx, session.ClientRequest{Ops: strings.TrimSpace(ops)})
	if err != nil {
		return framedError(name, err)
	}
	var refused struct {
		Error *parseErrorAnswer `json:"error"`
	}
	if err := json.Unmarshal(result, &refused); err == nil && refused.Error != nil && refused.Error.Reason == parseErrorReason {
		// The server's parser is of another version than this one, which has read the text.
		return &usageError{fmt.Errorf("%s refused the request: %s", name, refused.Error.Message)}
	}
	return c.printRemote(string(result))
}

// framedError says what a failed request means for the person at the command line.
func framedError(name string, err error) error {
	var (
		lost   *session.ConnectionError
		remote *session.RemoteError
	)
	switch {
	case errors.As(err, &lost) && !lost.Sent:
		return noSession(name, err)
	case errors.As(err, &lost): // it may have been done
		return fmt.Errorf("%s: %w", name, err)
	case errors.As(err, &remote) && (remote.Code == wire.ShuttingDown || remote.Code == wire.InFlightLimitExceeded):
		return &startError{fmt.Errorf("%s did not take the request: %w; send it again", name, err)}
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("cancelled: %w", err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
