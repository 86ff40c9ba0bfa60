package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

func TestNew(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  session.Config
		want string
	}{
		"OK":              {session.Config{Handler: &handler{}, Logger: quiet()}, ""},
		"ErrHandler":      {session.Config{Logger: quiet()}, "needs a Handler"},
		"ErrLogger":       {session.Config{Handler: &handler{}}, "needs a Logger"},
		"ErrPayload":      {session.Config{Handler: &handler{}, Logger: quiet(), MaxPayload: 100}, "at least 8192 bytes"},
		"ErrNegative":     {session.Config{Handler: &handler{}, Logger: quiet(), Limits: session.Limits{Queue: -1}}, "negative"},
		"ErrNegativeTime": {session.Config{Handler: &handler{}, Logger: quiet(), Limits: session.Limits{Frame: -1}}, "negative"},
		"ErrQueue":        {session.Config{Handler: &handler{}, Logger: quiet(), Limits: session.Limits{Queue: 100}}, "a queue of at least 128"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.New(c.cfg)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A peer that breaks the protocol gets exactly one frame and the end of its connection, and another
// connection of the same server does not notice.
func TestServerBreaches(t *testing.T) {
	const hello = "\x00\x00\x00\x20" + `{"kind":"handshake","version":1}`
	frame := func(payload string) string {
		return string([]byte{0, 0, byte(len(payload) >> 8), byte(len(payload))}) + payload
	}
	long := strings.Repeat("i", 257)
	for name, c := range map[string]struct {
		bytes   string
		acked   bool
		code    wire.ErrorCode
		message string
	}{
		"ErrHugeLength":         {"\xff\xff\xff\xff", false, wire.FrameTooLarge, "frame_too_large: a payload of 4294967295 bytes, where at most 8388608 are taken"},
		"ErrHugeLengthLater":    {hello + "\xff\xff\xff\xff", true, wire.FrameTooLarge, "frame_too_large"},
		"ErrOneOverBound":       {hello + "\x00\x80\x00\x01", true, wire.FrameTooLarge, "8388609"},
		"ErrEmptyPayload":       {hello + "\x00\x00\x00\x00", true, wire.MalformedFrame, "invalid_json"},
		"ErrRequestFirst":       {frame(`{"kind":"request","id":"1","ops":""}`), false, wire.MalformedFrame, "the first frame must be a handshake, not request"},
		"ErrVersion":            {frame(`{"kind":"handshake","version":7}`), false, wire.UnsupportedVersion, "unsupported protocol version 7; server supports [1, 1]"},
		"ErrVersionZero":        {frame(`{"kind":"handshake","version":0}`), false, wire.UnsupportedVersion, "version 0"},
		"ErrSecondHandshake":    {hello + hello, true, wire.MalformedFrame, "a second one is not allowed"},
		"ErrHandshakeLater":     {hello + frame(`{"kind":"cancel","id":"1"}`) + hello, true, wire.MalformedFrame, "a second one is not allowed"},
		"ErrServerKind":         {hello + frame(`{"kind":"response","id":"1","result":1}`), true, wire.MalformedFrame, "a client does not send response"},
		"ErrNotJSON":            {"\x00\x00\x00\x03GET", false, wire.MalformedFrame, "invalid_json"},
		"ErrHTTP":               {"GET / HTTP/1.1\r\n\r\n", false, wire.FrameTooLarge, "frame_too_large"},
		"ErrUnknownKind":        {hello + frame(`{"kind":"nonsense"}`), true, wire.MalformedFrame, "unknown_frame_kind"},
		"ErrUnknownMember":      {hello + frame(`{"kind":"request","id":"1","ops":"","plan":true}`), true, wire.MalformedFrame, "invalid_fields"},
		"ErrLoneSurrogate":      {hello + frame(`{"kind":"request","id":"1","ops":"\ud800"}`), true, wire.MalformedFrame, "invalid_json"},
		"ErrBadUTF8":            {hello + frame("{\"kind\":\"request\",\"id\":\"1\",\"ops\":\"\xff\"}"), true, wire.MalformedFrame, "invalid_json"},
		"ErrEmptyID":            {hello + frame(`{"kind":"request","id":"","ops":""}`), true, wire.MalformedFrame, "must not be empty"},
		"ErrLongID":             {hello + frame(`{"kind":"request","id":"`+long+`","ops":""}`), true, wire.MalformedFrame, "an id of 257 bytes"},
		"ErrLongCancelID":       {hello + frame(`{"kind":"cancel","id":"`+long+`"}`), true, wire.MalformedFrame, "an id of 257 bytes"},
		"ErrLongSubscribeID":    {hello + frame(`{"kind":"subscribe","id":"`+long+`","topic":"t"}`), true, wire.MalformedFrame, "an id of 257 bytes"},
		"ErrTooDeepPayload":     {hello + frame(`{"kind":"request","id":"1","ops":"","x":`+strings.Repeat("[", 127)+strings.Repeat("]", 127)+`}`), true, wire.MalformedFrame, "invalid_json"},
		"ErrFrameAfterGarbage":  {hello + "\x00\x00\x00\x01{" + frame(`{"kind":"request","id":"1","ops":""}`), true, wire.MalformedFrame, "invalid_json"},
		"ErrGarbageWithALotToo": {hello + "\x00\x00\x00\x01{" + strings.Repeat("x", 100_000), true, wire.MalformedFrame, "invalid_json"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			path := onUnix(t, newServer(t, session.Config{}))
			other := dialed(t, path)
			bad := &peer{tb: t, conn: dialRaw(t, path)}
			bad.raw(c.bytes)
			if c.acked {
				bad.gets(`{"kind":"handshake_ack","version":1}`)
			}
			bad.getsError("", c.code, c.message)
			bad.closed()
			other.lives("1")
		})
	}
}

// Truncation is told to a peer that only stopped writing; an end between frames is a normal close.
func TestServerEnds(t *testing.T) {
	for name, c := range map[string]struct {
		bytes   string
		message string
	}{
		"OK":              {"", ""},
		"ErrInsidePrefix": {"\x00\x00", "truncated_length_prefix: 2 of the 4 bytes"},
		"ErrAfterPrefix":  {"\x00\x00\x00\x20", "truncated_payload: 0 of the 32 bytes"},
		"ErrInsideBody":   {"\x00\x00\x00\x20{\"kind\"", "truncated_payload: 7 of the 32 bytes"},
		"ErrInsideLarge":  {"\x00\x40\x00\x00{\"kind\"", "truncated_payload: 7 of the 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			path := onUnix(t, newServer(t, session.Config{}))
			other, p := dialed(t, path), dialed(t, path)
			p.raw(c.bytes)
			require.NoError(t, p.conn.(interface{ CloseWrite() error }).CloseWrite())
			if c.message != "" {
				p.getsError("", wire.MalformedFrame, c.message)
			}
			p.closed()
			other.lives("1")
		})
	}
}

func TestServerRequest(t *testing.T) {
	noLeak(t)
	type seen struct {
		peer  session.Peer
		req   session.Request
		size  int
		depth int
	}
	got := make(chan seen, 1)
	h := &handler{
		request: func(_ context.Context, peer session.Peer, req session.Request, size, depth int) ([]byte, bool) {
			got <- seen{peer, req, size, depth}
			return []byte(` {"ok":true} `), true
		},
		context: func(namespace string, visible []string) error {
			if namespace == "bad ns" {
				return &session.Rejection{Message: "namespace \"bad ns\" is not valid"}
			}
			if len(visible) > 2 {
				return errors.New("inside knowledge")
			}
			return nil
		},
	}
	identity := session.StaticIdentity{Kind: "user", ID: "alice", Namespace: "home", Visible: []string{"home"}}
	open := func(t *testing.T, cfg session.Config, carrier session.Carrier, id session.StaticIdentity) *peer {
		cfg.Handler = h
		p, stop := carried(t, newServer(t, cfg), carrier, id)
		t.Cleanup(stop)
		p.shake()
		return p
	}
	for name, c := range map[string]struct {
		members string
		cfg     session.Config
		want    session.Identity
		refused string
		carrier session.Carrier
	}{
		"OKPlain":                {"", session.Config{}, session.Identity(identity), "", ""},
		"OKNamespace":            {`,"namespace":"n"`, session.Config{}, session.Identity{Kind: "user", ID: "alice", Namespace: "n", Visible: []string{"home"}}, "", ""},
		"OKVisible":              {`,"visible_namespaces":["a","b"]`, session.Config{}, session.Identity{Kind: "user", ID: "alice", Namespace: "home", Visible: []string{"a", "b"}}, "", ""},
		"OKVisibleNone":          {`,"visible_namespaces":[]`, session.Config{}, session.Identity{Kind: "user", ID: "alice", Namespace: "home", Visible: []string{}}, "", ""},
		"OKActor":                {`,"actor_id":"root"`, session.Config{}, session.Identity{Kind: "user", ID: "alice", AssertedID: "root", Namespace: "home", Visible: []string{"home"}}, "", ""},
		"OKActorTrusted":         {`,"actor_id":"root"`, session.Config{TrustActorID: true}, session.Identity{Kind: "asserted", ID: "root", Namespace: "home", Visible: []string{"home"}}, "", ""},
		"OKActorTrustedNotOnTCP": {`,"actor_id":"root"`, session.Config{TrustActorID: true}, session.Identity{Kind: "user", ID: "alice", AssertedID: "root", Namespace: "home", Visible: []string{"home"}}, "", session.TCP},
		"ErrNamespace":           {`,"namespace":"bad ns"`, session.Config{}, session.Identity{}, `namespace "bad ns" is not valid`, ""},
		"ErrNamespaceEmpty":      {`,"namespace":""`, session.Config{}, session.Identity{}, "namespace must not be empty", ""},
		"ErrVisible":             {`,"visible_namespaces":["a","b","c"]`, session.Config{}, session.Identity{}, "the request's namespaces are not valid", ""},
		"ErrActorEmpty":          {`,"actor_id":""`, session.Config{}, session.Identity{}, "actor_id must be", ""},
		"ErrActorLong":           {`,"actor_id":"` + strings.Repeat("a", 257) + `"`, session.Config{TrustActorID: true}, session.Identity{}, "actor_id must be", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.carrier == "" {
				c.carrier = session.Unix
			}
			p := open(t, c.cfg, c.carrier, identity)
			p.send(`{"kind":"request","id":"r1","ops":"stats()"` + c.members + `}`)
			if c.refused != "" {
				p.getsError("r1", wire.ContextRejected, c.refused)
				require.Empty(t, got)
				return
			}
			p.gets(`{"kind":"response","id":"r1","result":{"ok":true}}`)
			s := <-got
			require.Equal(t, c.want, s.peer.Identity)
			require.Equal(t, c.carrier, s.peer.Carrier)
			require.NotEmpty(t, s.peer.SessionID)
			require.Equal(t, session.Request{
				ID: "r1", Ops: "stats()", ActorID: s.req.ActorID, Namespace: c.want.Namespace, Visible: c.want.Visible,
			}, s.req)
			require.Equal(t, 126, s.depth)
			require.Equal(t, wire.DefaultMaxPayload-len(`{"kind":"response","id":"r1","result":}`), s.size)
		})
	}
	for _, member := range []string{`"namespace":"home"`, `"actor_id":"a"`, `"visible_namespaces":[]`} {
		t.Run("ErrFixed "+member, func(t *testing.T) {
			fixed := identity
			fixed.Fixed = true
			p := open(t, session.Config{TrustActorID: true}, session.Unix, fixed)
			p.send(`{"kind":"request","id":"r1","ops":"stats()",` + member + `}`)
			p.getsError("r1", wire.ContextRejected, "certificate says who you are")
			require.Empty(t, got)
		})
	}
}

func TestServerAnswers(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		answer func(size, depth int) ([]byte, bool)
		fails  bool
	}{
		"OKDeepest": {func(int, int) ([]byte, bool) { return []byte(deep(126)), true }, false},
		"OKLargest": {func(size, _ int) ([]byte, bool) { return []byte(`"` + strings.Repeat("x", size-2) + `"`), true }, false},
		"ErrNotOK":  {func(int, int) ([]byte, bool) { return []byte("1"), false }, true},
		"ErrPanic":  {func(int, int) ([]byte, bool) { panic("secret") }, true},
		"ErrJSON":   {func(int, int) ([]byte, bool) { return []byte("{"), true }, true},
		"ErrNil":    {func(int, int) ([]byte, bool) { return nil, true }, true},
		"ErrDeep":   {func(int, int) ([]byte, bool) { return []byte(deep(127)), true }, true},
		"ErrDeeper": {func(int, int) ([]byte, bool) { return []byte(deep(128)), true }, true},
		"ErrLarge":  {func(size, _ int) ([]byte, bool) { return []byte(`"` + strings.Repeat("x", size-1) + `"`), true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			h := &handler{}
			h.request = func(_ context.Context, _ session.Peer, req session.Request, size, depth int) ([]byte, bool) {
				if req.Ops == "" {
					return c.answer(size, depth)
				}
				return []byte("2"), true
			}
			s := newServer(t, session.Config{Handler: h, MaxPayload: 8192})
			p, other := connect(t, s), connect(t, s)
			asks := func(p *peer, id string) {
				p.send(`{"kind":"request","id":"` + id + `","ops":"two"}`)
				p.gets(`{"kind":"response","id":"` + id + `","result":2}`)
			}
			asks(other, "before")
			p.send(`{"kind":"request","id":"a","ops":""}`)
			answer := p.next()
			require.LessOrEqual(t, len(answer), 8192)
			if c.fails {
				requireError(t, answer, "a", wire.Internal, "the ")
				require.NotContains(t, answer, "secret")
			} else {
				require.Contains(t, answer, `{"kind":"response","id":"a","result":`)
			}
			asks(p, "b")
			asks(other, "after")
		})
	}
}

func TestServerIDs(t *testing.T) {
	noLeak(t)
	s := newServer(t, session.Config{Limits: session.Limits{Remembered: 3}, Handler: &handler{request: func(ctx context.Context, p session.Peer, r session.Request, a, b int) ([]byte, bool) {
		if r.Ops == "wait" {
			return waits(ctx, p, r, a, b)
		}
		return []byte("1"), true
	}}})
	ask := func(p *peer, id string) {
		p.send(`{"kind":"request","id":"` + id + `","ops":""}`)
	}
	t.Run("OKForgotten", func(t *testing.T) {
		p := connect(t, s)
		for i := range 10 {
			id := fmt.Sprint(i % 4) // the fourth to last is forgotten
			ask(p, id)
			p.gets(`{"kind":"response","id":"` + id + `","result":1}`)
		}
		p.send(`{"kind":"request","id":"` + strings.Repeat("i", 256) + `","ops":""}`)
		require.Contains(t, p.next(), "response")
	})
	t.Run("ErrRemembered", func(t *testing.T) {
		p := connect(t, s)
		for _, id := range []string{"0", "1", "2"} {
			ask(p, id)
			p.next()
		}
		ask(p, "0")
		p.getsError("", wire.MalformedFrame, "was used again")
		p.closed()
	})
	t.Run("ErrLive", func(t *testing.T) {
		p := connect(t, s)
		p.send(`{"kind":"request","id":"a","ops":"wait"}`)
		p.send(`{"kind":"unsubscribe","id":"a","topic":"t"}`)
		p.getsError("", wire.MalformedFrame, "was used again")
		p.closed()
	})
	t.Run("ErrRefusedIsUsed", func(t *testing.T) {
		p := connect(t, s)
		p.send(`{"kind":"request","id":"a","ops":"","namespace":""}`)
		p.getsError("a", wire.ContextRejected, "")
		ask(p, "a")
		p.getsError("", wire.MalformedFrame, "was used again")
		p.closed()
	})
}

func TestServerInFlight(t *testing.T) {
	noLeak(t)
	release := make(chan struct{})
	s := newServer(t, session.Config{
		Events: newStore("t"),
		Handler: &handler{
			request: func(ctx context.Context, _ session.Peer, _ session.Request, _, _ int) ([]byte, bool) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return []byte("1"), true
			},
			subscribe: func(ctx context.Context, _ session.Peer, _ string, _ *uint64) ([]string, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		},
	})
	p, other := connect(t, s), connect(t, s)
	for i := range 63 {
		p.send(fmt.Sprintf(`{"kind":"request","id":"%d","ops":""}`, i))
	}
	p.send(`{"kind":"subscribe","id":"s","topic":"t"}`) // counts, and the gate takes its time
	for i, kind := range []string{`"request","ops":""`, `"subscribe","topic":"u"`, `"unsubscribe","topic":"u"`} {
		id := fmt.Sprintf("over%d", i)
		p.send(`{"id":"` + id + `","kind":` + kind + `}`)
		p.getsError(id, wire.InFlightLimitExceeded, "64 operations are in flight")
	}
	p.send(`{"kind":"cancel","id":"s"}`)
	p.getsError("s", wire.Cancelled, "")
	p.send(`{"kind":"unsubscribe","id":"again","topic":"u"}`) // a place is free
	p.gets(`{"kind":"unsubscribe_ack","id":"again","topic":"u"}`)
	close(release)
	for range 63 {
		require.Contains(t, p.next(), `"response"`)
	}
	other.answers()
	require.Zero(t, s.Stats().Refused)
}

// answers expects an answer of whatever content.
func (p *peer) answers() {
	p.tb.Helper()
	p.send(`{"kind":"request","id":"lives","ops":""}`)
	require.Contains(p.tb, p.next(), `{"kind":"response","id":"lives"`)
}
