package opa

import "github.com/open-policy-agent/opa/v1/ast"

// Keys of the document, made once: the engine only reads the terms of an input.
var key = struct {
	verb, pack, category, token, params, resource, context,
	namespace, explicit, read, actor, kind, id, groups, claims,
	param, exists,
	source, transport, sessionID, requestID, decisionID, time, mode, index, count, plan, saveTo, via *ast.Term
}{
	verb: ast.StringTerm("verb"), pack: ast.StringTerm("pack"), category: ast.StringTerm("category"),
	token: ast.StringTerm("token"), params: ast.StringTerm("params"), resource: ast.StringTerm("resource"), context: ast.StringTerm("context"),
	namespace: ast.StringTerm("namespace"), explicit: ast.StringTerm("explicit"), read: ast.StringTerm("read"), actor: ast.StringTerm("actor"),
	kind: ast.StringTerm("kind"), id: ast.StringTerm("id"), groups: ast.StringTerm("groups"), claims: ast.StringTerm("claims"),
	param: ast.StringTerm("param"), exists: ast.StringTerm("exists"),
	source: ast.StringTerm("source"), transport: ast.StringTerm("transport"), sessionID: ast.StringTerm("session_id"),
	requestID: ast.StringTerm("request_id"), decisionID: ast.StringTerm("decision_id"), time: ast.StringTerm("time"),
	mode: ast.StringTerm("mode"), index: ast.StringTerm("index"), count: ast.StringTerm("count"), plan: ast.StringTerm("plan"),
	saveTo: ast.StringTerm("save_to"), via: ast.StringTerm("via"),
}

// words are the texts that nearly every document holds.
var words = func() map[string]*ast.Term {
	m := map[string]*ast.Term{}
	for _, s := range []string{
		"", "local", "user", "agent", "anonymous", "mcp", "wire", "cli", "stdio", "http", "unix", "tls",
		"single", "parallel", "chain", "assertive", "commissive", "declaration", "directive",
		"id", "kind", "limit", "name", "namespace", "query", "core", "kg", "memory", "entity", "note",
	} {
		m[s] = ast.StringTerm(s)
	}
	return m
}()
