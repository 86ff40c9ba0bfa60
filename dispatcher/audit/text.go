package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/verbgate/verbgate/policy"
)

// Line is r as one line of text for a person, without a line end: time, effect and verb, then
// name=value pairs. A value that holds anything but plain characters is quoted as Go quotes strings,
// so no control, bidirectional or separating character reaches a terminal.
func Line(r policy.Record) string {
	var b strings.Builder
	b.WriteString(r.Time.UTC().Format(time.RFC3339Nano))
	for _, s := range []string{string(r.Kind), r.Decision, r.Verb} {
		b.WriteByte(' ')
		b.WriteString(quote(s))
	}
	pair := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + "=" + quote(value))
		}
	}
	pair("effect", r.Effect)
	pair("outcome", r.Outcome)
	pair("error_code", r.ErrorCode)
	pair("actor", r.Actor)
	pair("namespace", r.Namespace)
	pair("reason", r.Reason)
	pair("code", r.Code)
	pair("obligations", strings.Join(r.Obligations, ","))
	pair("duration_us", strconv.FormatInt(r.Duration.Microseconds(), 10))
	pair("source", r.Source)
	pair("session_id", r.SessionID)
	pair("request_id", r.RequestID)
	if r.Count > 1 {
		pair("op", strconv.Itoa(r.Index+1)+"/"+strconv.Itoa(r.Count))
	}
	pair("decision_id", r.DecisionID)
	pair("pack", r.Pack)
	pair("gate", r.Gate)
	pair("revision", r.Revision)
	pair("params", string(r.Params))
	pair("id", r.ID)
	return b.String()
}

func quote(s string) string {
	if s == "" {
		return `""`
	}
	for _, c := range s {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.,:/@+", c)
		if !plain {
			return strconv.Quote(s)
		}
	}
	return s
}

// JSON is r as one line of JSON, without a line end, in which characters that are not printable are
// escaped. It decodes to the same values as the plain encoding.
func JSON(r policy.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if utf8.Valid(text) && !bytes.ContainsFunc(text, unprintable) {
		return text, nil
	}
	// The text is compact, so what is not printable is inside a string.
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if unprintable(c) || c == utf8.RuneError { // params may hold bytes that are no UTF-8
			for _, unit := range utf16.AppendRune(nil, c) {
				out = append(out, `\u`...)
				out = append(out, strconv.FormatUint(0x10000|uint64(unit), 16)[1:]...)
			}
		} else {
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out, nil
}

func unprintable(c rune) bool { return !strconv.IsPrint(c) }
