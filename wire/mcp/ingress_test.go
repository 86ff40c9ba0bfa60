package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire/mcp"
)

// rpcError is a JSON-RPC error message, read strictly.
type rpcError struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func readError(t testing.TB, text []byte) rpcError {
	t.Helper()
	var e rpcError
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&e), "%s", text)
	require.Equal(t, "2.0", e.JSONRPC)
	require.Negative(t, e.Error.Code)
	require.NotEmpty(t, e.Error.Message)
	return e
}

func callText(arguments string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":` + arguments + `}}`
}

const missingOps = `ops is required and must be a string, as in {"ops":"verbs()"}`

var refused = []struct {
	name string
	text string
	code int
	id   string
	say  string // part of the message
}{
	// fc-001, fc-002: framing
	{"ErrCut", `{"jsonrpc":"2.0","id":1,"method":`, -32700, "null", "ends where a value was due at byte 33"},
	{"ErrWord", `hello`, -32700, "null", "no JSON value starts at byte 0"},
	{"ErrBatch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "null", "batches are not supported"},
	{"ErrEmptyBatch", `[]`, -32600, "null", "batches are not supported"},
	{"ErrNull", `null`, -32600, "null", "is a JSON object"},
	{"ErrNumber", `5`, -32600, "null", "is a JSON object"},
	{"ErrString", `"x"`, -32600, "null", "is a JSON object"},
	{"ErrEmpty", ``, -32700, "null", "empty"},
	{"ErrBlank", " \t\r\n", -32700, "null", "empty"},
	{"ErrBOM", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, -32700, "null", "byte order mark"},
	{"ErrTrailingComma", `{"jsonrpc":"2.0","id":2,"method":"tools/list"},`, -32700, "null", "text after the message"},
	{"ErrTwoMessages", `{"jsonrpc":"2.0","id":2,"method":"ping"}{"jsonrpc":"2.0","id":3,"method":"ping"}`, -32700, "null", "text after the message"},
	{"ErrTrailingNUL", `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\x00", -32700, "null", "text after the message"},
	{"ErrDeepArray", strings.Repeat("[", 20000), -32600, "null", "batches"},
	{"ErrDeepParams", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`, -32600, "null", "nested deeper than 64 levels"},
	{"ErrDeepObjects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), -32600, "null", "nested deeper than 64 levels"},
	{"ErrSingleQuotes", `{'jsonrpc':"2.0"}`, -32700, "null", "member name in double quotes"},
	{"ErrComment", `{/**/"jsonrpc":"2.0"}`, -32700, "null", "member name in double quotes"},
	{"ErrLeadingZero", `{"jsonrpc":"2.0","id":01,"method":"ping"}`, -32700, "null", "malformed number"},
	{"ErrBareMinus", `{"jsonrpc":"2.0","id":-,"method":"ping"}`, -32700, "null", "malformed number"},
	{"ErrPointWithoutDigits", `{"jsonrpc":"2.0","id":1.,"method":"ping"}`, -32700, "null", "malformed number"},
	{"ErrExponentWithoutDigits", `{"jsonrpc":"2.0","id":1e,"method":"ping"}`, -32700, "null", "malformed number"},
	{"ErrNaN", `{"jsonrpc":"2.0","id":NaN,"method":"ping"}`, -32700, "null", "no JSON value"},
	{"ErrBadWord", `{"jsonrpc":"2.0","id":nul`, -32700, "null", "no JSON value"},
	{"ErrRawNewline", "{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\",\"method\":\"ping\"}", -32700, "null", "control character"},
	{"ErrBadEscape", `{"jsonrpc":"2.0","id":"\x41","method":"ping"}`, -32700, "null", "unknown escape"},
	{"ErrCutEscape", `{"jsonrpc":"2.0","id":"\u12`, -32700, "null", "unfinished escape"},
	{"ErrCutBackslash", `{"jsonrpc":"\`, -32700, "null", "unfinished escape"},
	{"ErrOpenString", `{"jsonrpc":"2.0`, -32700, "null", "not closed, opened at byte 11"},
	{"ErrNoColon", `{"jsonrpc" "2.0"}`, -32700, "null", "a colon was due"},
	{"ErrNoComma", `{"jsonrpc":"2.0" "id":1}`, -32700, "null", "a comma or '}' was due"},
	{"ErrArrayComma", `{"x":[1,]}`, -32700, "null", "no JSON value"},

	// fc-031: text
	{"ErrLoneHighSurrogate", callText(`{"ops":"get(id=\"a\ud800b\")"}`), -32700, "7", "lone surrogate"},
	{"ErrLoneLowSurrogate", callText(`{"ops":"get(id=\"a\udfffb\")"}`), -32700, "7", "lone surrogate"},
	{"ErrHighBeforePlainEscape", callText(`{"ops":"\ud800\u0041"}`), -32700, "7", "lone surrogate"},
	{"ErrTwoHighs", callText(`{"ops":"\ud800\ud800\udc00"}`), -32700, "7", "lone surrogate"},
	{"ErrLoneSurrogateInID", `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, -32700, "null", "lone surrogate"},
	{"ErrLoneSurrogateInCallID", strings.Replace(callText(`{"ops":"a()"}`), `"id":7`, `"id":"a\udc00"`, 1), -32700, "null", "lone surrogate"},
	{"ErrByteInID", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", -32700, "null", "not UTF-8"},
	{"ErrFlawBesideGoodID", `{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"\ud800"}`, -32700, `"\ud83d\ude00"`, "lone surrogate"},
	{"ErrLoneSurrogateInName", callText(`{"ops\ud800":"x"}`), -32700, "7", "lone surrogate"},
	{"ErrInvalidUTF8", callText("{\"ops\":\"get(id=\\\"\xff\xfe\\\")\"}"), -32700, "7", "not UTF-8"},
	{"ErrEncodedSurrogate", callText("{\"ops\":\"\xed\xa0\x80\"}"), -32700, "7", "not UTF-8"},

	// envelope
	{"ErrNoVersion", `{"id":1,"method":"ping"}`, -32600, "1", `"jsonrpc":"2.0"`},
	{"ErrVersion1", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600, "1", `"jsonrpc":"2.0"`},
	{"ErrVersionNumber", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, -32600, "1", `"jsonrpc":"2.0"`},
	{"ErrNullID", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrFractionID", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrExponentID", `{"jsonrpc":"2.0","id":1e2,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrMinusZeroID", `{"jsonrpc":"2.0","id":-0,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrHugeID", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrHugeNegativeID", `{"jsonrpc":"2.0","id":-9007199254740993,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrHugerID", `{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrBoolID", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrObjectID", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrLongID", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","method":"ping"}`, -32600, "null", "the id must be"},
	{"ErrNoMethod", `{"jsonrpc":"2.0","id":1}`, -32600, "1", "the method must be"},
	{"ErrEmptyMethod", `{"jsonrpc":"2.0","id":1,"method":""}`, -32600, "1", "the method must be"},
	{"ErrNumberMethod", `{"jsonrpc":"2.0","id":1,"method":5}`, -32600, "1", "the method must be"},
	{"ErrNullMethod", `{"jsonrpc":"2.0","id":1,"method":null}`, -32600, "1", "the method must be"},
	{"ErrNothing", `{}`, -32600, "null", `"jsonrpc":"2.0"`},
	{"ErrRequestAndAnswer", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, -32600, "1", "both a request and an answer"},
	{"ErrAnswerWithoutID", `{"jsonrpc":"2.0","result":{}}`, -32600, "null", "the method must be"},
	{"ErrParamsArray", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, -32602, "1", "params must be an object"},
	{"ErrParamsString", `{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, -32602, "1", "params must be an object"},
	{"ErrMetaArray", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[]}}`, -32602, "1", "_meta must be an object"},
	{"ErrMetaVersion", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}}`, -32602, "1", "no protocol version"},
	{"ErrMethodCase", `{"jsonrpc":"2.0","id":1,"method":"Tools/Call"}`, -32601, "1", `no method "Tools/Call"`},
	{"ErrMethodLong", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 5000) + `"}`, -32601, "1", `mmm"…`},
	{"ErrMethodUnknown", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, -32601, "1", "no method"},
	{"ErrMethodTasks", `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`, -32601, "1", "no method"},
	{"ErrCursor", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"eA=="}}`, -32602, "1", "unknown cursor"},
	{"ErrCursorNumber", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}`, -32602, "1", "unknown cursor"},
	{"ErrInitialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, -32602, "1", "protocolVersion is required"},

	// fc-004, fc-005: names
	{"ErrCaseMethod", `{"jsonrpc":"2.0","id":9,"method":"ping","Method":"tools/call"}`, -32600, "null", `"Method" only looks like "method"`},
	{"ErrCaseParams", `{"jsonrpc":"2.0","id":9,"method":"ping","PARAMS":{}}`, -32600, "null", `"PARAMS" only looks like "params"`},
	{"ErrCaseID", `{"jsonrpc":"2.0","id":7,"ID":99,"method":"ping"}`, -32600, "null", `"ID" only looks like "id"`},
	{"ErrCaseIDFirst", `{"jsonrpc":"2.0","Id":99,"id":7,"method":"ping"}`, -32600, "null", `"Id" only looks like "id"`},
	{"ErrFoldParams", `{"jsonrpc":"2.0","id":9,"method":"ping","paramſ":{}}`, -32600, "null", `only looks like "params"`},
	{"ErrFoldEscaped", `{"jsonrpc":"2.0","id":9,"method":"ping","param\u017f":{}}`, -32600, "null", `only looks like "params"`},
	{"ErrFoldArguments", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"request","arguments":{"ops":"stats()"},"argument\u017f":{"ops":"delete(id=\"x\")"}}}`, -32602, "9", `only looks like "arguments"`},
	{"ErrCaseName", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"request","Name":"x","arguments":{"ops":"a()"}}}`, -32602, "9", `"Name" only looks like "name"`},
	{"ErrCaseMeta", `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_META":{}}}`, -32602, "9", `only looks like "_meta"`},
	{"ErrCaseMetaVersion", `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"2026-07-28"}}}`, -32602, "9", "only looks like"},
	{"ErrCaseOps", callText(`{"ops":"a()","Ops":"b()"}`), -32602, "7", `"Ops" only looks like "ops"`},
	{"ErrCaseOpsAlone", callText(`{"OPS":"b()"}`), -32602, "7", `"OPS" only looks like "ops"`},
	{"ErrFoldOps", callText(`{"ops":"a()","opſ":"b()"}`), -32602, "7", `only looks like "ops"`},
	{"ErrTwiceMethod", `{"jsonrpc":"2.0","id":9,"method":"ping","method":"tools/call"}`, -32600, "null", `"method" is there twice`},
	{"ErrTwiceID", `{"jsonrpc":"2.0","id":9,"id":10,"method":"ping"}`, -32600, "null", `"id" is there twice`},
	{"ErrTwiceEscaped", `{"jsonrpc":"2.0","id":9,"method":"ping","m\u0065thod":"tools/call"}`, -32600, "null", `"method" is there twice`},
	{"ErrTwiceParams", `{"jsonrpc":"2.0","id":9,"method":"ping","params":null,"params":{}}`, -32600, "null", `"params" is there twice`},
	{"ErrTwiceArguments", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"request","arguments":{"ops":"a()"},"arguments":{"ops":"b()"}}}`, -32602, "9", `"arguments" is there twice`},
	{"ErrTwiceOps", callText(`{"ops":"a()","ops":"b()"}`), -32602, "7", `"ops" is there twice`},
	{"ErrNULOps", callText(`{"ops":"a()","ops\u0000":"b()"}`), -32602, "7", `unknown argument "ops\x00"`},

	// fc-023: arguments, every form the same
	{"ErrNoArguments", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request"}}`, -32602, "7", missingOps},
	{"ErrArgumentsNull", callText(`null`), -32602, "7", missingOps},
	{"ErrArgumentsArray", callText(`[]`), -32602, "7", missingOps},
	{"ErrArgumentsString", callText(`"{}"`), -32602, "7", missingOps},
	{"ErrArgumentsEmpty", callText(`{}`), -32602, "7", missingOps},
	{"ErrOpsNull", callText(`{"ops":null}`), -32602, "7", missingOps},
	{"ErrOpsNumber", callText(`{"ops":5}`), -32602, "7", missingOps},
	{"ErrOpsArray", callText(`{"ops":[]}`), -32602, "7", missingOps},
	{"ErrOpsObject", callText(`{"ops":{}}`), -32602, "7", missingOps},
	{"ErrOpsBool", callText(`{"ops":false}`), -32602, "7", missingOps},
	{"ErrUnknownArgument", callText(`{"ops":"a()","verbose":true}`), -32602, "7", `unknown argument "verbose"; the one argument is ops`},
	{"ErrPresentation", callText(`{"ops":"a()","presentation":"agent"}`), -32602, "7", `unknown argument "presentation"`},
	{"ErrPresentationPerOp", callText(`{"ops":"a()","presentation_per_op":[]}`), -32602, "7", `unknown argument "presentation_per_op"`},
	{"ErrFormat", callText(`{"ops":"a()","format":"json"}`), -32602, "7", `unknown argument "format"`},
	{"ErrSaveTo", callText(`{"ops":"a()","save_to":"x"}`), -32602, "7", `unknown argument "save_to"`},
	{"ErrPlan", callText(`{"ops":"a()","plan":true}`), -32602, "7", `unknown argument "plan"`},
	{"ErrEmptyArgumentName", callText(`{"":1,"ops":"a()"}`), -32602, "7", `unknown argument ""`},
	{"ErrNoParams", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, -32602, "7", "name is required"},
	{"ErrNameNumber", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5,"arguments":{"ops":"a()"}}}`, -32602, "7", "name is required"},
	{"ErrNameOther", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"REQUEST","arguments":{"ops":"a()"}}}`, -32602, "7", `unknown tool "REQUEST"`},
	{"ErrNameSpace", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request ","arguments":{"ops":"a()"}}}`, -32602, "7", `unknown tool "request "`},
}

func TestInspectRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			v := mcp.Inspect([]byte(tt.text))
			require.Equal(t, "refuse", v.Intent)
			e := readError(t, v.Refusal)
			require.Equal(t, tt.code, e.Error.Code)
			require.Equal(t, tt.id, string(e.ID))
			require.Contains(t, e.Error.Message, tt.say)
			require.Less(t, len(v.Refusal), 600, "a refusal does not repeat the message")
		})
	}
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"x","Name":"y"},"other":1,"Other":2}`

var accepted = []struct {
	name, text, intent, forward, ops, target string
}{
	{"OKPing", ` {"jsonrpc":"2.0","id":1,"method":"ping"} ` + "\r\n", "plain", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`, "", ""},
	{"OKNullParams", `{"jsonrpc":"2.0","id":"a","method":"ping","params":null}`, "plain", `{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`, "", ""},
	{"OKLargestID", `{"id":9007199254740992,"jsonrpc":"2.0","method":"ping"}`, "plain", `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping","params":{}}`, "", ""},
	{"OKNegativeID", `{"id":-1,"jsonrpc":"2.0","method":"ping"}`, "plain", `{"jsonrpc":"2.0","id":-1,"method":"ping","params":{}}`, "", ""},
	{"OKEmptyStringID", `{"id":"","jsonrpc":"2.0","method":"ping"}`, "plain", `{"jsonrpc":"2.0","id":"","method":"ping","params":{}}`, "", ""},
	{"OKUnknownMembersDropped", `{"jsonrpc":"2.0","id":1,"method":"ping","trace":{"a":[1,2.5e-3,true,false,null]},"params":{"x":1,"x":2}}`, "plain", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`, "", ""},
	{"OKInitialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":5},"clientInfo":{"name":"c","Name":"d"}}}`, "plain",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"","version":""}}}`, "", ""},
	{"OKList", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}`, "plain", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "", ""},
	{"OKModern", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":` + modernMeta + `}}`, "plain",
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, "", ""},
	{"OKModernInitialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "plain",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "", ""},
	{"OKListen", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":` + modernMeta + `,"notifications":5}}`, "plain",
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, "", ""},
	{"OKCall", callText(`{"ops":"get(id=\"\u00e9\ud83d\ude00\")"}`), "call", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{}}}`, `get(id="é😀")`, ""},
	{"OKCallEmptyOps", callText(`{"ops":""}`), "call", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{}}}`, ``, ""},
	{"OKCallEscapedNames", `{"jsonrp\u0063":"2.0","id":7,"method":"tools\/call","params":{"n\u0061me":"request","arguments":{"\u006fps":"a()"},"arguments\u0000":{"ops":"evil()"},"task":{}}}`, "call",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{}}}`, "a()", ""},
	{"OKInitialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "ignore", "", "", ""},
	{"OKNotifiedCallRunsNothing", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"request","arguments":{"ops":"a()"}}}`, "ignore", "", "", ""},
	{"OKAnswer", `{"jsonrpc":"2.0","id":1,"result":{}}`, "ignore", "", "", ""},
	{"OKErrorAnswer", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, "ignore", "", "", ""},
	{"OKCancelNumber", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"x"}}`, "cancel", "", "", "n7"},
	{"OKCancelString", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0037"}}`, "cancel", "", "", "s7"},
	{"OKNotificationOddParams", `{"jsonrpc":"2.0","method":"x","params":[]}`, "ignore", "", "", ""},
	{"OKCancelTwoIDs", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"requestID":8}}`, "ignore", "", "", ""},
	{"OKCancelTwice", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"requestId":8}}`, "ignore", "", "", ""},
	{"OKCancelNothing", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "ignore", "", "", ""},
	{"OKCancelOddID", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, "ignore", "", "", ""},
}

func TestInspectAccepts(t *testing.T) {
	for _, tt := range accepted {
		t.Run(tt.name, func(t *testing.T) {
			v := mcp.Inspect([]byte(tt.text))
			require.Empty(t, string(v.Refusal))
			require.Equal(t, tt.intent, v.Intent)
			require.Equal(t, tt.forward, string(v.Forward))
			require.Equal(t, tt.ops, v.Ops)
			require.Equal(t, tt.target, v.Target)
		})
	}
}

// The filter's memory is in proportion to the message, whatever is in it.
func TestInspectMemory(t *testing.T) {
	const size = 8 << 20
	fill := func(head, body, tail string) string {
		return head + strings.Repeat(body, (size-len(head)-len(tail))/len(body)) + tail
	}
	tests := []struct{ name, text string }{
		{"OKLongOps", fill(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{"ops":"`, `x`, `"}}}`)},
		{"OKEscapedOps", fill(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{"ops":"`, `\u0041`, `"}}}`)},
		{"OKManyMembers", fill(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{`, `"a":1,`, `"b":1}}`)},
		{"OKManyArguments", fill(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"request","arguments":{`, `"a":1,`, `"ops":"a()"}}}`)},
		{"OKBrackets", fill(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[`, `[],`, `1]}}`)},
		{"ErrOpen", fill(`{"a":`, `{"a":`, ``)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(tt.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			mcp.Inspect(text)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3*size))
		})
	}
}

// allowedNames are the members that may reach the library, by depth.
var allowedNames = map[string]bool{
	"jsonrpc": true, "id": true, "method": true, "params": true,
	"name": true, "arguments": true, "_meta": true, "protocolVersion": true, "capabilities": true,
	"clientInfo": true, "version": true, "notifications": true,
	"io.modelcontextprotocol/protocolVersion": true, "io.modelcontextprotocol/clientCapabilities": true,
}

func checkNames(t *testing.T, dec *json.Decoder) {
	for {
		tok, err := dec.Token()
		require.NoError(t, err)
		switch tok {
		case json.Delim('{'):
			seen := map[string]bool{}
			for dec.More() {
				name, err := dec.Token()
				require.NoError(t, err)
				require.True(t, allowedNames[name.(string)], "member %q reaches the library", name)
				require.False(t, seen[name.(string)], "member %q reaches the library twice", name)
				seen[name.(string)] = true
				checkNames(t, dec)
			}
			_, err = dec.Token()
			require.NoError(t, err)
			return
		case json.Delim('['):
			require.Fail(t, "an array reaches the library")
		default:
			return
		}
	}
}

// FuzzInspect: a message is forwarded as a canonical one, answered with a well-formed error, or
// dropped as a notification or an answer.
func FuzzInspect(f *testing.F) {
	for _, tt := range refused {
		if len(tt.text) < 4096 {
			f.Add([]byte(tt.text))
		}
	}
	for _, tt := range accepted {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v := mcp.Inspect(text)
		switch v.Intent {
		case "refuse":
			readError(t, v.Refusal)
		case "plain", "call":
			require.True(t, json.Valid(text), "only JSON passes")
			require.True(t, json.Valid(v.Forward))
			checkNames(t, json.NewDecoder(bytes.NewReader(v.Forward)))
			var in, out struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					Arguments struct {
						Ops string `json:"ops"`
					} `json:"arguments"`
				} `json:"params"`
			}
			require.NoError(t, json.Unmarshal(v.Forward, &out))
			require.NotEmpty(t, out.Method)
			require.NotEmpty(t, out.ID)
			if v.Intent == "call" {
				// Go's decoder folds names; had a folded one passed, it would disagree here.
				require.NoError(t, json.Unmarshal(text, &in))
				require.Equal(t, in.Params.Arguments.Ops, v.Ops)
				require.Equal(t, "tools/call", in.Method)
				require.JSONEq(t, string(in.ID), string(out.ID))
			}
		default:
			require.True(t, json.Valid(text))
			require.Empty(t, v.Forward)
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	for _, size := range []int{0, 4 << 10, 1 << 20} {
		text := []byte(callText(`{"ops":"memory.recall(query=\"` + strings.Repeat("q", size) + `\", limit=5)"}`))
		b.Run(fmt.Sprintf("call/%dB", len(text)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				mcp.Inspect(text)
			}
		})
	}
}
