package wire_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func id(s string) wire.Optional[wire.OperationID] { return wire.Some(wire.OperationID(s)) }

func TestEncode(t *testing.T) {
	controls := ""
	for c := range rune(0x20) {
		controls += string(c)
	}
	for _, c := range []struct {
		name  string
		frame wire.Frame
		want  string
	}{
		{"OK controls", wire.Cancel{ID: wire.OperationID(controls)}, `{"kind":"cancel","id":"` +
			`\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f` +
			`\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"}`},
		{"OK what stays raw", wire.Cancel{ID: "/<>&'\x7f\u0080\u2028\u2029\ufeff😀"}, "{\"kind\":\"cancel\",\"id\":\"/<>&'\x7f\u0080\u2028\u2029\ufeff😀\"}"},
		{"OK quote and backslash", wire.Cancel{ID: `"\`}, `{"kind":"cancel","id":"\"\\"}`},
		{"OK white space around opaque text", wire.Response{ID: "i", Result: raw(" \r\n[ 1 ]\t")}, `{"kind":"response","id":"i","result":[ 1 ]}`},
		{"OK an empty list", wire.Request{ID: "i", VisibleNamespaces: wire.Some(wire.StringList{})}, `{"kind":"request","id":"i","ops":"","visible_namespaces":[]}`},
		{"OK present and empty", wire.Request{ID: "i", DeadlineMS: wire.Some(uint64(0)), Namespace: wire.Some(""), ActorID: wire.Some("")},
			`{"kind":"request","id":"i","ops":"","deadline_ms":0,"namespace":"","actor_id":""}`},
		{"OK version 0", wire.Handshake{}, `{"kind":"handshake","version":0}`},
		{"OK an event", wire.Event{Payload: raw("7")}, `{"kind":"event","topic":"","cursor":0,"occurred_at":"","payload":7}`},
		{"OK 127 deep", wire.Response{ID: "i", Result: raw(nested(126))}, `{"kind":"response","id":"i","result":` + nested(126) + `}`},
		{"OK a long text", wire.Request{ID: "i", Ops: strings.Repeat("\x01", 5000)}, `{"kind":"request","id":"i","ops":"` + strings.Repeat(`\u0001`, 5000) + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := newCodec(t, wire.Config{}).Encode(c.frame)
			require.NoError(t, err)
			require.Equal(t, string(prefixed(c.want)), string(b))
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		frame   wire.Frame
		message string
		strict  bool // refused in the strict profile only
	}{
		{"Err nil", nil, "invalid_fields: not one of the eleven frames, by value", false},
		{"Err a pointer", &wire.Cancel{ID: "i"}, "invalid_fields: not one of the eleven frames, by value", false},
		{"Err a nil pointer", (*wire.Cancel)(nil), "invalid_fields: not one of the eleven frames, by value", false},
		{"Err an embedded frame", struct{ wire.Cancel }{wire.Cancel{ID: "i"}}, "invalid_fields: not one of the eleven frames, by value", false},
		{"Err an empty id", wire.Unsubscribe{Topic: "t"}, `invalid_fields: unsubscribe: member "id" must not be empty`, false},
		{"Err an id that is not UTF-8", wire.Cancel{ID: "\xff"}, `invalid_fields: cancel: member "id" is not UTF-8`, false},
		{"Err half a surrogate", wire.Cancel{ID: "\xed\xa0\x80"}, `invalid_fields: cancel: member "id" is not UTF-8`, false},
		{"Err ops that are not UTF-8", wire.Request{ID: "i", Ops: "a\xc3"}, `invalid_fields: request: member "ops" is not UTF-8`, false},
		{"Err a namespace that is not UTF-8", wire.Request{ID: "i", Namespace: wire.Some("\xff")}, `invalid_fields: request: member "namespace" is not UTF-8`, false},
		{"Err an actor that is not UTF-8", wire.Request{ID: "i", ActorID: wire.Some("\xff")}, `invalid_fields: request: member "actor_id" is not UTF-8`, false},
		{"Err an element that is not UTF-8", wire.Request{ID: "i", VisibleNamespaces: wire.Some(wire.NewStringList("a", "\xff"))}, `invalid_fields: request: member "visible_namespaces" holds text that is not UTF-8`, false},
		{"Err elements that are UTF-8 together only", wire.Request{ID: "i", VisibleNamespaces: wire.Some(wire.NewStringList("\xc3", "\xa9"))}, `invalid_fields: request: member "visible_namespaces" holds text that is not UTF-8`, false},
		{"Err a message that is not UTF-8", wire.ErrorFrame{Code: wire.MalformedFrame, Message: "\xff"}, `invalid_fields: error: member "message" is not UTF-8`, false},
		{"Err no result", wire.Response{ID: "i"}, `invalid_fields: response: member "result" is missing; it is JSON text`, false},
		{"Err a blank result", wire.Response{ID: "i", Result: raw(" \n")}, `invalid_fields: response: member "result" is missing; it is JSON text`, false},
		{"Err a result that is not JSON", wire.Response{ID: "i", Result: raw("{")}, `invalid_json: response.result, byte 1: a member's name is missing`, false},
		{"Err a null byte for a result", wire.Response{ID: "i", Result: raw("\x00")}, `invalid_json: response.result, byte 0: no value begins like this`, false},
		{"Err a result and more", wire.Response{ID: "i", Result: raw(`1,"id":"j"`)}, `invalid_json: response.result, byte 1: something follows the value`, false},
		{"Err a result that is not UTF-8", wire.Response{ID: "i", Result: raw("\"\xff\"")}, `invalid_json: response.result, byte 1: not UTF-8`, false},
		{"Err a number too large", wire.Event{Payload: raw("1e400")}, `invalid_json: event.payload, byte 0: a number is beyond the range of a double`, false},
		{"Err 128 deep", wire.Response{ID: "i", Result: raw(nested(127))}, `invalid_json: response.result, byte 126: nested more than 127 deep`, false},
		{"Err a fallback", wire.ErrorFrame{ID: id("i"), Code: wire.Internal, UnrecognizedCode: wire.Some("new")}, `fallback_frame_not_encodable: code "new" is not one of this version; forward the bytes it came in`, false},
		{"Err a fallback beats an empty id", wire.ErrorFrame{ID: id(""), Code: wire.MalformedFrame, UnrecognizedCode: wire.Some("new")}, `fallback_frame_not_encodable: code "new" is not one of this version; forward the bytes it came in`, false},
		{"Err an empty id beats the scope", wire.ErrorFrame{ID: id(""), Code: wire.MalformedFrame}, `invalid_fields: error: member "id" must not be empty`, false},
		{"Err no code", wire.ErrorFrame{}, `invalid_fields: error: member "code" is not a code of this version`, false},
		{"Err a code past the last", wire.ErrorFrame{ID: id("i"), Code: 200}, `invalid_fields: error: member "code" is not a code of this version`, false},
		{"Err an id where the connection ends", wire.ErrorFrame{ID: id("i"), Code: wire.FrameTooLarge}, `inconsistent_error_scope: code frame_too_large ends the connection and must come without an id`, false},
		{"Err the scope beats the message", wire.ErrorFrame{Code: wire.Internal, Message: "\xff"}, `inconsistent_error_scope: code internal ends an operation and must name it with an id`, false},
		{"Err version 0", wire.Handshake{}, `invalid_fields: handshake: member "version" must be 1 or more`, true},
		{"Err version 0 in an ack", wire.HandshakeAck{}, `invalid_fields: handshake_ack: member "version" must be 1 or more`, true},
		{"Err a payload that is no object", wire.Event{Payload: raw(" [1]")}, `invalid_fields: event: member "payload" must be an object`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			strict := newCodec(t, wire.Config{Strict: true})
			b, err := strict.Encode(c.frame)
			require.Nil(t, b)
			require.EqualError(t, fault(t, err), c.message)
			b, err = newCodec(t, wire.Config{}).Encode(c.frame)
			if c.strict {
				require.NoError(t, err)
				return
			}
			require.Nil(t, b)
			require.EqualError(t, fault(t, err), c.message)
		})
	}
}

// Every code encodes with the id its scope wants, and only so.
func TestEncodeHoldsCodesToTheirScope(t *testing.T) {
	codec := newCodec(t, wire.Config{Strict: true})
	ends := map[wire.Scope]int{}
	for code := wire.UnsupportedVersion; code <= wire.Internal; code++ {
		_, without := codec.Encode(wire.ErrorFrame{Code: code})
		_, with := codec.Encode(wire.ErrorFrame{ID: id("i"), Code: code})
		require.Equal(t, code.Scope() == wire.ConnectionTerminal, without == nil, code)
		require.Equal(t, code.Scope() == wire.RequestTerminal, with == nil, code)
		parsed, ok := wire.ParseErrorCode(code.String())
		require.True(t, ok)
		require.Equal(t, code, parsed)
		ends[code.Scope()]++
	}
	require.Equal(t, map[wire.Scope]int{wire.ConnectionTerminal: 6, wire.RequestTerminal: 10}, ends)
	require.Equal(t, "none", wire.ErrorCode(0).String())
	require.Equal(t, "none", wire.ErrorCode(99).String())
	require.Equal(t, wire.ConnectionTerminal, wire.ErrorCode(99).Scope())
	_, ok := wire.ParseErrorCode("none")
	require.False(t, ok)
}

func TestEncodeBound(t *testing.T) {
	f := wire.Cancel{ID: "op-1"}
	for limit, ok := range map[int]bool{28: false, 29: true, 0: false} {
		b, err := newCodec(t, wire.Config{MaxPayload: wire.Some(limit)}).Encode(f)
		if ok {
			require.NoError(t, err)
			continue
		}
		require.Nil(t, b)
		require.Equal(t, &wire.CodecError{Fault: wire.PayloadTooLarge, Declared: 29, Max: limit}, err)
	}
	// The bound comes first, then what a prefix can hold.
	if strconv.IntSize == 32 {
		t.Skip("no bound above what a prefix can hold on this machine")
	}
	limit := int64(1 << 33)
	large := newCodec(t, wire.Config{MaxPayload: wire.Some(int(limit))})
	require.NoError(t, wire.CheckSize(large, 1<<32-1))
	err := wire.CheckSize(large, 1<<32)
	require.Equal(t, &wire.CodecError{Fault: wire.PrefixLimitExceeded, Declared: 1 << 32}, err)
	require.EqualError(t, err, "prefix_limit_exceeded: a payload of 4294967296 bytes, where the prefix holds at most 4294967295")
	require.Equal(t, wire.FrameTooLarge, fault(t, err).WireCode())
	require.Equal(t, wire.PayloadTooLarge, fault(t, wire.CheckSize(large, 1<<34)).Fault)
}

func TestAppendEncode(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	one, err := codec.Encode(wire.Cancel{ID: "a"})
	require.NoError(t, err)
	two, err := codec.Encode(wire.Handshake{Version: 1})
	require.NoError(t, err)

	b, err := codec.AppendEncode(nil, wire.Cancel{ID: "a"})
	require.NoError(t, err)
	b, err = codec.AppendEncode(b, wire.Handshake{Version: 1})
	require.NoError(t, err)
	require.Equal(t, string(one)+string(two), string(b))

	for _, bad := range []wire.Frame{wire.Cancel{}, wire.Response{ID: "a", Result: raw("[")}, nil} {
		after, err := codec.AppendEncode(b, bad)
		require.Error(t, err)
		require.Equal(t, string(one)+string(two), string(after), "nothing is left of a frame that is refused")
	}
	tiny := newCodec(t, wire.Config{MaxPayload: wire.Some(3)})
	after, err := tiny.AppendEncode(b, wire.Cancel{ID: "a"})
	require.Error(t, err)
	require.Len(t, after, len(b))

	buf := make([]byte, 0, 1024)
	frame := wire.Frame(wire.Cancel{ID: "a"})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := codec.AppendEncode(buf[:0], frame); err != nil {
			t.Error(err)
		}
	}))
}

func TestFrameJSON(t *testing.T) {
	for _, c := range []struct {
		name, text, again string
	}{
		{"OK an empty id", `{"id":"","kind":"cancel"}`, `{"kind":"cancel","id":""}`},
		{"OK an error out of scope", `{"kind":"error","code":"internal","message":""}`, `{"kind":"error","code":"internal","message":""}`},
		{"OK a fallback", `{"kind":"error","id":"","code":"internal","message":"m","unrecognized_code":""}`, `{"kind":"error","id":"","code":"internal","message":"m","unrecognized_code":""}`},
		{"OK null for absence", `{"kind":"error","id":null,"code":"internal","message":"m","unrecognized_code":null}`, `{"kind":"error","code":"internal","message":"m"}`},
		{"OK white space in a result", `{"kind": "response", "id": "i", "result": {"b c": [1.0, "\" x"], "a" : -0}}`, `{"kind":"response","id":"i","result":{"b c":[1.0,"\" x"],"a":-0}}`},
		{"OK white space in a payload", `{"kind":"event","topic":"t","cursor":1,"occurred_at":"","payload":[ 1,  2 ]}`, `{"kind":"event","topic":"t","cursor":1,"occurred_at":"","payload":[1,2]}`},
		{"Err a code nobody knows", `{"kind":"error","code":"x","message":""}`, `invalid_fields: error: member "code" is not a code of this version`},
		{"Err another code beside a kept one", `{"kind":"error","code":"cancelled","message":"","unrecognized_code":"x"}`, `invalid_fields: error: member "code" must be internal beside unrecognized_code`},
		{"Err a kept code elsewhere", `{"kind":"cancel","id":"i","unrecognized_code":"x"}`, `invalid_fields: cancel: member "unrecognized_code" does not belong to this kind; it has kind, id`},
		{"Err no JSON", `cancel`, `invalid_json: payload byte 0: no value begins like this`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := wire.ParseFrameJSON([]byte(c.text))
			if strings.HasPrefix(c.name, "Err") {
				require.Nil(t, f)
				require.EqualError(t, fault(t, err), c.again)
				return
			}
			require.NoError(t, err)
			text, err := wire.MarshalFrameJSON(f)
			require.NoError(t, err)
			require.Equal(t, c.again, string(text))
		})
	}
	_, err := wire.MarshalFrameJSON(wire.Cancel{ID: "\xff"})
	require.Equal(t, wire.InvalidFields, fault(t, err).Fault)
	_, err = wire.MarshalFrameJSON(nil)
	require.Equal(t, wire.InvalidFields, fault(t, err).Fault)
}

// Every character at every place of a word, and around its ends, means the same to encoding/json:
// the scanner and the encoder look at eight bytes at once.
func TestStringsAtEveryPlace(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	chars := []string{"é", "€", "😀", "\ue9a2", "\u00a2", "\u2028", "\"" + "\"", "\u00a2\"", "\\\x00"}
	for c := range 128 {
		chars = append(chars, string(rune(c)))
	}
	for _, c := range chars {
		for i := range 20 {
			s := strings.Repeat("a", i) + c + strings.Repeat("b", 19-i)
			b, err := codec.Encode(wire.Cancel{ID: wire.OperationID(s)})
			require.NoError(t, err)
			var got struct{ ID string }
			require.NoError(t, json.Unmarshal(b[wire.PrefixSize:], &got))
			require.Equal(t, s, got.ID)

			theirs, err := json.Marshal(map[string]string{"kind": "cancel", "id": s})
			require.NoError(t, err)
			for _, payload := range [][]byte{theirs, b[wire.PrefixSize:]} {
				f, err := codec.DecodePayload(payload)
				require.NoError(t, err)
				require.Equal(t, wire.Cancel{ID: wire.OperationID(s)}, f)
			}
			if c[0] < 0x20 {
				_, err := codec.Decode(prefixed(`{"kind":"cancel","id":"` + s + `"}`))
				require.Equal(t, wire.InvalidJSON, fault(t, err).Fault)
			}
		}
	}
}
