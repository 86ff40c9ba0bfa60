package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
	"github.com/verbgate/verbgate/wire"
)

// watching is a running verbgate watch.
type watching struct {
	t    *testing.T
	cmd  *exec.Cmd
	seen chan seenEvent
	done chan error

	mu   sync.Mutex
	errs bytes.Buffer
	said chan struct{} // a line was added to errs
}

// seenEvent is a line that watch prints.
type seenEvent struct {
	Topic      string
	Cursor     uint64
	OccurredAt time.Time `json:"occurred_at"`
	Payload    struct {
		ID, Kind, Verb, Effect, Reason, Revision string
		Params                                   json.RawMessage
	}
	line string
}

// watch runs verbgate watch.
func watch(t *testing.T, args ...string) *watching {
	t.Helper()
	w := &watching{t: t, cmd: verbgateCommand(t, append([]string{"watch"}, args...)...), seen: make(chan seenEvent, 1000), done: make(chan error, 1), said: make(chan struct{}, 1)}
	stdout, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := w.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	var streams sync.WaitGroup
	streams.Go(func() { // ends with the process
		for in := bufio.NewScanner(stderr); in.Scan(); {
			w.mu.Lock()
			w.errs.Write(append(in.Bytes(), '\n'))
			w.mu.Unlock()
			select {
			case w.said <- struct{}{}:
			default:
			}
		}
	})
	streams.Go(func() { // ends with the process
		in := bufio.NewScanner(stdout)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			e := seenEvent{line: in.Text()}
			if err := json.Unmarshal(in.Bytes(), &e); err != nil {
				e.Topic = "not JSON: " + err.Error()
			}
			w.seen <- e
		}
	})
	go func() { // ends with the process
		streams.Wait()
		close(w.seen)
		w.done <- w.cmd.Wait()
	}()
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // an error means that it has ended
	return w
}

func (w *watching) stderr() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errs.String()
}

// awaitSaid waits until stderr holds the text n times.
func (w *watching) awaitSaid(text string, n int) {
	w.t.Helper()
	timeout := time.After(patience)
	for strings.Count(w.stderr(), text) < n {
		select {
		case <-w.said:
		case <-timeout:
			require.FailNow(w.t, "watch never said "+text, w.stderr())
		}
	}
}

// next is the next event.
func (w *watching) next() seenEvent {
	w.t.Helper()
	select {
	case e, open := <-w.seen:
		require.True(w.t, open, "watch ended: %s", w.stderr())
		return e
	case <-time.After(patience):
		require.FailNow(w.t, "no event comes", w.stderr())
		return seenEvent{}
	}
}

// until reads events up to the one whose params hold the text.
func (w *watching) until(params string) []seenEvent {
	w.t.Helper()
	for out := []seenEvent{}; ; {
		e := w.next()
		out = append(out, e)
		if strings.Contains(string(e.Payload.Params), params) {
			return out
		}
	}
}

// end waits for the process and returns its exit code.
func (w *watching) end() int {
	w.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case _, open := <-w.seen: // drained, so that nobody blocks
			if !open {
				w.seen = nil
			}
		case <-w.done:
			return w.cmd.ProcessState.ExitCode()
		case <-timeout:
			require.FailNow(w.t, "watch does not end")
		}
	}
}

func (w *watching) interrupt() {
	w.t.Helper()
	require.NoError(w.t, w.cmd.Process.Signal(syscall.SIGINT))
	require.Equal(w.t, exitOK, w.end(), w.stderr())
}

func (s *served) note(content string) {
	s.t.Helper()
	code, out, errs := s.ask(fmt.Sprintf("create(kind=\"note\", content=%q)", content))
	require.Equal(s.t, exitOK, code, out+errs)
}

// Events come live, one JSON line each, as the wire has them.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	s := startSocket(t, dir, socketPath(t))
	s.note("before")
	w := watch(t, "--server", s.url)
	w.awaitSaid("msg=following", 1)
	s.note("<first>")
	s.note("second")
	events := w.until("second")
	w.interrupt()
	s.stop()

	var notes []seenEvent
	for _, e := range events {
		require.Equal(t, defaultTopic, e.Topic)
		require.NotZero(t, e.Cursor)
		require.False(t, e.OccurredAt.IsZero())
		require.Regexp(t, `^\{"topic":"audit.decision","cursor":\d+,"occurred_at":"[^"]+Z","payload":\{.*\}\}$`, e.line)
		if e.Payload.Verb == "create" {
			notes = append(notes, e)
		}
	}
	require.Len(t, notes, 2, "no event from before, and none twice")
	require.NotContains(t, w.stderr(), "lost", "it was closed, and by watch itself")
	require.JSONEq(t, `{"kind": "note", "content": "<first>"}`, string(notes[0].Payload.Params))
	require.Greater(t, notes[1].Cursor, notes[0].Cursor)
	records := auditRecords(t, dir, audit.Filter{Verb: "create"})
	require.Equal(t, records[1].ID, notes[0].Payload.ID)
}

// After the server was killed and started again, watch goes on after the last event: all cursors, each
// once.
func TestWatchAcrossRestart(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	s := startSocket(t, dir, path)
	s.note("zero")
	w := watch(t, "--server", s.url, "--from", "0", "--log-level", "info")
	events := w.until("zero")
	for round := 1; round <= 3; round++ {
		for i := range 5 {
			s.note(fmt.Sprintf("live %d.%d", round, i))
		}
		if round == 2 { // once at the end of what it does, else in the middle
			s.stop()
		} else {
			require.NoError(t, s.cmd.Process.Kill())
			s.end()
		}
		w.awaitSaid("the connection was lost", round)
		w.awaitSaid("could not be taken up again yet", 1)
		// Written while nobody serves.
		cmd := verbgateCommand(t, "--data-dir", dir, "request", fmt.Sprintf(`create(kind="note", content="gap %d")`, round))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		s = startSocket(t, dir, path)
		w.awaitSaid("the subscription was taken up again", round)
		s.note(fmt.Sprintf("back %d", round))
		events = append(events, w.until(fmt.Sprintf("back %d", round))...)
	}
	w.interrupt()
	s.stop()

	var notes []string
	for i, e := range events {
		require.EqualValues(t, i+1, e.Cursor, "no gap and no repeat")
		if e.Payload.Verb == "create" {
			notes = append(notes, string(e.Payload.Params))
		}
	}
	require.Len(t, notes, 1+3*7)
	for i, r := range auditRecords(t, dir, audit.Filter{Verb: "create"}) {
		require.JSONEq(t, string(r.Params), notes[i])
	}
}

// One watch follows several topics, each from where it is told to.
func TestWatchTopics(t *testing.T) {
	s := startSocket(t, t.TempDir(), socketPath(t))
	for _, ops := range []string{`memory.remember(content="one")`, `memory.remember(content="two")`} {
		code, _, errs := s.ask(ops)
		require.Equal(t, exitOK, code, errs)
	}
	w := watch(t, "--server", s.url, "--topic", "memory.remembered", "--topic", "audit.decision", "--from", "memory.remembered=1", "--from", "audit.decision=0")
	last := map[string]uint64{"memory.remembered": 1}
	for last["memory.remembered"] < 2 || last["audit.decision"] < 4 { // two subscribes are decisions too
		e := w.next()
		require.Equal(t, last[e.Topic]+1, e.Cursor, e.line)
		last[e.Topic] = e.Cursor
	}
	w.interrupt()
	s.stop()
}

// The gate's own topics are for operators.
func TestWatchOperators(t *testing.T) {
	gate := t.TempDir()
	allow := func(more string) { writePolicy(t, gate, `{"decision": "allow"}`+more) }
	allow("")
	dir := t.TempDir()
	flags := []string{"--policy", gate}
	s := startSocket(t, dir, socketPath(t), flags...)
	w := watch(t, "--server", s.url, "--topic", "gate.activation", "--from", "0")
	require.Equal(t, exitFailed, w.end())
	require.Contains(t, w.stderr(), "gate.activation: subscription_denied: only operators follow the gate's own topics")
	s.stop()

	s = startSocket(t, dir, socketPath(t), append(flags, "--set", "operators="+login().String())...)
	w = watch(t, "--server", s.url, "--topic", "gate.activation", "--from", "0")
	require.EqualValues(t, 1, w.next().Cursor)
	require.EqualValues(t, 2, w.next().Cursor)
	allow(" # again")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	e := w.next()
	require.EqualValues(t, 3, e.Cursor)
	require.EqualValues(t, "gate_activation", e.Payload.Kind)
	w.interrupt()
	s.stop()
}

// A policy that no longer allows a subscription ends it.
func TestWatchRevoked(t *testing.T) {
	gate := t.TempDir()
	writePolicy(t, gate, `{"decision": "allow"}`)
	s := startSocket(t, t.TempDir(), socketPath(t), "--policy", gate)
	w := watch(t, "--server", s.url)
	w.awaitSaid("msg=following", 1)
	s.note("seen")
	w.until("seen")
	writePolicy(t, gate, `{"decision": "deny", "reason": "nobody follows"}  if { input.verb == "subscribe" } else := {"decision": "allow"}`)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	require.Equal(t, exitFailed, w.end(), w.stderr())
	require.Contains(t, w.stderr(), `error="subscription_revoked: permission denied for verb \"subscribe\": nobody follows"`)
	require.Contains(t, w.stderr(), "subscription_denied: permission denied for verb \"subscribe\": nobody follows")
	s.note("others do not notice")
	s.stop()
}

// Namespaces that the peer may not read are not shown, and their cursors are skipped.
func TestWatchNamespaces(t *testing.T) {
	gate := t.TempDir()
	writePolicy(t, gate, `{"decision": "allow"}`)
	s := startSocket(t, t.TempDir(), socketPath(t), "--policy", gate, "--set", "visible=team")
	for _, ns := range []string{"local", "other", "team"} {
		code, out, errs := s.ask(fmt.Sprintf(`create(kind="note", content="in %s", namespace=%q)`, ns, ns))
		require.Equal(t, exitOK, code, out+errs)
	}
	w := watch(t, "--server", s.url, "--from", "0")
	events := w.until("in team")
	require.Len(t, events, 2)
	require.EqualValues(t, 1, events[0].Cursor)
	require.EqualValues(t, 3, events[1].Cursor)
	w.interrupt()
	s.stop()
}

// What retention removed cannot be resumed from, and word of that comes with the way out.
func TestWatchExpired(t *testing.T) {
	dir, path := t.TempDir(), socketPath(t)
	s := startSocket(t, dir, path)
	for i := range 5 {
		s.note(fmt.Sprint(i))
	}
	s.stop()
	s = startSocket(t, dir, path, "--set", "audit.retention.rows=2")
	// In the whole log: the line may come before the one by which the server says that it serves.
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "removed old audit records and events") }, patience, 10*time.Millisecond)
	w := watch(t, "--server", s.url, "--from", "0")
	require.Equal(t, exitFailed, w.end())
	require.Contains(t, w.stderr(), "cursor_expired: events after cursor 0 are no longer retained; the earliest cursor to resume from is ")
	require.Contains(t, w.stderr(), "leave out --from for new events only")
	s.stop()
	require.Less(t, len(auditRecords(t, dir, audit.Filter{Kind: policy.KindDecision})), 5)
}

// What is wrong from the start ends it at once.
func TestWatchRefused(t *testing.T) {
	s := startSocket(t, t.TempDir(), socketPath(t))
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"ErrTopic", []string{"--server", s.url, "--topic", "audit.nothing"}, exitFailed, "audit.nothing: subscription_denied: there is no such topic"},
		{"ErrTopicLong", []string{"--server", s.url, "--topic", strings.Repeat("x", 257)}, exitFailed, "there is no such topic"},
		{"ErrTopicTwice", []string{"--topic", "a", "--topic", "a"}, exitBad, "--topic a is there twice"},
		{"ErrCursor", []string{"--from", "-1"}, exitBad, "--from -1: write a cursor"},
		{"ErrCursorOf", []string{"--from", "a=1"}, exitBad, "--from a=1: there is no --topic a"},
		{"ErrCursorTwice", []string{"--from", "1", "--from", "audit.decision=2"}, exitBad, "it is said already where audit.decision begins"},
		{"ErrServer", []string{"--server", "http://127.0.0.1:1"}, exitBad, "events come over the framed protocol"},
		{"ErrServerEmpty", []string{"--server", ""}, exitBad, "--server: it is empty"},
		{"ErrNobody", []string{"--server", s.url + "x"}, exitStart, "is the server running?"},
		{"ErrTLSFlags", []string{"--server", s.url, "--tls-ca", "x"}, exitBad, "are for a tls:// server"},
		{"ErrTLSNoCertificate", []string{"--server", "tls://127.0.0.1:1"}, exitBad, "name it with --tls-cert"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := watch(t, c.args...)
			require.Equal(t, c.code, w.end())
			require.Contains(t, w.stderr(), c.want)
		})
	}
	t.Run("OKAheadOfHead", func(t *testing.T) {
		w := watch(t, "--server", s.url, "--from", "1000000")
		w.awaitSaid("after=1000000", 1)
		w.interrupt()
	})
	s.stop()
}

// Without --server it is the socket of a server with the same configuration.
func TestWatchDefaultSocket(t *testing.T) {
	c := func(flags ...string) *config {
		cfg, err := cliWith(nil, flags...).configuration()
		require.NoError(t, err)
		return cfg
	}
	dir := t.TempDir()
	require.Equal(t, "unix://", c("--data-dir", dir).ownSocket())
	require.Equal(t, "unix:///a", c("--data-dir", dir, "--set", "listen=tls://h:1,unix:///a,unix:///b").ownSocket())
	for _, tt := range []struct{ name, runtime, want string }{
		{"OKRuntime", "/run/user/1", "/run/user/1/verbgate/verbgate.sock"},
		{"OKNone", "", dir + "/verbgate.sock"},
		{"OKRelativeIgnored", "run", dir + "/verbgate.sock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", tt.runtime)
			path, err := c("--data-dir", dir).socket(endpoint{scheme: schemeUnix})
			require.NoError(t, err)
			require.Equal(t, tt.want, path)
		})
	}
}

func TestWatchStarts(t *testing.T) {
	got, err := starts([]string{"a", "b"}, []string{"b=7"})
	require.NoError(t, err)
	require.Equal(t, map[string]wire.Cursor{"b": 7}, got)
	got, err = starts([]string{"a", "b"}, []string{"18446744073709551615"})
	require.NoError(t, err)
	require.Equal(t, map[string]wire.Cursor{"a": 1<<64 - 1, "b": 1<<64 - 1}, got)
}

// Whoever stops reading ends it, as with any program in a pipe.
func TestWatchClosedPipe(t *testing.T) {
	s := startSocket(t, t.TempDir(), socketPath(t))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := verbgateCommand(t, "watch", "--server", s.url)
	cmd.Stdout = w
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_, err = bufio.NewReader(stderr).ReadString('\n') // it follows
	require.NoError(t, err)
	require.NoError(t, r.Close())
	s.note("nobody reads")
	require.Error(t, cmd.Wait())
	s.stop()
}
