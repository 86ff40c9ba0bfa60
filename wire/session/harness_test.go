package session_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noLeak checks at the end of a test, after all its other cleanups, that nothing of it still runs.
func noLeak(tb testing.TB) {
	tb.Cleanup(func() { goleak.VerifyNone(tb) })
}

// handler answers by functions; those that are nil answer good-naturedly.
type handler struct {
	request   func(ctx context.Context, peer session.Peer, req session.Request, size, depth int) ([]byte, bool)
	context   func(namespace string, visible []string) error
	subscribe func(ctx context.Context, peer session.Peer, topic string, resume *uint64) ([]string, error)
}

func (h *handler) Request(ctx context.Context, peer session.Peer, req session.Request, size, depth int) ([]byte, bool) {
	if h.request != nil {
		return h.request(ctx, peer, req, size, depth)
	}
	text, err := json.Marshal(map[string]string{"echo": req.Ops})
	return text, err == nil
}

func (h *handler) ValidContext(namespace string, visible []string) error {
	if h.context != nil {
		return h.context(namespace, visible)
	}
	return nil
}

func (h *handler) Subscribe(ctx context.Context, peer session.Peer, topic string, resume *uint64) ([]string, error) {
	if h.subscribe != nil {
		return h.subscribe(ctx, peer, topic, resume)
	}
	return []string{"local"}, nil
}

// waits is a request function that lasts until its context ends.
func waits(ctx context.Context, _ session.Peer, _ session.Request, _, _ int) ([]byte, bool) {
	<-ctx.Done()
	return nil, false
}

// store is an event store in memory.
type store struct {
	mu      sync.Mutex
	topics  map[string][]session.Event
	floors  map[string]uint64
	cursor  uint64
	changed chan struct{}
	failing error
	readTo  uint64 // the highest cursor that was read
}

func newStore(topics ...string) *store {
	s := &store{topics: map[string][]session.Event{}, floors: map[string]uint64{}, changed: make(chan struct{})}
	for _, topic := range topics {
		s.topics[topic] = nil
	}
	return s
}

func (s *store) Bounds(_ context.Context, topic string) (floor, head uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, ok := s.topics[topic]
	if !ok {
		return 0, 0, session.ErrUnknownTopic
	}
	head = s.floors[topic]
	if len(events) > 0 {
		head = events[len(events)-1].Cursor
	}
	return s.floors[topic], head, s.failing
}

func (s *store) Read(_ context.Context, topic string, after uint64, limit int) ([]session.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []session.Event
	for _, e := range s.topics[topic] {
		if e.Cursor > after && len(page) < limit {
			page = append(page, e)
			s.readTo = max(s.readTo, e.Cursor)
		}
	}
	return page, s.failing
}

func (s *store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// add appends n events to a topic; cursors are not dense.
func (s *store) add(topic, namespace string, n int) (last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.cursor += 3
		s.topics[topic] = append(s.topics[topic], session.Event{
			Topic: topic, Cursor: s.cursor, OccurredAt: "2026-01-02T03:04:05Z", Namespace: namespace, Payload: []byte(`{"n":1}`),
		})
	}
	s.wake()
	return s.cursor
}

// addSized appends an event whose payload has that many bytes, at least 8.
func (s *store) addSized(topic string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor += 3
	s.topics[topic] = append(s.topics[topic], session.Event{
		Topic: topic, Cursor: s.cursor, OccurredAt: "2026-01-02T03:04:05Z", Namespace: "local",
		Payload: []byte(`{"x":"` + strings.Repeat("x", size-8) + `"}`),
	})
	s.wake()
}

// unread is how many bytes of payloads were read after the cursor.
func (s *store) unread(topic string, after uint64) (bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.topics[topic] {
		if e.Cursor > after && e.Cursor <= s.readTo {
			bytes += len(e.Payload)
		}
	}
	return bytes
}

// prune forgets the topic's events up to a cursor.
func (s *store) prune(topic string, upTo uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.topics[topic]) > 0 && s.topics[topic][0].Cursor <= upTo {
		s.floors[topic] = s.topics[topic][0].Cursor
		s.topics[topic] = s.topics[topic][1:]
	}
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
	s.wake()
}

func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

var alice = session.StaticIdentity{Kind: "user", ID: "alice"}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newServer(tb testing.TB, cfg session.Config) *session.Server {
	tb.Helper()
	if cfg.Handler == nil {
		cfg.Handler = &handler{}
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	s, err := session.New(cfg)
	require.NoError(tb, err)
	return s
}

// pipe serves one end of a pipe and returns a peer at the other. stop cuts the connection and waits.
func pipe(tb testing.TB, s *session.Server, id session.Identifier) (p *peer, stop func()) {
	tb.Helper()
	return carried(tb, s, session.Pipe, id)
}

// carried is pipe that passes for another carrier.
func carried(tb testing.TB, s *session.Server, carrier session.Carrier, id session.Identifier) (p *peer, stop func()) {
	tb.Helper()
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = s.ServeConn(ctx, far, carrier, id) })
	return &peer{tb: tb, conn: near}, func() {
		_ = near.Close()
		cancel()
		all.Wait()
	}
}

// connect is pipe with the handshake done, stopped at the end of the test.
func connect(tb testing.TB, s *session.Server) *peer {
	tb.Helper()
	p, stop := pipe(tb, s, alice)
	tb.Cleanup(stop)
	p.shake()
	return p
}

// serve serves a listener until the end of the test.
func serve(tb testing.TB, s *session.Server, l *session.Listener) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Serve(ctx, l); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("serve: %v", err)
		}
	})
	tb.Cleanup(func() { cancel(); all.Wait() })
}

// socketPath is a path short enough for a Unix socket, in a folder of its own.
func socketPath(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "vg")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "v.sock")
}

// onUnix serves on a Unix socket until the end of the test and returns its path.
func onUnix(tb testing.TB, s *session.Server) string {
	tb.Helper()
	path := socketPath(tb)
	l, err := session.ListenUnix(path, session.NewUnixIdentifier())
	require.NoError(tb, err)
	serve(tb, s, l)
	return path
}

// dialed is a peer on a Unix socket, with the handshake done.
func dialed(tb testing.TB, path string) *peer {
	tb.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	p := &peer{tb: tb, conn: conn}
	p.shake()
	return p
}

// peer is a client that says whatever it is told, byte by byte.
type peer struct {
	tb   testing.TB
	conn io.ReadWriteCloser
}

// send writes payloads as frames.
func (p *peer) send(payloads ...string) {
	p.tb.Helper()
	for _, payload := range payloads {
		p.raw(string(binary.BigEndian.AppendUint32(nil, uint32(len(payload)))) + payload)
	}
}

func (p *peer) raw(bytes string) {
	p.tb.Helper()
	_, err := io.WriteString(p.conn, bytes)
	require.NoError(p.tb, err)
}

func (p *peer) shake() {
	p.tb.Helper()
	p.send(`{"kind":"handshake","version":1}`)
	p.gets(`{"kind":"handshake_ack","version":1}`)
}

// next is the payload of the next frame.
func (p *peer) next() string {
	p.tb.Helper()
	payload, err := readPayload(p.conn)
	require.NoError(p.tb, err)
	return payload
}

func readPayload(r io.Reader) (string, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return "", err
	}
	payload := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	_, err := io.ReadFull(r, payload)
	return string(payload), err
}

// gets expects exactly these payloads.
func (p *peer) gets(payloads ...string) {
	p.tb.Helper()
	for _, payload := range payloads {
		require.Equal(p.tb, payload, p.next())
	}
}

// getsError expects an error frame, without an id when it is empty, whose message holds a text.
func (p *peer) getsError(id string, code wire.ErrorCode, message string) {
	p.tb.Helper()
	requireError(p.tb, p.next(), id, code, message)
}

func requireError(tb testing.TB, payload, id string, code wire.ErrorCode, message string) {
	tb.Helper()
	var f struct{ Kind, ID, Code, Message string }
	require.NoError(tb, json.Unmarshal([]byte(payload), &f), payload)
	require.Equal(tb, [3]string{"error", id, code.String()}, [3]string{f.Kind, f.ID, f.Code}, payload)
	require.Equal(tb, id != "", strings.Contains(payload, `"id":`), payload)
	require.Contains(tb, f.Message, message)
}

// closed expects the end of the connection, and nothing before it.
func (p *peer) closed() {
	p.tb.Helper()
	rest, err := io.ReadAll(p.conn)
	require.Empty(p.tb, string(rest))
	require.NoError(p.tb, err, "the connection is to end, not to break")
}

// lives expects that the connection answers.
func (p *peer) lives(id string) {
	p.tb.Helper()
	p.send(`{"kind":"request","id":"` + id + `","ops":"ping()"}`)
	p.gets(`{"kind":"response","id":"` + id + `","result":{"echo":"ping()"}}`)
}
