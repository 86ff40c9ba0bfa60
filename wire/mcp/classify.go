package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is an envelope on its way to becoming a frame.
type message struct {
	env    fields
	id     json.RawMessage // nil when there is none, or none to be trusted
	method string
	params fields
	meta   json.RawMessage // the protocol's own members of _meta, written anew; nil for none
	modern bool
}

// readID keeps the id only when it can be trusted, so that no answer goes to a call it is not for. It
// is a copy: a call that waits must not hold on to the message it came in.
func (m *message) readID() {
	if raw := m.env.get("id"); m.env.clash == "" && validID(raw) {
		m.id = bytes.Clone(raw)
	}
}

func (m *message) refuse(code int, format string, args ...any) (*frame, *refusal) {
	return nil, &refusal{id: m.id, code: code, message: fmt.Sprintf(format, args...)}
}

// classify decides what the message is. The names of the envelope are trusted by now.
func (m *message) classify() (*frame, *refusal) {
	if string(m.env.get("jsonrpc")) != `"2.0"` {
		return m.refuse(codeInvalidRequest, `the message lacks "jsonrpc":"2.0"`)
	}
	hasID := m.env.get("id") != nil
	if hasID && m.id == nil {
		return m.refuse(codeInvalidRequest, "the id must be a string of at most %d bytes or an integer of at most 2^53", maxID)
	}
	method := m.env.get("method")
	answers := m.env.get("result") != nil || m.env.get("error") != nil
	switch {
	case method != nil && answers:
		return m.refuse(codeInvalidRequest, "the message is both a request and an answer")
	case method == nil && hasID && answers:
		return &frame{intent: ignore}, nil // this server asks nothing, so there is nothing to answer
	case !isString(method) || len(method) == len(`""`):
		return m.refuse(codeInvalidRequest, "the method must be a string that is not empty")
	}
	m.method = unquote(method)
	refused := m.readParams()
	switch {
	case !hasID && refused != nil:
		return &frame{intent: ignore}, nil // a notification has no answer, not even this one
	case !hasID:
		return m.notification(), nil
	case refused != nil:
		return nil, refused
	default:
		return m.request()
	}
}

// readParams reads the names in params and in _meta.
func (m *message) readParams() *refusal {
	raw := m.env.get("params")
	if absent(raw) {
		m.params = fields{}
		return nil
	}
	if !isObject(raw) {
		return &refusal{id: m.id, code: codeInvalidParams, message: "params must be an object"}
	}
	m.params = open(raw, paramNames)
	if m.params.clash != "" {
		return &refusal{id: m.id, code: codeInvalidParams, message: "in params " + m.params.clash}
	}
	raw = m.params.get("_meta")
	if absent(raw) {
		return nil
	}
	if !isObject(raw) {
		return &refusal{id: m.id, code: codeInvalidParams, message: "_meta must be an object"}
	}
	meta := open(raw, metaNames)
	if meta.clash != "" {
		return &refusal{id: m.id, code: codeInvalidParams, message: "in _meta " + meta.clash}
	}
	version := meta.get(mcp.MetaKeyProtocolVersion)
	if absent(version) {
		return nil
	}
	if !isString(version) || len(version) > maxVersion {
		return &refusal{id: m.id, code: codeInvalidParams, message: "_meta names no protocol version, which is a date"}
	}
	m.modern = mcp.IsModernProtocol(unquote(version))
	m.meta = fmt.Appendf(nil, "{%q:%s", mcp.MetaKeyProtocolVersion, version)
	if isObject(meta.get(mcp.MetaKeyClientCapabilities)) {
		// What the client can do matters only to servers that ask it for something.
		m.meta = fmt.Appendf(m.meta, ",%q:{}", mcp.MetaKeyClientCapabilities)
	}
	m.meta = append(m.meta, '}')
	return nil
}

// notification never fails: one that makes no sense is ignored.
func (m *message) notification() *frame {
	f := &frame{intent: ignore, modern: m.modern}
	if m.method == string(mcp.MethodNotificationCancelled) && validID(m.params.get("requestId")) {
		f.intent, f.target = cancel, callKey(m.params.get("requestId"))
	}
	return f
}

// request sorts requests by method. What is not listed here does not exist.
func (m *message) request() (*frame, *refusal) {
	switch mcp.MCPMethod(m.method) {
	case mcp.MethodToolsCall:
		return m.call()
	case mcp.MethodInitialize:
		if m.modern {
			return m.plain(""), nil // the library knows the method is gone from there on
		}
		version := m.params.get("protocolVersion")
		if !isString(version) || len(version) > maxVersion {
			return m.refuse(codeInvalidParams, "protocolVersion is required and must be a date in a string")
		}
		return m.plain(fmt.Sprintf(`"protocolVersion":%s,"capabilities":{},"clientInfo":{"name":"","version":""}`, version)), nil
	case mcp.MethodToolsList:
		if cursor := m.params.get("cursor"); !absent(cursor) && string(cursor) != `""` {
			return m.refuse(codeInvalidParams, "unknown cursor: there is one page; list without a cursor")
		}
		return m.plain(""), nil
	case mcp.MethodSubscriptionsListen:
		return m.plain(`"notifications":{}`), nil
	case mcp.MethodPing, mcp.MethodServerDiscover:
		return m.plain(""), nil
	default:
		return m.refuse(codeNoMethod, "this server has no method %s", quote(m.method))
	}
}

// plain makes a frame for the library with the given members in params.
func (m *message) plain(params string) *frame {
	return &frame{intent: plain, id: m.id, modern: m.modern, message: m.write(params)}
}

// write is the message that the library gets.
func (m *message) write(params string) []byte {
	out := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s`, m.id, m.method, params)
	if m.meta != nil {
		if params != "" {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `"_meta":%s`, m.meta)
	}
	return append(out, "}}"...)
}

// call reads a call of the tool.
func (m *message) call() (*frame, *refusal) {
	name := m.params.get("name")
	if !isString(name) {
		return m.refuse(codeInvalidParams, "name is required and must be a string; the one tool is %q", toolName)
	}
	if tool := unquote(name); tool != toolName {
		return m.refuse(codeInvalidParams, "unknown tool %s; the one tool is %q", quote(tool), toolName)
	}
	const missing = `ops is required and must be a string, as in {"ops":"verbs()"}`
	raw := m.params.get("arguments")
	if !isObject(raw) {
		return nil, argumentsRefusal(m.id, missing)
	}
	args := open(raw, argumentNames)
	if args.clash != "" {
		return nil, argumentsRefusal(m.id, "in arguments "+args.clash)
	}
	if args.unknown != "" {
		return nil, argumentsRefusal(m.id, fmt.Sprintf("unknown argument %s; the one argument is ops", args.unknown))
	}
	ops := args.get("ops")
	if !isString(ops) {
		return nil, argumentsRefusal(m.id, missing)
	}
	return &frame{intent: toolCall, id: m.id, modern: m.modern, ops: unquote(ops), message: m.write(`"name":"` + toolName + `","arguments":{}`)}, nil
}
