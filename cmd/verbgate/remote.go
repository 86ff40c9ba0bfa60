package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/pflag"

	"github.com/verbgate/verbgate/dispatcher/request"
	verbgatemcp "github.com/verbgate/verbgate/wire/mcp"
)

type remoteFlags struct {
	server, tokenFile string
	tls               tlsFlags
}

func (f *remoteFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.server, "server", "", "server to send the request to: the URL of serve --http, as http://127.0.0.1:7433/mcp, or a socket of\nserve --listen, as unix://, unix:///path or tls://host:port")
	fs.StringVar(&f.tokenFile, "token-file", "", "file with the server's bearer token (also "+envTokenFile+"; "+envToken+" holds the token itself);\nfor a server on this machine the token in the data folder is found by itself")
	f.tls.register(fs)
}

// check refuses a flag that is there and empty: the request would run somewhere else, or go with another
// token, than was meant.
func (f *remoteFlags) check(fs *pflag.FlagSet) error {
	for flag, text := range map[string]string{"server": f.server, "token-file": f.tokenFile} {
		if text == "" && fs.Changed(flag) {
			return &usageError{fmt.Errorf("--%s: %w", flag, errEmpty)}
		}
	}
	switch {
	case f.tls != (tlsFlags{}) && !strings.HasPrefix(f.server, schemeTLS):
		return &usageError{errTLSFlags}
	case f.tokenFile != "" && framed(f.server):
		return &usageError{errors.New("--token-file is for an http:// server; a socket knows its callers by other means")}
	}
	return nil
}

// requestRemote sends the request to a server and prints the envelope it answers with.
func (c *cli) requestRemote(ctx context.Context, f remoteFlags, ops string) error {
	cfg, err := c.configuration()
	if err != nil {
		return err
	}
	if framed(f.server) {
		return c.requestFramed(ctx, cfg, f, ops)
	}
	target, err := url.Parse(f.server)
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") {
		return &usageError{fmt.Errorf("--server %s: write a URL, as http://127.0.0.1:7433/mcp, or a socket, as unix://", f.server)}
	}
	if err := c.noNamespaces(`leave it out, and name the namespace in the operation, as list(kind="note", namespace="team-a")`); err != nil {
		return err
	}
	token, err := c.token(cfg, f, target)
	if err != nil {
		return &startError{err}
	}
	// What does not parse is not sent: JSON carries only Unicode, and bytes that are not would be mended
	// on the way into a text that nobody wrote. White space around a text is no part of it.
	if _, err := request.Parse(ops); err != nil {
		return err
	}
	text, err := callServer(ctx, target, token, strings.TrimSpace(ops))
	if err != nil {
		return remoteError(err, target)
	}
	return c.printRemote(text)
}

// token finds the bearer token. The one in the data folder is for servers on this machine only: it
// must not be sent to a host that merely was named.
func (c *cli) token(cfg *config, f remoteFlags, target *url.URL) (string, error) {
	if f.tokenFile == "" {
		if token := lookup(c.environ, envToken); token != "" {
			return token, nil
		}
		f.tokenFile = lookup(c.environ, envTokenFile)
	}
	if f.tokenFile != "" {
		return verbgatemcp.ReadToken(f.tokenFile)
	}
	if !loopback(target.Hostname()) {
		return "", nil
	}
	token, err := verbgatemcp.ReadToken(filepath.Join(cfg.DataDir, tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the server may want none
	}
	return token, err
}

// loopback reports whether a host name or address cannot but mean this machine.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// callServer calls the tool and returns the envelope's text.
func callServer(ctx context.Context, target *url.URL, token, ops string) (string, error) {
	headers := map[string]string{}
	if token != "" {
		headers["Authorization"] = "Bearer " + token
	}
	// A redirect would carry the token elsewhere.
	plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	conn, err := client.NewStreamableHttpClient(target.String(), transport.WithHTTPHeaders(headers), transport.WithHTTPBasicClient(plain))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.Start(ctx); err != nil {
		return "", err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "verbgate", Version: version()}
	if _, err := conn.Initialize(ctx, hello); err != nil {
		return "", err
	}
	call := mcp.CallToolRequest{}
	call.Params.Name = "request"
	call.Params.Arguments = map[string]any{"ops": ops}
	result, err := conn.CallTool(ctx, call)
	if err != nil {
		return "", err
	}
	// The text and not the structured content: it keeps every digit of a number.
	for _, content := range result.Content {
		if text, ok := content.(mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", errors.New("the answer holds no envelope")
}

// remoteError says what a failed call means for the person at the command line.
func remoteError(err error, target *url.URL) error {
	switch {
	case errors.Is(err, mcp.ErrInvalidParams):
		// The server's parser is of another version than this one, which has read the text.
		return &usageError{fmt.Errorf("%s refused the request: %w", target.Host, err)}
	case errors.Is(err, transport.ErrUnauthorized), errors.Is(err, transport.ErrAuthorizationRequired):
		return &startError{fmt.Errorf("%s wants a bearer token that it knows; name the file it printed when it started with --token-file", target.Host)}
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("cancelled: %w", err)
	default:
		return &startError{fmt.Errorf("%s did not answer the request: %w; is it the URL that serve --http printed?", target.Host, err)}
	}
}

// printRemote prints the envelope as it came, and judges it by its status.
func (c *cli) printRemote(text string) error {
	var envelope struct {
		Status  string            `json:"status"`
		Results []json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal([]byte(text), &envelope); err != nil || envelope.Status == "" {
		return &startError{errors.New("the server's answer is not an envelope; is it another program's URL?")}
	}
	if err := c.printText([]byte(text)); err != nil {
		return err
	}
	if envelope.Status != statusSuccess {
		return errOperations
	}
	return nil
}
