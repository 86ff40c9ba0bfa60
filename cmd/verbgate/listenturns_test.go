package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/wire/session"
)

type allowing struct{}

func (allowing) Decide(context.Context, *policy.Input) policy.Decision {
	return policy.Decision{Verdict: policy.Allow}
}

// A framed request waits for its turn, and not longer than its caller or its deadline do.
func TestFramedTurns(t *testing.T) {
	d, err := dispatcher.New(dispatcher.Config{Gate: allowing{}})
	require.NoError(t, err)
	require.NoError(t, d.Open(t.Context()))
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	cfg := &config{}
	cfg.Limits.RequestTimeout = time.Minute
	h := &handler{dispatcher: d, cfg: cfg, log: slog.New(slog.DiscardHandler), turns: make(chan struct{}, 1)}
	ask := func(ctx context.Context) string {
		text, ok := h.Request(ctx, session.Peer{}, session.Request{Ops: `nobody()`}, 1<<20, 100)
		require.True(t, ok)
		return string(text)
	}
	require.Contains(t, ask(t.Context()), "unknown_verb")

	h.turns <- struct{}{} // somebody's request runs
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Contains(t, ask(gone), `"code":"cancelled"`)
	cfg.Limits.RequestTimeout = time.Nanosecond
	require.Contains(t, ask(t.Context()), `"code":"deadline_exceeded"`)

	cfg.Limits.RequestTimeout = time.Minute
	answer := make(chan string, 1)
	go func() { answer <- ask(t.Context()) }()
	<-h.turns
	require.Contains(t, <-answer, "unknown_verb")
	require.Empty(t, h.turns, "the turn is given back")
}
