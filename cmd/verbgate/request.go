package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/wire/mcp"
)

// statusSuccess is the envelope's status when every operation succeeded.
const statusSuccess = "success"

func (c *cli) requestCommand() *cobra.Command {
	var remote remoteFlags
	cmd := &cobra.Command{
		Use:   "request OPS",
		Short: "Run a request and print its envelope",
		Long: `Run a request and print its envelope as JSON on stdout. OPS is the text of the request;
- reads it from stdin.

Without --server the request runs in this process, on the configured data folder, as the user who
runs it. With --server it goes to a server that was started with serve --http or serve --listen.`,
		Example: `  verbgate request 'create(kind="entity", entity_kind="concept", name="LoRA") | get(id=$prev.id)'
  verbgate request '[search(kind="entity", query="LoRA"), stats()]'
  echo 'verbs()' | verbgate request -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ops, err := c.readOps(args[0])
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			if err := remote.check(cmd.Flags()); err != nil {
				return err
			}
			if remote.server != "" {
				return c.requestRemote(ctx, remote, ops)
			}
			return c.requestHere(ctx, ops)
		},
	}
	remote.register(cmd.Flags())
	return cmd
}

// maxStdin bounds what is read from stdin. White space around a text does not count towards the limit
// of the parser, so there is room for a lot of it: as much as over MCP.
const maxStdin = mcp.DefaultMaxBytes

// readOps returns the text of the request, whole.
func (c *cli) readOps(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := io.ReadAll(io.LimitReader(c.stdin, maxStdin+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if len(text) > maxStdin {
		// The parser cannot be asked: what was read may be a request of its own.
		return "", &request.Error{Kind: request.InputTooLarge, Len: len(text), Max: request.MaxBytes,
			Detail: fmt.Sprintf("stdin holds more than %d bytes and a request may have at most %d; split it into several requests", maxStdin, request.MaxBytes)}
	}
	return string(text), nil
}

// requestHere runs the request in this process.
func (c *cli) requestHere(ctx context.Context, ops string) error {
	cfg, err := c.configuration()
	if err != nil {
		return err
	}
	a, err := openApp(ctx, cfg, cfg.logger(c.stderr, true))
	if err != nil {
		return err
	}
	err = c.requestWith(ctx, a, ops)
	if closing := a.Close(); closing != nil {
		a.log.Error("the data folder was not closed as it should be", "error", closing)
		if err == nil {
			err = closing
		}
	}
	return err
}

func (c *cli) requestWith(ctx context.Context, a *app, ops string) error {
	caller := a.cfg.caller(dispatcher.CLI, "embedded")
	req, err := request.Parse(ops)
	if err != nil {
		var parse *request.Error
		if errors.As(err, &parse) {
			a.dispatcher.RecordParseError(ctx, caller, parse)
		}
		return err
	}
	envelope := a.dispatcher.Run(ctx, caller, req)
	if err := c.printEnvelope(envelope); err != nil {
		return err
	}
	if envelope.Status != statusSuccess {
		return errOperations
	}
	return nil
}
