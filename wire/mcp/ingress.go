package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// intent is what a message that may go on asks for. The zero value asks for nothing.
type intent uint8

const (
	// ignore: a notification nobody here needs, or an answer to a question never asked.
	ignore intent = iota
	// cancel: the client gives up on one of its calls.
	cancel
	// plain: a request that the library answers by itself.
	plain
	// toolCall: a call of the tool.
	toolCall
)

// frame is a message as the filter understood it.
type frame struct {
	intent intent
	id     json.RawMessage // a string or an integer, as sent; nil unless plain or toolCall
	modern bool            // the message declares protocol 2026-07-28 or later
	ops    string          // toolCall: the decoded argument
	target string          // cancel: callKey of the call's id

	// message is what the library gets for plain and toolCall: members the filter recognised,
	// written anew. The ops of a call are not among them; they travel parsed.
	message []byte
}

const (
	toolName = "request"
	// maxID bounds an id, which is kept while its call runs and echoed in the answer.
	maxID = 1024
	// maxSafe is 2^53: whole numbers up to there survive every JSON decoder.
	maxSafe = 1 << 53
	// maxVersion bounds a protocol version, which the library echoes.
	maxVersion = 64
)

// Members that mean something, by the object they stand in. A member whose name is not among them
// is dropped; one whose name only looks like one of them to a decoder that folds case refuses the message.
var (
	envelopeNames = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramNames    = []string{"_meta", "name", "arguments", "protocolVersion", "capabilities", "clientInfo", "cursor",
		"notifications", "requestId", "reason", "task", "inputResponses", "requestState"}
	argumentNames = []string{"ops"}
	metaNames     = []string{"progressToken", mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientCapabilities, mcp.MetaKeyClientInfo, mcp.MetaKeyLogLevel}
)

// inspect reads one message. Exactly one of the results is set. It keeps nothing of text.
func inspect(text []byte) (*frame, *refusal) {
	s := &scanner{text: text}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return nil, &refusal{code: codeParse, message: "parse error: the message starts with a byte order mark; send UTF-8 without one"}
	}
	s.space()
	switch {
	case s.pos == len(text):
		return nil, &refusal{code: codeParse, message: "parse error: the message is empty"}
	case text[s.pos] == '[':
		return nil, &refusal{code: codeInvalidRequest, message: "batches are not supported; send one message at a time"}
	case text[s.pos] != '{':
		err := s.value()
		if err == nil {
			err = s.end()
		}
		if err != nil {
			return nil, syntaxRefusal(err)
		}
		return nil, &refusal{code: codeInvalidRequest, message: "a message is a JSON object"}
	}
	env, err := s.members(envelopeNames)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, syntaxRefusal(err)
	}
	m := message{env: env}
	m.readID()
	if s.flaw != nil {
		return nil, &refusal{id: m.id, code: codeParse, message: "parse error: " + s.flaw.Error() + "; send UTF-8 with whole characters"}
	}
	if env.clash != "" {
		return nil, &refusal{id: m.id, code: codeInvalidRequest, message: env.clash}
	}
	return m.classify()
}

// end checks that nothing follows the message.
func (s *scanner) end() error {
	s.space()
	if s.pos < len(s.text) {
		return s.fail(s.pos, "text after the message; send one message a line,")
	}
	return nil
}

func syntaxRefusal(err error) *refusal {
	var e *scanError
	if errors.As(err, &e) && e.deep {
		return &refusal{code: codeInvalidRequest, message: "the message is " + e.Error()}
	}
	return &refusal{code: codeParse, message: "parse error: " + err.Error()}
}

// fields are the members of one object that mean something, raw.
type fields struct {
	names   []string
	values  []json.RawMessage // by the index in names; nil for absent
	unknown string            // the first name that means nothing, quoted for a message
	clash   string            // why the names cannot be trusted, "" when they can
}

// get returns the raw value of a member, nil when it is absent.
func (f *fields) get(name string) json.RawMessage {
	for i, n := range f.names {
		if n == name && i < len(f.values) {
			return f.values[i]
		}
	}
	return nil
}

// members walks the object at pos and sorts its members. Names are compared as decoded text, exactly.
func (s *scanner) members(names []string) (fields, error) {
	f := fields{names: names, values: make([]json.RawMessage, len(names))}
	err := s.object(func(quoted, value []byte) error {
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(quoted))
		}
		for i, n := range names {
			if string(name) == n {
				if f.values[i] != nil && f.clash == "" {
					f.clash = fmt.Sprintf("the member %q is there twice", n)
				}
				f.values[i] = value
				return nil
			}
		}
		for _, n := range names {
			if f.clash == "" && strings.EqualFold(string(name), n) {
				f.clash = fmt.Sprintf("the member %s only looks like %q; write %q", quote(string(name)), n, n)
			}
		}
		if f.unknown == "" {
			f.unknown = quote(string(name))
		}
		return nil
	})
	return f, err
}

// open reads the members of an object that was walked before.
func open(object []byte, names []string) fields {
	s := &scanner{text: object}
	f, err := s.members(names)
	if err != nil {
		panic("mcp: a message changed while it was read")
	}
	return f
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// absent reports whether a member is missing or null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == 'n' }

// validID accepts what a JSON-RPC id may be here: a string of bounded length that is Unicode text, for it
// is echoed as it is, or an integer that no decoder rounds.
func validID(raw json.RawMessage) bool {
	switch {
	case len(raw) == 0 || len(raw) > maxID:
		return false
	case raw[0] == '"':
		s := scanner{text: raw}
		return s.string() == nil && s.flaw == nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && -maxSafe <= n && n <= maxSafe && string(raw) != "-0"
}

// callKey tells apart the calls of one connection: the number 7 and the string "7" are two ids, and
// the spelling of a string in the text does not matter.
func callKey(id json.RawMessage) string {
	if isString(id) {
		return "s" + unquote(id)
	}
	return "n" + string(id)
}
