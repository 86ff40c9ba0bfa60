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
		stdio  bool
		addr   string
		listen []string
	)
	cmd := &cobra.Command{
		Use:   "serve [--stdio | --http ADDR] [--listen SOCKET]…",
		Short: "Serve the tool to MCP clients, and requests and events over sockets",
		Long: `Serve the tool request to MCP clients, over stdio or over streamable HTTP, and requests and events
to clients of the framed protocol, over sockets.

Over stdio, stdout carries the protocol and nothing else, and the caller is the user who runs it.
Over HTTP, callers present the bearer token that the first start makes in the data folder; only
loopback addresses are served.

--listen unix:///path makes a socket for the user who runs the server, unix:// alone one at
$XDG_RUNTIME_DIR/verbgate/verbgate.sock, else verbgate.sock in the data folder. --listen tls://host:port
asks clients for certificates, which the configuration maps to actors (tls.clients). --listen
tcp://127.0.0.1:port is for who allows it with tcp.plain.

Without any of these flags, http.addr and listen in the configuration say what to serve. When one way of
serving ends, as stdio does with its client, the others end as well.

SIGINT and SIGTERM let running requests finish for 10 s and then cancel them, a second one ends at
once. (Over stdio, a client that has closed its side has given up: then they are cancelled at the
first.) SIGHUP reads the policy again and logs the counters.`,
		Example: `  verbgate serve --stdio
  verbgate serve --http 127.0.0.1:7433
  verbgate serve --http 127.0.0.1:7433 --listen unix://
  verbgate serve --listen unix:///run/verbgate.sock --listen tls://0.0.0.0:7434`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Before anything takes its time: from here on no signal ends the process unasked.
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			// A client that closes our stdout or stderr must not end the process in the middle of a
			// call or of closing the stores: a failed write is an error like any other.
			signal.Ignore(syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once

			cfg, err := c.configuration()
			if err != nil {
				return err
			}
			if stdio || cmd.Flags().Changed("http") || cmd.Flags().Changed("listen") {
				cfg.HTTP.Addr, cfg.Listen = addr, listen
			}
			switch {
			case addr == "" && cmd.Flags().Changed("http"):
				return &usageError{fmt.Errorf("--http: %w", errEmpty)}
			case stdio && addr != "":
				return &usageError{errors.New("serve takes --stdio or --http, not both")}
			case !stdio && cfg.HTTP.Addr == "" && len(cfg.Listen) == 0:
				return &usageError{errors.New("serve needs to know how: --stdio, or --http ADDR as in --http 127.0.0.1:7433, or --listen SOCKET as in --listen unix://")}
			}
			s := service{cli: c, cfg: cfg, log: cfg.logger(c.stderr, false), hangup: hangup}
			if s.sockets, err = cfg.openings(cfg.Listen); err != nil {
				return err
			}
			switch {
			case stdio:
				return s.stdio(ctx)
			case cfg.HTTP.Addr != "":
				return s.http(ctx)
			}
			return s.serve(ctx, nil)
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "serve one client on stdin and stdout")
	cmd.Flags().StringVar(&addr, "http", "", "serve on this loopback address")
	cmd.Flags().StringArrayVar(&listen, "listen", nil, "speak the framed protocol on this socket: unix://[PATH], tls://HOST:PORT or tcp://ADDR:PORT; may be repeated")
	return cmd
}

// service is one run of serve.
type service struct {
	cli    *cli
	cfg    *config
	log    *slog.Logger
	hangup <-chan os.Signal // SIGHUP, from the start of the process on

	sockets []opening // beside stdio or HTTP, or alone
}

func (s service) stdio(ctx context.Context) error {
	return s.serve(ctx, func(ctx context.Context, server *mcp.Server) error {
		s.log.Info("serving MCP", "transport", "stdio")
		return server.ServeStdio(ctx, s.cli.stdin, s.cli.stdout)
	})
}

func (s service) http(ctx context.Context) error {
	cfg := s.cfg
	addr, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Addr)
	if err != nil {
		return &startError{fmt.Errorf("http address %q: %w; write a host and a port, as 127.0.0.1:7433", cfg.HTTP.Addr, err)}
	}
	access := mcp.HTTPConfig{AllowedHosts: cfg.HTTP.AllowedHosts, AllowedOrigins: cfg.HTTP.AllowedOrigins}
	if cfg.HTTP.Auth == authNone {
		access.Auth = mcp.AuthNone
	}
	// Before anything is made or opened: what may not be served leaves no trace.
	if err := mcp.CheckAddr(addr); err != nil {
		return &startError{err}
	}
	return s.serve(ctx, func(ctx context.Context, server *mcp.Server) error {
		attrs := []any{}
		if access.Auth == mcp.AuthToken {
			path := filepath.Join(cfg.DataDir, tokenFile)
			token, created, err := mcp.LoadToken(path)
			if err != nil {
				return &startError{err}
			}
			if created {
				cfg.notices(s.cli.stderr).Info("made the bearer token that HTTP callers present", "token_file", path)
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
		s.log.Info("serving MCP", append([]any{"transport", "http", "url", "http://" + ln.Addr().String() + mcp.Path}, attrs...)...)
		return server.Serve(ctx, ln, access)
	})
}

// serve opens the house, which activates the policy, runs answer, if there is one, with an MCP server on
// it and beside the sockets, and closes the house again. Meanwhile SIGHUP reads the policy again.
func (s service) serve(ctx context.Context, answer func(context.Context, *mcp.Server) error) error {
	a, err := openApp(ctx, s.cfg, s.log)
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Config{
		Runner:         a.dispatcher,
		Verbs:          a.dispatcher.Catalogue(),
		Caller:         s.cfg.caller(dispatcher.MCP, ""),
		Version:        version(),
		RequestTimeout: s.cfg.Limits.RequestTimeout,
		Log:            s.log,
	})
	if err != nil {
		return errors.Join(&startError{err}, a.Close())
	}
	var serveMCP func(context.Context) error
	if answer != nil {
		serveMCP = func(ctx context.Context) error { return answer(ctx, server) }
	}
	stop := a.onHangup(ctx, s.hangup)
	err = s.beside(ctx, a, serveMCP)
	stop()
	s.log.Info("stopping")
	a.logCounters()
	return errors.Join(err, a.Close())
}

// onHangup reads the policy again and logs the counters at every SIGHUP, those included that came
// while the house was being opened, until the function it returns is called.
func (a *app) onHangup(ctx context.Context, hangup <-chan os.Signal) (stop func()) {
	listening, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ends with listening
		defer close(ended)
		for {
			select {
			case <-listening.Done():
				return
			case <-hangup:
			}
			if err := a.gate.Reload(ctx); err != nil {
				a.log.Error("the policy was not reloaded; the one before stays in use", "error", err)
			} else {
				a.log.Info("the policy was reloaded", "revision", a.gate.Status().Revision)
			}
			a.logCounters()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
