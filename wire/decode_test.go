package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// overflow is 2^1024 - 2^970, the first number that rounds to infinity, and below the one before.
const (
	overflow = "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"
	below    = "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497791"
)

// decoded are payloads that decode in the default profile, and what they encode to again.
var decoded = []struct{ name, payload, again string }{
	{"OK handshake", `{"version":7,"kind":"handshake"}`, `{"kind":"handshake","version":7}`},
	{"OK handshake_ack", `{"version":4294967295,"kind":"handshake_ack"}`, `{"kind":"handshake_ack","version":4294967295}`},
	{"OK request with all", `{"visible_namespaces":["a","","a"],"actor_id":"x","namespace":"","deadline_ms":1,"ops":"o","id":"i","kind":"request"}`,
		`{"kind":"request","id":"i","ops":"o","deadline_ms":1,"namespace":"","actor_id":"x","visible_namespaces":["a","","a"]}`},
	{"OK response", `{"result":{},"id":"i","kind":"response"}`, `{"kind":"response","id":"i","result":{}}`},
	{"OK error", `{"message":"m","code":"cancelled","id":"i","kind":"error"}`, `{"kind":"error","id":"i","code":"cancelled","message":"m"}`},
	{"OK error that ends the connection", `{"message":"m","code":"subscription_revoked","kind":"error"}`, `{"kind":"error","code":"subscription_revoked","message":"m"}`},
	{"OK cancel", `{"id":"i","kind":"cancel"}`, `{"kind":"cancel","id":"i"}`},
	{"OK subscribe", `{"resume_cursor":0,"topic":"t","id":"i","kind":"subscribe"}`, `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":0}`},
	{"OK subscribe_ack", `{"start_cursor":18446744073709551615,"topic":"t","id":"i","kind":"subscribe_ack"}`, `{"kind":"subscribe_ack","id":"i","topic":"t","start_cursor":18446744073709551615}`},
	{"OK unsubscribe", `{"topic":"t","id":"i","kind":"unsubscribe"}`, `{"kind":"unsubscribe","id":"i","topic":"t"}`},
	{"OK unsubscribe_ack", `{"topic":"t","id":"i","kind":"unsubscribe_ack"}`, `{"kind":"unsubscribe_ack","id":"i","topic":"t"}`},
	{"OK event", `{"payload":{},"occurred_at":"o","cursor":3,"topic":"t","kind":"event"}`, `{"kind":"event","topic":"t","cursor":3,"occurred_at":"o","payload":{}}`},

	{"OK every escape", `{"kind":"cancel","id":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\uD83D\ude00\u0000\u001F\u007f\u2028"}`,
		"{\"kind\":\"cancel\",\"id\":\"\\\"\\\\/\\b\\f\\n\\r\\tAé€😀\\u0000\\u001f\x7f\u2028\"}"},
	{"OK a raw delete character", "{\"kind\":\"cancel\",\"id\":\"\x7f\"}", "{\"kind\":\"cancel\",\"id\":\"\x7f\"}"},
	{"OK a replacement character that was meant", `{"kind":"cancel","id":"�\ufffd"}`, `{"kind":"cancel","id":"��"}`},
	{"OK strings around the word size", `{"kind":"unsubscribe","id":"1234567","topic":"12345678\n1234567é12345678"}`,
		`{"kind":"unsubscribe","id":"1234567","topic":"12345678\n1234567é12345678"}`},
	{"OK escapes in names and kind", `{"\u006B\u0069nd":"canc\u0065l","\u0069d":"i"}`, `{"kind":"cancel","id":"i"}`},
	{"OK the longest name, escaped all over", `{"kind":"request","id":"i","ops":"","` + escapedAll("visible_namespaces") + `":["a"]}`,
		`{"kind":"request","id":"i","ops":"","visible_namespaces":["a"]}`},
	{"OK escapes in elements", `{"kind":"request","id":"i","ops":"","visible_namespaces":[ "\u0061b" , "\n" ,"é"]}`,
		`{"kind":"request","id":"i","ops":"","visible_namespaces":["ab","\n","é"]}`},

	{"OK a bad value given before a good one", `{"kind":"handshake","version":"x","version":1}`, `{"kind":"handshake","version":1}`},
	{"OK a good optional given before null", `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":5,"resume_cursor":null}`, `{"kind":"subscribe","id":"i","topic":"t"}`},
	{"OK null given before a good optional", `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":null,"resume_cursor":5}`, `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":5}`},
	{"OK a result given twice", `{"kind":"response","id":"i","result":1,"result":2}`, `{"kind":"response","id":"i","result":2}`},

	{"OK opaque text keeps its spelling", `{"kind":"response","id":"i","result": {"b" : "\u0041\/<&>" ,"a":[ 1.0E+2,-0,0e0 , "` + "\u2028" + `" ] , "b":null} }`,
		`{"kind":"response","id":"i","result":{"b" : "\u0041\/<&>" ,"a":[ 1.0E+2,-0,0e0 , "` + "\u2028" + `" ] , "b":null}}`},
	{"OK opaque string with escapes", `{"kind":"response","id":"i","result":"\u0041\n"}`, `{"kind":"response","id":"i","result":"\u0041\n"}`},
	{"OK numbers at the edge of a double", `{"kind":"response","id":"i","result":[1.7976931348623157e308,-1.797693134862315807e+308,` + below + `,0.` + below + `e309,` + below + `.99999]}`,
		`{"kind":"response","id":"i","result":[1.7976931348623157e308,-1.797693134862315807e+308,` + below + `,0.` + below + `e309,` + below + `.99999]}`},
	{"OK numbers with more nines than the largest double", `{"kind":"response","id":"i","result":[9e307,99e306,0.09e309,9e1]}`,
		`{"kind":"response","id":"i","result":[9e307,99e306,0.09e309,9e1]}`},
	{"OK numbers that are zero to a double", `{"kind":"response","id":"i","result":[0e999999999999999999999,0.000e9999,1e-400,1e-99999999999999999999]}`,
		`{"kind":"response","id":"i","result":[0e999999999999999999999,0.000e9999,1e-400,1e-99999999999999999999]}`},
	{"OK a long number that is small", `{"kind":"response","id":"i","result":[0.` + strings.Repeat("0", 12000) + `1e12100,1` + strings.Repeat("0", 12000) + `e-12000]}`,
		`{"kind":"response","id":"i","result":[0.` + strings.Repeat("0", 12000) + `1e12100,1` + strings.Repeat("0", 12000) + `e-12000]}`},
	{"OK objects 127 deep", `{"kind":"response","id":"i","result":` + strings.Repeat(`{"a":`, 126) + "1" + strings.Repeat("}", 126) + `}`,
		`{"kind":"response","id":"i","result":` + strings.Repeat(`{"a":`, 126) + "1" + strings.Repeat("}", 126) + `}`},
	{"OK containers 127 deep beside each other", `{"kind":"response","id":"i","result":[` + nested(125) + `,` + nested(125) + `]}`,
		`{"kind":"response","id":"i","result":[` + nested(125) + `,` + nested(125) + `]}`},
}

// refused are payloads that do not decode in the default profile, and the error's text.
var refused = []struct{ name, payload, message string }{
	{"Err empty", ``, `invalid_json: payload byte 0: a value is missing where the text ends`},
	{"Err only white space", " \n", `invalid_json: payload byte 2: a value is missing where the text ends`},
	{"Err a byte order mark", "\ufeff{}", `invalid_json: payload byte 0: no value begins like this`},
	{"Err NaN", `{"kind":"response","id":"i","result":NaN}`, `invalid_json: payload byte 37: no value begins like this`},
	{"Err a word with more to it", `{"kind":"response","id":"i","result":nullx}`, `invalid_json: payload byte 41: a comma or } is missing`},
	{"Err half a word", `{"kind":"response","id":"i","result":tru`, `invalid_json: payload byte 37: no value begins like this`},
	{"Err a comma before }", `{"kind":"cancel","id":"i",}`, `invalid_json: payload byte 26: a member's name is missing`},
	{"Err a comma before ]", `{"kind":"response","id":"i","result":[1,]}`, `invalid_json: payload byte 40: no value begins like this`},
	{"Err a comma first", `{,"kind":"cancel","id":"i"}`, `invalid_json: payload byte 1: a member's name is missing`},
	{"Err no colon", `{"kind" "cancel"}`, `invalid_json: payload byte 8: a colon is missing`},
	{"Err no comma", `{"kind":"response","id":"i","result":[1 2]}`, `invalid_json: payload byte 40: a comma or ] is missing`},
	{"Err no end", `{"kind":"cancel","id":"i"`, `invalid_json: payload byte 25: a comma or } is missing`},
	{"Err the wrong closer", `{"kind":"response","id":"i","result":[1}}`, `invalid_json: payload byte 39: a comma or ] is missing`},
	{"Err a null byte after the end", "{}\x00", `invalid_json: payload byte 2: something follows the value`},
	{"Err a null byte for a value", "{\"kind\":\x00}", `invalid_json: payload byte 8: no value begins like this`},
	{"Err a null byte first", "\x00", `invalid_json: payload byte 0: no value begins like this`},
	{"Err a raw newline", "{\"kind\":\"can\ncel\"}", `invalid_json: payload byte 12: a control character stands raw in a string`},
	{"Err a raw control at the end of a word", "{\"kind\":\"1234567\x1f\"}", `invalid_json: payload byte 16: a control character stands raw in a string`},
	{"Err an open string", `{"kind":"cancel`, `invalid_json: payload byte 15: the text ends inside a string`},
	{"Err an open escape", `{"kind":"cancel\`, `invalid_json: payload byte 15: the text ends inside a string`},
	{"Err an unknown escape", `{"kind":"\x63ancel"}`, `invalid_json: payload byte 9: no such escape`},
	{"Err an escaped quote in capitals", `{"kind":"\U0063"}`, `invalid_json: payload byte 9: no such escape`},
	{"Err three digits", `{"kind":"\u006"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a digit too far", `{"kind":"\u00g0"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a lone high surrogate", `{"kind":"\ud800"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err two high surrogates", `{"kind":"\ud800\ud800"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err two low surrogates", `{"kind":"\udc00\udc00"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a high surrogate before the first character past them", `{"kind":"\ud800\ue000"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err surrogates the wrong way round", `{"kind":"\udc00\ud800"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a surrogate split by text", `{"kind":"\ud800x\udc00"}`, `invalid_json: payload byte 9: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a lone surrogate in a name", `{"\ud800":1}`, `invalid_json: payload byte 2: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err a lone surrogate deep in a result", `{"kind":"response","id":"i","result":[{"a":"\udfff"}]}`, `invalid_json: payload byte 44: \u needs four hexadecimal digits, and a surrogate its other half`},
	{"Err an overlong encoding", "{\"kind\":\"\xc0\xaf\"}", `invalid_json: payload byte 9: not UTF-8`},
	{"Err a code point past the last", "{\"kind\":\"\xf4\x90\x80\x80\"}", `invalid_json: payload byte 9: not UTF-8`},
	{"Err bad UTF-8 in a name", "{\"\xff\":1}", `invalid_json: payload byte 2: not UTF-8`},
	{"Err a minus alone", `{"kind":-}`, `invalid_json: payload byte 9: a digit is missing in a number`},
	{"Err a point first", `{"kind":.5}`, `invalid_json: payload byte 8: no value begins like this`},
	{"Err a point last", `{"kind":5.}`, `invalid_json: payload byte 10: a digit is missing in a number`},
	{"Err an exponent without digits", `{"kind":5e+}`, `invalid_json: payload byte 11: a digit is missing in a number`},
	{"Err two zeros", `{"kind":-00}`, `invalid_json: payload byte 8: a number begins with a superfluous 0`},
	{"Err hexadecimal", `{"kind":0x1}`, `invalid_json: payload byte 9: a comma or } is missing`},
	{"Err the first number too large", `{"kind":` + overflow + `}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err the first number too large, with an exponent", `{"kind":[-0.0` + overflow + `e310]}`, `invalid_json: payload byte 9: a number is beyond the range of a double`},
	{"Err the first number too large, with a point", `{"kind":` + overflow + `.0}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err a short number too large", `{"kind":1.8e308}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err a long number too large", `{"kind":1` + strings.Repeat("0", 309) + `}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err a number too large that a later member replaces", `{"kind":1e400,"kind":"cancel","id":"i"}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err a number too large in a version", `{"kind":"handshake","version":1e309}`, `invalid_json: payload byte 30: a number is beyond the range of a double`},
	{"Err an exponent that overflows any integer", `{"kind":1e99999999999999999999999}`, `invalid_json: payload byte 8: a number is beyond the range of a double`},
	{"Err objects 128 deep", `{"kind":"response","id":"i","result":` + strings.Repeat(`{"a":`, 127) + "1" + strings.Repeat("}", 127) + `}`,
		`invalid_json: payload byte 667: nested more than 127 deep`},
	{"Err arrays 128 deep at the top", nested(128), `invalid_json: payload byte 127: nested more than 127 deep`},
	{"Err syntax beats the kind", `{"kind":"ping"`, `invalid_json: payload byte 14: a comma or } is missing`},

	{"Err arrays 127 deep at the top", nested(127), `missing_kind: the payload must be an object with a member "kind"`},
	{"Err no kind", `{"id":"i"}`, `missing_kind: the payload must be an object with a member "kind"`},
	{"Err kind is a number", `{"kind":1}`, `missing_kind: member "kind" must be a string`},
	{"Err a missing kind beats unknown members", `{"kinds":"cancel"}`, `missing_kind: the payload must be an object with a member "kind"`},
	{"Err an unknown kind beats unknown members", `{"kind":"\u0070ing","x":1}`, `unknown_frame_kind: "ping" is not a kind of this version`},
	{"Err a kind with a space", `{"kind":"cancel ","id":"i"}`, `unknown_frame_kind: "cancel " is not a kind of this version`},
	{"Err none is no kind", `{"kind":"none"}`, `unknown_frame_kind: "none" is not a kind of this version`},
	{"Err a long kind is cut", `{"kind":"` + strings.Repeat("é", 40) + `"}`, `unknown_frame_kind: "` + strings.Repeat("é", 20) + `"… is not a kind of this version`},

	{"Err a long kind is cut between characters", `{"kind":"x` + strings.Repeat("é", 40) + `"}`, `unknown_frame_kind: "x` + strings.Repeat("é", 19) + `"… is not a kind of this version`},

	{"Err a member nobody knows", `{"kind":"cancel","id":"i","X":1}`, `invalid_fields: cancel: member "X" does not belong to this kind; it has kind, id`},
	{"Err an escaped name too long to be one", `{"kind":"cancel","id":"i","\u0076isible_namespaces_":1}`, `invalid_fields: cancel: member "visible_namespaces_" does not belong to this kind; it has kind, id`},
	{"Err an empty name", `{"kind":"cancel","id":"i","":1}`, `invalid_fields: cancel: member "" does not belong to this kind; it has kind, id`},
	{"Err a member of another kind", `{"kind":"handshake","version":1,"payload":null}`, `invalid_fields: handshake: member "payload" does not belong to this kind; it has kind, version`},
	{"Err the tools' member", `{"kind":"error","code":"internal","message":"","unrecognized_code":null,"id":"i"}`, `invalid_fields: error: member "unrecognized_code" does not belong to this kind; it has kind, id, code, message`},
	{"Err a missing member", `{"kind":"event","cursor":1,"occurred_at":"","payload":1}`, `invalid_fields: event: member "topic" is missing`},
	{"Err a required null", `{"kind":"cancel","id":null}`, `invalid_fields: cancel: member "id" must be a string`},
	{"Err an empty id", `{"kind":"cancel","id":""}`, `invalid_fields: cancel: member "id" must not be empty`},
	{"Err minus nought", `{"kind":"handshake","version":-0}`, `invalid_fields: handshake: member "version" must be a whole number in plain digits, not negative and not too large`},
	{"Err a version in quotes", `{"kind":"handshake","version":"1"}`, `invalid_fields: handshake: member "version" must be a whole number in plain digits, not negative and not too large`},
	{"Err a version that is an object", `{"kind":"handshake","version":{}}`, `invalid_fields: handshake: member "version" must be a whole number in plain digits, not negative and not too large`},
	{"Err 2^64", `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":18446744073709551616}`, `invalid_fields: subscribe: member "resume_cursor" must be a whole number in plain digits, not negative and not too large`},
	{"Err an integer of 21 digits", `{"kind":"subscribe","id":"i","topic":"t","resume_cursor":100000000000000000000}`, `invalid_fields: subscribe: member "resume_cursor" must be a whole number in plain digits, not negative and not too large`},
	{"Err an optional of the wrong type", `{"kind":"request","id":"i","ops":"","namespace":1}`, `invalid_fields: request: member "namespace" must be a string`},
	{"Err an element that is no string", `{"kind":"request","id":"i","ops":"","visible_namespaces":["a",["b"]]}`, `invalid_fields: request: member "visible_namespaces" must be an array of strings`},
	{"Err visible namespaces as an object", `{"kind":"request","id":"i","ops":"","visible_namespaces":{}}`, `invalid_fields: request: member "visible_namespaces" must be an array of strings`},
	{"Err fields beat the scope", `{"kind":"error","code":"cancelled","message":1}`, `invalid_fields: error: member "message" must be a string`},
	{"Err an id where the connection ends", `{"kind":"error","id":"i","code":"malformed_frame","message":""}`, `inconsistent_error_scope: code malformed_frame ends the connection and must come without an id`},
	{"Err no id where an operation ends", `{"kind":"error","code":"cancelled","message":""}`, `inconsistent_error_scope: code cancelled ends an operation and must name it with an id`},
}

// refusedStrictly decode in the default profile and not in the strict one.
var refusedStrictly = []struct{ name, payload, message string }{
	{"Err a repeated member", `{"kind":"cancel","id":"i","id":"i"}`, `invalid_fields: cancel: member "id" is given more than once`},
	{"Err a repeated kind", `{"kind":"cancel","id":"i","kind":"cancel"}`, `invalid_fields: cancel: member "kind" is given more than once`},
	{"Err null for absence", `{"kind":"request","id":"i","ops":"","visible_namespaces":null}`, `invalid_fields: request: member "visible_namespaces" must be left out rather than null`},
	{"Err an unknown code without an id", `{"kind":"error","code":"x","message":""}`, `inconsistent_error_scope: an error with an unknown code must name an operation`},
	{"Err a payload that is no object", `{"kind":"event","topic":"t","cursor":1,"occurred_at":"","payload":null}`, `invalid_fields: event: member "payload" must be an object`},
}

// escapedAll spells ASCII text with nothing but escapes.
func escapedAll(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString(`\u00`)
		b.WriteByte("0123456789abcdef"[c>>4])
		b.WriteByte("0123456789ABCDEF"[c&15])
	}
	return b.String()
}

func TestDecode(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	for _, c := range decoded {
		t.Run(c.name, func(t *testing.T) {
			b := prefixed(c.payload)
			f, n, err := codec.DecodeWithConsumed(append(b, "rest"...))
			require.NoError(t, err)
			require.Equal(t, len(b), n)
			again, err := codec.Encode(f)
			require.NoError(t, err)
			require.Equal(t, c.again, string(again[wire.PrefixSize:]))

			whole, err := codec.DecodePayload([]byte(c.payload))
			require.NoError(t, err)
			require.Equal(t, f, whole)
			second, err := codec.Decode(again)
			require.NoError(t, err)
			require.Equal(t, f, second)
		})
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				f, n, err := newCodec(t, wire.Config{Strict: strict}).DecodeWithConsumed(prefixed(c.payload))
				require.Nil(t, f)
				require.Zero(t, n)
				if strict && strings.Contains(c.name, "replaces") {
					require.Error(t, err)
					continue
				}
				require.EqualError(t, fault(t, err), c.message)
				require.Equal(t, wire.MalformedFrame, fault(t, err).WireCode())
			}
		})
	}
	strict := newCodec(t, wire.Config{Strict: true})
	for _, c := range refusedStrictly {
		t.Run("strict/"+c.name, func(t *testing.T) {
			_, err := codec.Decode(prefixed(c.payload))
			require.NoError(t, err)
			f, err := strict.Decode(prefixed(c.payload))
			require.Nil(t, f)
			require.EqualError(t, fault(t, err), c.message)
			require.Equal(t, wire.MalformedFrame, fault(t, err).WireCode())
		})
	}
}

func TestDecodeRequest(t *testing.T) {
	f, err := newCodec(t, wire.Config{}).Decode(prefixed(`{"kind":"request","id":"i","ops":"o","deadline_ms":0,"namespace":"n","visible_namespaces":[]}`))
	require.NoError(t, err)
	require.Equal(t, wire.Request{
		ID: "i", Ops: "o", DeadlineMS: wire.Some(uint64(0)), Namespace: wire.Some("n"),
		VisibleNamespaces: wire.Some(wire.NewStringList()),
	}, f)
	require.False(t, f.(wire.Request).ActorID.Present())
}

func TestDecodeFallback(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	for payload, want := range map[string]wire.ErrorFrame{
		`{"kind":"error","id":"i","code":"a\u0062","message":"m"}`:      {ID: wire.Some(wire.OperationID("i")), Code: wire.Internal, Message: "m", UnrecognizedCode: wire.Some("ab")},
		`{"kind":"error","code":"none","message":"m"}`:                  {Code: wire.Internal, Message: "m", UnrecognizedCode: wire.Some("none")},
		`{"kind":"error","id":"i","code":"internal","message":""}`:      {ID: wire.Some(wire.OperationID("i")), Code: wire.Internal},
		`{"kind":"error","id":"i","code":"intern\u0061l","message":""}`: {ID: wire.Some(wire.OperationID("i")), Code: wire.Internal},
	} {
		f, err := codec.Decode(prefixed(payload))
		require.NoError(t, err, payload)
		require.Equal(t, want, f)
	}
}

// A frame lives on when the buffer it came in is used again.
func TestDecodeKeepsNothing(t *testing.T) {
	codec := newCodec(t, wire.Config{})
	for _, c := range decoded {
		b := prefixed(c.payload)
		f, err := codec.Decode(b)
		require.NoError(t, err)
		for i := range b {
			b[i] = '#'
		}
		again, err := codec.Encode(f)
		require.NoError(t, err, c.name)
		require.Equal(t, c.again, string(again[wire.PrefixSize:]))
	}
}

func TestFraming(t *testing.T) {
	small := newCodec(t, wire.Config{MaxPayload: wire.Some(4)})
	size, err := small.PayloadSize([4]byte{0, 0, 0, 4})
	require.NoError(t, err)
	require.Equal(t, 4, size)
	for name, try := range map[string]func() error{
		"PayloadSize":   func() error { _, err := small.PayloadSize([4]byte{0, 0, 0, 5}); return err },
		"Decode":        func() error { _, err := small.Decode([]byte{0, 0, 0, 5}); return err },
		"DecodePayload": func() error { _, err := small.DecodePayload([]byte("12345")); return err },
	} {
		e := fault(t, try())
		require.Equal(t, &wire.CodecError{Fault: wire.PayloadTooLarge, Declared: 5, Max: 4}, e, name)
		require.Equal(t, wire.FrameTooLarge, e.WireCode())
	}
	require.EqualError(t, &wire.CodecError{Fault: wire.TruncatedLengthPrefix, Available: 3}, "truncated_length_prefix: 3 of the 4 bytes are there")
	require.EqualError(t, &wire.CodecError{Fault: wire.TruncatedPayload, Available: 3, Declared: 9}, "truncated_payload: 3 of the 9 bytes declared are there")

	var zero wire.Codec
	_, err = zero.Decode(prefixed(" "))
	require.Equal(t, wire.PayloadTooLarge, fault(t, err).Fault)
	_, err = wire.NewCodec(wire.Config{MaxPayload: wire.Some(-1)})
	require.ErrorContains(t, err, "-1")
	standard := newCodec(t, wire.Config{})
	require.Equal(t, 8388608, standard.MaxPayload())
	require.False(t, standard.Strict())
	_, err = standard.PayloadSize([4]byte{0, 0x80, 0, 0})
	require.NoError(t, err)
	_, err = standard.PayloadSize([4]byte{0, 0x80, 0, 1})
	require.Equal(t, wire.PayloadTooLarge, fault(t, err).Fault)
}

func TestErrorJSON(t *testing.T) {
	for want, e := range map[string]*wire.CodecError{
		`{"error":"prefix_limit_exceeded","wire_code":"frame_too_large","declared":4294967296}`:              {Fault: wire.PrefixLimitExceeded, Declared: 1 << 32},
		`{"error":"frame_too_large","wire_code":"frame_too_large","declared":9,"max":8}`:                     {Fault: wire.PayloadTooLarge, Declared: 9, Max: 8},
		`{"error":"fallback_frame_not_encodable","wire_code":"malformed_frame","code":"` + "\ufffd" + `\""}`: {Fault: wire.FallbackFrameNotEncodable, Code: "\xff\""},
	} {
		got, err := json.Marshal(e)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}
