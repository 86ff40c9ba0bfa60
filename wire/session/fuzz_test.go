package session_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/verbgate/verbgate/wire"
	"github.com/verbgate/verbgate/wire/session"
)

// script is what FuzzServer makes frames of: each byte of the input is one of them.
var script = []string{
	`{"kind":"request","id":"a","ops":"x"}`, `{"kind":"request","id":"b","ops":"wait"}`,
	`{"kind":"request","id":"c","ops":"wait","deadline_ms":0}`, `{"kind":"request","id":"d","ops":"wait","deadline_ms":1}`,
	`{"kind":"request","id":"e","ops":"panic"}`, `{"kind":"request","id":"f","ops":"x","namespace":""}`,
	`{"kind":"cancel","id":"a"}`, `{"kind":"cancel","id":"b"}`, `{"kind":"cancel","id":"g"}`, `{"kind":"cancel","id":"unknown"}`,
	`{"kind":"subscribe","id":"g","topic":"t"}`, `{"kind":"subscribe","id":"h","topic":"t","resume_cursor":0}`,
	`{"kind":"subscribe","id":"i","topic":"u","resume_cursor":99}`, `{"kind":"subscribe","id":"j","topic":"none"}`,
	`{"kind":"unsubscribe","id":"k","topic":"t"}`, `{"kind":"unsubscribe","id":"l","topic":"u"}`,
	`{"kind":"request","id":"m","ops":"append"}`, `{"kind":"request","id":"n","ops":"recheck"}`,
	`{"kind":"handshake","version":1}`, `{"kind":"response","id":"a","result":1}`, `{"kind":"nonsense"}`, `{`, ``,
	`{"kind":"request","id":"o","ops":"append"}`, `{"kind":"unsubscribe","id":"p","topic":"t"}`,
}

// FuzzServer sends a server raw bytes, or after a handshake frames out of the script and then the raw
// bytes. Whatever they are, it does not panic, ends the connection, gives each id at most one terminal
// frame, sends nothing that is no frame, and leaves nothing running.
func FuzzServer(f *testing.F) {
	f.Add([]byte(nil), []byte(hello), false)
	f.Add([]byte{0, 1, 7, 2, 3, 4, 5, 6, 8, 9}, []byte(nil), true)
	f.Add([]byte{10, 16, 11, 14, 12, 23, 15, 17, 24}, []byte("\xff\xff\xff\xff"), true)
	f.Add([]byte{11, 16, 17, 23, 13}, []byte("\x00\x00\x00\x05{"), true)
	for i := range script {
		f.Add([]byte{byte(i)}, []byte{0, 0}, true)
	}
	f.Add([]byte{1, 10, 18}, []byte("\x00\x00\x00\x03GET"), true)
	f.Fuzz(func(t *testing.T, frames, raw []byte, shake bool) {
		ignore := goleak.IgnoreCurrent()
		st := newStore("t", "u")
		st.add("t", "local", 3)
		var s *session.Server
		s = newServer(t, session.Config{
			Events: st,
			Limits: session.Limits{Linger: 10 * time.Millisecond, InFlight: 4, Queue: 8, EventQueue: 4, Remembered: 64},
			Handler: &handler{request: func(ctx context.Context, p session.Peer, r session.Request, _, _ int) ([]byte, bool) {
				switch r.Ops {
				case "wait":
					return waits(ctx, p, r, 0, 0)
				case "panic":
					panic("fuzz")
				case "append":
					st.add("t", "local", 2)
				case "recheck":
					s.Recheck()
				}
				return []byte("1"), true
			}},
		})
		near, far := net.Pipe()
		var all sync.WaitGroup
		all.Go(func() { _ = s.ServeConn(context.Background(), far, session.Pipe, alice) })
		all.Go(func() {
			defer near.Close()
			_, _ = near.Write(input(frames, raw, shake))
		})
		requireFrames(t, near)
		all.Wait()
		require.Zero(t, s.Stats().Open+s.Stats().Working)
		require.NoError(t, goleak.Find(ignore))
	})
}

func input(frames, raw []byte, shake bool) (bytes []byte) {
	if shake {
		bytes = append(bytes, hello...)
	}
	for _, b := range frames[:min(len(frames), 200)] {
		payload := script[int(b)%len(script)]
		bytes = append(binary.BigEndian.AppendUint32(bytes, uint32(len(payload))), payload...)
	}
	return append(bytes, raw...)
}

// requireFrames reads what the server sends to its end.
func requireFrames(t *testing.T, r io.Reader) {
	codec, err := wire.NewCodec(wire.Config{Strict: true})
	require.NoError(t, err)
	ended, cursor := map[wire.OperationID]bool{}, wire.Cursor(0)
	end := func(id wire.OperationID) {
		require.False(t, ended[id], "two terminal frames for %q", id)
		ended[id] = true
	}
	for {
		payload, err := readPayload(r)
		if err != nil {
			return
		}
		f, err := codec.DecodePayload([]byte(payload))
		require.NoError(t, err, payload)
		switch f := f.(type) {
		case wire.HandshakeAck:
		case wire.Response:
			end(f.ID)
		case wire.SubscribeAck:
			end(f.ID)
			cursor = f.StartCursor
		case wire.UnsubscribeAck:
			end(f.ID)
		case wire.ErrorFrame:
			if id, ok := f.ID.Get(); ok {
				end(id)
			}
		case wire.Event:
			require.Greater(t, f.Cursor, cursor)
			cursor = f.Cursor
		default:
			require.Fail(t, "a server does not send this", payload)
		}
	}
}
