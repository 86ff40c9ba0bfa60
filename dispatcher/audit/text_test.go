package audit_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/audit"
	"github.com/verbgate/verbgate/policy"
)

func TestLine(t *testing.T) {
	r := record(3)
	require.Equal(t, `2026-03-01T12:00:03.123456789Z decision allow create effect=allowed outcome=success error_code=none actor=user:bob namespace=local `+
		`reason=because code=ok.fine obligations=audit:pii duration_us=3 source=mcp session_id=s1 request_id=request-0 op=4/10 decision_id=decision-3 `+
		`pack=kg gate=opa revision=r1 params="{\"id\":\"x\",\"n\":9007199254740993}" id=id-3`, audit.Line(r))
	require.Equal(t, `0001-01-01T00:00:00Z "" "" "" duration_us=0`, audit.Line(policy.Record{}))
}

// What a caller can put into a record, and what must not come out of it as text.
var spoofs = []string{
	"x\u2028{\"ok\":true}", "x\u2029", "x\u202edecnalab", "x\r\n{\"forged\":1}", "\x1b[2J\x1b]0;title\a", "\u009b31m", "\x00", "\x7f",
	"\u200b\u200e\u2066\u2069\ufeff", "a b=c \"d\"", "\xff\xfe", "\U000e0041", "\u00a0\u3000\u0085\v\f\t", "\xed\xa0\x80", "delete reason=fine",
}

func spoofed(s string) policy.Record {
	params, err := json.Marshal(map[string]string{"p" + s: s})
	if err != nil {
		panic(err)
	}
	return policy.Record{
		ID: s, Kind: policy.RecordKind(s), RequestID: s, DecisionID: s, Source: s, SessionID: s, Actor: s, Namespace: s, Verb: s, Pack: s,
		Decision: s, Effect: s, Reason: s, Code: s, Obligations: []string{s, s}, Outcome: s, ErrorCode: s, Gate: s, Revision: s, Params: params,
	}
}

func requirePlainLine(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	i := strings.IndexFunc(text, func(c rune) bool { return !strconv.IsPrint(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c) })
	require.Negative(t, i, "%q", text)
}

func TestSpoofs(t *testing.T) {
	for _, s := range spoofs {
		requirePlainLine(t, audit.Line(spoofed(s)))
		text, err := audit.JSON(spoofed(s))
		require.NoError(t, err)
		requirePlainLine(t, string(text))
	}
	require.Contains(t, audit.Line(policy.Record{Verb: "x\u202e"}), `"x\u202e"`)
	text, err := audit.JSON(policy.Record{Verb: "x\U000e0041", Params: json.RawMessage("{\"a\":\"\u202e<\"}")})
	require.NoError(t, err)
	require.Contains(t, string(text), `"x\udb40\udc41"`)
	require.Contains(t, strings.ReplaceAll(string(text), `\u003c`, "<"), `"\u202e<"`)
	text, err = audit.JSON(policy.Record{Params: json.RawMessage("{\"a\":\"x\xffy\ufffd\"}")})
	require.NoError(t, err)
	require.Contains(t, string(text), `"x\ufffdy\ufffd"`)
	_, err = audit.JSON(policy.Record{Params: json.RawMessage("{")})
	require.Error(t, err)
}

func FuzzText(f *testing.F) {
	for _, s := range spoofs {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := spoofed(s)
		requirePlainLine(t, audit.Line(r))
		text, err := audit.JSON(r)
		require.NoError(t, err)
		requirePlainLine(t, string(text))
		plain, err := json.Marshal(r)
		require.NoError(t, err)
		var got, want any
		require.NoError(t, json.Unmarshal(text, &got))
		require.NoError(t, json.Unmarshal(plain, &want))
		require.Equal(t, want, got, "escaping changes no value")
	})
}
