package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// Keys of the configuration that say which namespaces a call is about.
const (
	keyNamespace = "namespace"
	keyVisible   = "visible"
)

// saidBy is the flag or the variable that gives this command the key's value, and empty when none does.
func (c *cli) saidBy(key string) string {
	for _, kv := range c.flags.set {
		if name, _, _ := strings.Cut(kv, "="); name == key {
			return "--set " + key
		}
	}
	for _, s := range shorthands {
		if s.key == key && c.flags.shorthand.Changed(s.flag) {
			return "--" + s.flag
		}
	}
	if lookup(c.environ, envName(key)) != "" {
		return envName(key)
	}
	return ""
}

// noNamespaces refuses flags and variables about namespaces where the server cannot be told of them: what
// was asked would be done, and in another namespace. instead is what to write.
func (c *cli) noNamespaces(instead string) error {
	for _, key := range []string{keyNamespace, keyVisible} {
		if by := c.saidBy(key); by != "" {
			return &usageError{fmt.Errorf("%s does not reach the server: %s", by, instead)}
		}
	}
	return nil
}

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
	req := session.ClientRequest{Ops: strings.TrimSpace(ops)}
	// A configuration file may be the server's own, so what is in it goes only where the server takes it:
	// elsewhere it knows its callers' namespaces by other means, and refuses to be told.
	shared, preset := strings.HasPrefix(f.server, schemeUnix), defaults()
	if c.saidBy(keyNamespace) != "" || shared && cfg.Namespace != preset.Namespace {
		req.Namespace = wire.Some(cfg.Namespace)
	}
	if c.saidBy(keyVisible) != "" || shared && !slices.Equal(cfg.Visible, preset.Visible) {
		req.VisibleNamespaces = wire.Some(cfg.Visible)
	}
	result, err := client.Request(ctx, req)
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
