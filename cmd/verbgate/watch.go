package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// defaultTopic is what watch follows when nobody says so.
const defaultTopic = "audit.decision"

func (c *cli) watchCommand() *cobra.Command {
	var (
		server string
		tls    tlsFlags
		topics []string
		from   []string
	)
	cmd := &cobra.Command{
		Use:   "watch [--topic TOPIC]… [--from CURSOR]",
		Short: "Follow events live",
		Long: `Follow events live, as JSON on stdout, one a line: {"topic","cursor","occurred_at","payload"}.

Without --from, events from now on; with it, those after the cursor first, as far as they are retained:
--from 0 is all of them. With several topics, whose cursors have nothing to do with each other, write
--from TOPIC=CURSOR for each. Topics are audit.decision, audit.refusal, what packs tell of, and for
operators gate.activation, gate.outage and gate.late_decision.

When the connection is lost watch says so on stderr, connects again, and goes on after the last event it
printed. SIGINT and SIGTERM end it.

Exit codes: 0 it was ended by a signal; 1 the server refused the topic or the cursor, or stdout failed;
2 the command line is wrong; 3 no server.`,
		Example: `  verbgate watch
  verbgate watch --server unix:///run/verbgate.sock --topic audit.decision --from 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.configuration()
			if err != nil {
				return err
			}
			if server == "" {
				if cmd.Flags().Changed("server") {
					return &usageError{fmt.Errorf("--server: %w", errEmpty)}
				}
				server = cfg.ownSocket()
			}
			if !framed(server) {
				return &usageError{fmt.Errorf("--server %s: events come over the framed protocol; write unix://, unix:///path or tls://host:port, as serve --listen has it", server)}
			}
			if err := c.noNamespaces("leave it out; a subscription shows the events of every namespace that the server lets you read"); err != nil {
				return err
			}
			dial, name, err := cfg.dialer(server, tls)
			if err != nil {
				return err
			}
			starts, err := starts(topics, from)
			if err != nil {
				return &usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			w := watcher{cli: c, name: name, log: cfg.logger(c.stderr, false)}
			err = w.run(ctx, dial, topics, starts)
			if ctx.Err() != nil {
				return nil // it was asked to end
			}
			return err
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "the server's socket, as unix:///path or tls://host:port (default: the first unix:// of listen in the\nconfiguration, else unix://)")
	cmd.Flags().StringArrayVar(&topics, "topic", []string{defaultTopic}, "what to follow; may be repeated")
	cmd.Flags().StringArrayVar(&from, "from", nil, "begin after this cursor, for all topics, or TOPIC=CURSOR for one; may be repeated")
	tls.register(cmd.Flags())
	return cmd
}

// ownSocket is the Unix socket of a server with this configuration.
func (c *config) ownSocket() string {
	at := slices.IndexFunc(c.Listen, func(text string) bool { return strings.HasPrefix(text, schemeUnix) })
	if at < 0 {
		return schemeUnix
	}
	return c.Listen[at]
}

// starts tells after which cursor each topic begins; a topic that is not in it begins now.
func starts(topics, from []string) (map[string]wire.Cursor, error) {
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			return nil, fmt.Errorf("--topic %s is there twice", topic)
		}
	}
	out := map[string]wire.Cursor{}
	for _, text := range from {
		meant := topics
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			meant = []string{text[:at]}
			if !slices.Contains(topics, text[:at]) {
				return nil, fmt.Errorf("--from %s: there is no --topic %s", text, text[:at])
			}
		}
		cursor, err := wire.ParseCursor(text[strings.LastIndexByte(text, '=')+1:])
		if err != nil {
			return nil, fmt.Errorf("--from %s: write a cursor as events have it, as --from 0 or --from 42", text)
		}
		for _, topic := range meant {
			if _, twice := out[topic]; twice {
				return nil, fmt.Errorf("--from %s: it is said already where %s begins", text, topic)
			}
			out[topic] = cursor
		}
	}
	return out, nil
}

// watcher is one run of watch.
type watcher struct {
	cli  *cli
	name string
	log  *slog.Logger
	out  sync.Mutex // held while a line is written
}

// run follows the topics until ctx ends or one of them does.
func (w *watcher) run(ctx context.Context, dial session.Dialer, topics []string, starts map[string]wire.Cursor) error {
	client, err := session.Dial(ctx, session.ClientConfig{Dial: dial, Logger: w.log.With("server", w.name)})
	if err != nil {
		return noSession(w.name, err)
	}
	defer client.Close() // it has nothing to say: whatever was printed was printed
	var subs []*session.Subscription
	for _, topic := range topics {
		from := wire.Optional[wire.Cursor]{}
		if cursor, ok := starts[topic]; ok {
			from = wire.Some(cursor)
		}
		sub, err := client.Subscribe(ctx, topic, from)
		if err != nil {
			return w.ended(topic, err)
		}
		w.log.Info("following", "server", w.name, "topic", topic, "after", uint64(sub.Start()))
		subs = append(subs, sub)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, sub := range subs {
		all.Go(func() { // ends with ctx, or with the subscription
			cancel(w.follow(ctx, sub))
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// follow prints a topic's events. It returns why there are no more.
func (w *watcher) follow(ctx context.Context, sub *session.Subscription) error {
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return w.ended(sub.Topic(), err)
		}
		if err := w.print(e); err != nil {
			return err
		}
	}
}

// print writes an event as the wire has it, but for its kind.
func (w *watcher) print(e wire.Event) error {
	text, err := wire.MarshalFrameJSON(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	w.out.Lock()
	defer w.out.Unlock()
	return w.cli.answer(oneLine(withoutKind(text)))
}

// ended says what the end of a subscription means for the person at the command line.
func (w *watcher) ended(topic string, err error) error {
	var (
		lost   *session.ConnectionError
		remote *session.RemoteError
	)
	switch {
	case errors.As(err, &remote) && remote.Code == wire.CursorExpired:
		return fmt.Errorf("%s: %s: %w; leave out --from for new events only", w.name, topic, err)
	case errors.As(err, &lost):
		return noSession(w.name, err)
	}
	return fmt.Errorf("%s: %s: %w", w.name, topic, err)
}
