package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/wire/mcp"
)

func (c *cli) serveCommand() *cobra.Command {
	var (
		stdio bool
		addr  string
	)
	cmd := &cobra.Command{
		Use:   "serve --stdio | serve --http ADDR",
		Short: "Serve the tool to MCP clients",
		Long: `Serve the tool request to MCP clients, over stdio or over streamable HTTP.

Over stdio, stdout carries the protocol and nothing else, and the caller is the user who runs it.
Over HTTP, callers present the bearer token that the first start makes in the data folder; only
loopback addresses are served. http.addr in the configuration stands in for --http.

SIGINT and SIGTERM let running requests finish, a second one ends at once. SIGHUP reads the policy
again.`,
		Example: `  verbgate serve --stdio
  verbgate serve --http 127.0.0.1:7433`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.configuration()
			if err != nil {
				return err
			}
			if addr != "" {
				cfg.HTTP.Addr = addr
			}
			switch {
			case stdio && addr != "":
				return &usageError{errors.New("serve takes --stdio or --http, not both")}
			case !stdio && cfg.HTTP.Addr == "":
				return &usageError{errors.New("serve needs to know how: --stdio, or --http ADDR as in --http 127.0.0.1:7433")}
			}
			log := cfg.logger(c.stderr, false)
			// A client that closes our stdout or stderr must not end the process in the middle of a
			// call or of closing the stores: a failed write is an error like any other.
			signal.Ignore(syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			if stdio {
				return c.serveStdio(ctx, cfg, log)
			}
			return serveHTTP(ctx, cfg, log)
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "serve one client on stdin and stdout")
	cmd.Flags().StringVar(&addr, "http", "", "serve on this loopback address")
	return cmd
}

func (c *cli) serveStdio(ctx context.Context, cfg *config, log *slog.Logger) error {
	return serveWith(ctx, cfg, log, func(server *mcp.Server) error {
		log.Info("serving MCP", "transport", "stdio")
		return server.ServeStdio(ctx, c.stdin, c.stdout)
	})
}

func serveHTTP(ctx context.Context, cfg *config, log *slog.Logger) error {
	addr, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Addr)
	if err != nil {
		return &startError{fmt.Errorf("http address %q: %w; write a host and a port, as 127.0.0.1:7433", cfg.HTTP.Addr, err)}
	}
	access := mcp.HTTPConfig{AllowedHosts: cfg.HTTP.AllowedHosts, AllowedOrigins: cfg.HTTP.AllowedOrigins}
	if cfg.HTTP.Auth == authNone {
		access.Auth = mcp.AuthNone
	}
	// Before anything is made or opened: what may not be served leaves no trace.
	if err := access.CheckAddr(addr); err != nil {
		return &startError{err}
	}
	return serveWith(ctx, cfg, log, func(server *mcp.Server) error {
		attrs := []any{}
		if access.Auth == mcp.AuthToken {
			path := filepath.Join(cfg.DataDir, tokenFile)
			token, _, err := mcp.LoadToken(path)
			if err != nil {
				return &startError{err}
			}
			access.Token = token
			attrs = append(attrs, "token_file", path)
		}
		if _, err := server.Handler(access); err != nil { // refuse before there is a port to knock at
			return &startError{err}
		}
		ln, err := net.ListenTCP("tcp", addr)
		if err != nil {
			return &startError{fmt.Errorf("http address %s: %w", cfg.HTTP.Addr, err)}
		}
		log.Info("serving MCP", append([]any{"transport", "http", "url", "http://" + ln.Addr().String() + mcp.Path}, attrs...)...)
		return server.Serve(ctx, ln, access)
	})
}

// serveWith opens the house, which activates the policy, runs serve with an MCP server on it, and
// closes the house again. Meanwhile SIGHUP reads the policy again.
func serveWith(ctx context.Context, cfg *config, log *slog.Logger, serve func(*mcp.Server) error) error {
	a, err := openApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Config{
		Runner:  a.dispatcher,
		Verbs:   a.dispatcher.Catalogue(),
		Caller:  cfg.caller(dispatcher.MCP, ""),
		Version: version(),
		Log:     log,
	})
	if err != nil {
		return errors.Join(&startError{err}, a.Close())
	}
	stop := a.reloadOnHangup(ctx)
	err = serve(server)
	stop()
	log.Info("stopping")
	return errors.Join(err, a.Close())
}

// reloadOnHangup reads the policy again at every SIGHUP, until the function it returns is called.
func (a *app) reloadOnHangup(ctx context.Context) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() { // ends when hangup is closed
		defer close(ended)
		for range hangup {
			if err := a.gate.Reload(ctx); err != nil {
				a.log.Error("the policy was not reloaded; the one before stays in use", "error", err)
				continue
			}
			a.log.Info("the policy was reloaded", "revision", a.gate.Status().Revision)
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-ended
	}
}
