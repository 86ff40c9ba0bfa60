package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy/opa"
)

// config is what the program runs with, after the defaults, the file, the environment and the flags
// have been laid over each other in that order.
type config struct {
	DataDir   string
	Namespace string
	Visible   []string
	Packs     []string
	Backends  map[string]string
	Gate      struct {
		Policy        string
		Entrypoint    string
		Timeout       time.Duration
		OnError       string
		AllowBuiltins []string
		AllowHosts    []string
	}
	Audit struct {
		Params    string
		Retention struct {
			Age  span
			Rows amount
		}
	}
	Listen    []string
	Operators []string
	Unix      struct{ TrustActorID yesNo }
	TLS       struct {
		Cert, Key, ClientCA string
		Clients             clientRows
	}
	TCP    struct{ Plain yesNo }
	Limits struct{ RequestTimeout time.Duration }
	HTTP   struct {
		Addr           string
		Auth           string
		AllowedOrigins []string
		AllowedHosts   []string
	}
	Log struct{ Level, Format string }
}

// setting is one key of the configuration. The list of settings is all there is to know about the
// keys: the file, the environment, --set and verbgate init's output are read and written from it.
type setting struct {
	key   string   // as in the file, e.g. gate.timeout
	into  any      // *string, *[]string, *time.Duration, *map[string]string or a special in the config
	doc   string   // what it does, for verbgate init's output; lines are wrapped already
	enum  []string // the values allowed, if there are few
	path  bool     // the value is a path, relative to the file it stands in
	other bool     // nothing in it stands for something else: a text that must be looked up elsewhere, or everything
	check func(string) error
}

// Values of closed settings.
const (
	onErrorOpen   = "open"
	onErrorClosed = "closed"
	paramsRecord  = "record"
	paramsNone    = "none"
	authToken     = "token"
	authNone      = "none"
)

// settings lists every key, in the order of verbgate init's output, with where its value goes.
func (c *config) settings() []setting {
	return []setting{
		{key: "data_dir", into: &c.DataDir, path: true, other: true,
			doc: "Where the databases, the audit store and the HTTP token are kept.\nEmpty: verbgate in the user's state directory ($XDG_STATE_HOME, else ~/.local/state)."},
		{key: "namespace", into: &c.Namespace, check: checkNamespace,
			doc: "The namespace of calls that name none."},
		{key: "visible", into: &c.Visible, check: checkNamespace,
			doc: "Further namespaces that calls which name none may read, if the policy agrees."},
		{key: "packs", into: &c.Packs, check: checkPack, other: true,
			doc: "The packs to load. Empty: every pack this program was built with."},
		{key: "backends", into: &c.Backends, check: checkBackend,
			doc: "Which backend keeps a pack's records, as pack: backend. A backend is a SQLite file\nof that name in data_dir. Packs that are not named here use the backend main."},
		{key: "listen", into: &c.Listen, other: true, check: checkListen,
			doc: "Sockets that serve speaks the framed protocol on when no flag says how to serve: unix://, which\nis $XDG_RUNTIME_DIR/verbgate/verbgate.sock, else data_dir/verbgate.sock; unix:///path,\ntls://host:port, and tcp://127.0.0.1:port if tcp.plain allows it."},
		{key: "operators", into: &c.Operators, check: checkActor,
			doc: "Actors, as user:alice, who may follow the topics gate.* over a socket, if the policy agrees."},
		{key: "gate.policy", into: &c.Gate.Policy, path: true, other: true, check: notEmpty,
			doc: "The policy: a folder of .rego and data files, or a .tar.gz bundle. A folder is read\nagain when it changes, and on SIGHUP. Without this key, the starter policy built in."},
		{key: "gate.entrypoint", into: &c.Gate.Entrypoint, other: true, check: notEmpty,
			doc: "The rule that decides: data, the package and the rule, joined by dots."},
		{key: "gate.timeout", into: &c.Gate.Timeout,
			doc: "How long one decision may take. A decision that takes longer is a refusal."},
		{key: "gate.on_error", into: &c.Gate.OnError, enum: []string{onErrorOpen, onErrorClosed},
			doc: "What happens to a call when the gate itself failed in a way no caller can cause:\nopen lets it run and records that nobody judged it, closed refuses it. What a policy\ndenies, or cannot answer, is refused in either case."},
		{key: "gate.allow_builtins", into: &c.Gate.AllowBuiltins,
			doc: "Built-in functions of the policy language that are off unless named here,\nas http.send, net.lookup_ip_addr, opa.runtime."},
		{key: "gate.allow_hosts", into: &c.Gate.AllowHosts,
			doc: "The hosts that such functions may reach, as bundles.example.com. Empty: none."},
		{key: "audit.params", into: &c.Audit.Params, enum: []string{paramsRecord, paramsNone},
			doc: "record keeps the params of a call in its audit record, sensitive ones sealed;\nnone leaves them out."},
		{key: "audit.retention.age", into: &c.Audit.Retention.Age,
			doc: "How long audit records and events are kept, as 720h. 0s keeps them for ever. Whoever wants\nto follow a topic from an event that is gone is told so (cursor_expired)."},
		{key: "audit.retention.rows", into: &c.Audit.Retention.Rows,
			doc: "How many audit records, and how many events of packs, are kept: the newest. 0 keeps all."},
		{key: "limits.request_timeout", into: &c.Limits.RequestTimeout,
			doc: "How long a whole request may take."},
		{key: "http.addr", into: &c.HTTP.Addr, other: true,
			doc: "What serve listens on when no flag says so, as 127.0.0.1:7433. Only loopback addresses.\nEmpty: serve wants a flag."},
		{key: "http.auth", into: &c.HTTP.Auth, enum: []string{authToken, authNone},
			doc: "token asks callers for the bearer token in data_dir/http.token, which the first start\nmakes; who has it is the user who runs the server. none lets every local process in,\nas anonymous:http."},
		{key: "http.allowed_origins", into: &c.HTTP.AllowedOrigins,
			doc: "Origins that web pages may call from, as https://app.example.com, beside the server's own."},
		{key: "http.allowed_hosts", into: &c.HTTP.AllowedHosts,
			doc: "Host names that requests may be addressed to, beside localhost and the address listened on."},
		{key: "unix.trust_actor_id", into: &c.Unix.TrustActorID,
			doc: "true makes the actor_id of a request over a Unix socket the actor, as asserted:<actor_id>:\nfor a front end that has found out who is asking. false leaves the actor the user whose\nprocess it is, and shows the actor_id to policies as token.actor.claims.asserted_id."},
		{key: "tls.cert", into: &c.TLS.Cert, path: true,
			doc: "The server's certificate for tls:// sockets, with those it was issued by, in PEM."},
		{key: "tls.key", into: &c.TLS.Key, path: true,
			doc: "The key of that certificate, in PEM."},
		{key: "tls.client_ca", into: &c.TLS.ClientCA, path: true,
			doc: "Who may have issued clients' certificates, in PEM. Other clients do not get in."},
		{key: "tls.clients", into: &c.TLS.Clients,
			doc: "Who a client is, by the first URI in its certificate, else by its subject: a list of\n" + clientRowForm + ".\nnamespace is for calls that name none, visible what these may read besides. A client that\nis not named here is refused."},
		{key: "tcp.plain", into: &c.TCP.Plain,
			doc: "true allows tcp:// sockets, without TLS, on loopback addresses. It lets every local process\nin, as anonymous:tcp."},
		{key: "log.level", into: &c.Log.Level, other: true, enum: []string{"", "debug", "info", "warn", "error"},
			doc: "debug, info, warn or error. Empty: info for serve, warn for the other commands."},
		{key: "log.format", into: &c.Log.Format, enum: []string{"text", "json"},
			doc: "text or json, on stderr."},
	}
}

// defaults is the configuration of somebody who configured nothing.
func defaults() *config {
	c := &config{Namespace: "local", Visible: []string{}, Packs: []string{}, Backends: map[string]string{}}
	c.Gate.Entrypoint = opa.DefaultEntrypoint
	c.Gate.Timeout = opa.DefaultTimeout
	c.Gate.OnError = onErrorOpen
	c.Gate.AllowBuiltins = []string{}
	c.Gate.AllowHosts = []string{}
	c.Audit.Params = paramsRecord
	c.Listen = []string{}
	c.Operators = []string{}
	c.TLS.Clients = clientRows{}
	c.Limits.RequestTimeout = time.Minute
	c.HTTP.Auth = authToken
	c.HTTP.AllowedOrigins = []string{}
	c.HTTP.AllowedHosts = []string{}
	c.Log.Format = "text"
	return c
}

// value is what some place says about a key.
type value struct {
	text  string
	list  []string          // for lists
	table map[string]string // for tables
	base  string            // the folder that relative paths start from
}

// put checks v and stores it. The error does not say where v came from.
func (s setting) put(v value) error {
	switch into := s.into.(type) {
	case *string:
		if err := s.allowed(v.text); err != nil {
			return err
		}
		var err error
		if s.path {
			v.text, err = absolute(v.text, v.base)
		}
		*into = v.text
		return err
	case *time.Duration:
		d, err := time.ParseDuration(v.text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a duration above zero; write a number and a unit, as 250ms, 10s or 1m", v.text)
		}
		*into = d
	case *[]string:
		for _, item := range v.list {
			if err := s.allowed(item); err != nil {
				return err
			}
		}
		*into = v.list
	case *map[string]string:
		for name, item := range v.table {
			if err := checkPack(name); err != nil {
				return err
			}
			if err := s.allowed(item); err != nil {
				return err
			}
		}
		*into = v.table
	default:
		return fmt.Errorf("key %s has no type", s.key)
	}
	return nil
}

// absolute is path as seen from the folder base, or from the home folder when it begins with ~/.
// An empty path stays empty.
func absolute(path, base string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%q: %w", path, err)
		}
		return filepath.Join(home, rest), nil
	}
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Join(base, path), nil
}

// parse reads a value written as one text, as variables and flags have it: the items of a list, and
// the pairs of a table, are separated by commas.
func (s setting) parse(text, base string) (value, error) {
	v := value{text: text, base: base}
	switch s.into.(type) {
	case *[]string:
		v.list = splitList(text)
	case *map[string]string:
		v.table = map[string]string{}
		for _, pair := range splitList(text) {
			name, item, ok := strings.Cut(pair, "=")
			if !ok {
				return v, fmt.Errorf("%q is not a pair; write pack=backend, separated by commas", pair)
			}
			v.table[name] = item
		}
	}
	return v, nil
}

func splitList(text string) []string {
	out := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func (s setting) allowed(text string) error {
	if s.enum != nil && !slices.Contains(s.enum, text) {
		return fmt.Errorf("%q is not one of its values: %s", text, strings.Join(slices.DeleteFunc(slices.Clone(s.enum), func(e string) bool { return e == "" }), ", "))
	}
	if s.check != nil {
		return s.check(text)
	}
	return nil
}

// stateDir is the folder for data that nobody configured a place for.
func stateDir() (string, error) {
	// The XDG rules say that a relative path there is to be ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "verbgate"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("no place for the data: neither HOME nor XDG_STATE_HOME names a folder; set data_dir, or VERBGATE_DATA_DIR")
	}
	return filepath.Join(home, ".local", "state", "verbgate"), nil
}

// errEmpty refuses an empty value that would quietly mean something else, such as the starter policy.
var errEmpty = errors.New("it is empty; give it a value, or leave it out")

func notEmpty(text string) error {
	if text == "" {
		return errEmpty
	}
	return nil
}

func checkNamespace(text string) error {
	if err := dispatcher.ValidateNamespace(text); err != nil {
		return fmt.Errorf("%q is not a namespace: %w", text, err)
	}
	return nil
}

// checkPack accepts the packs that this program was built with.
func checkPack(name string) error {
	var known []string
	for _, p := range packs.Registered() {
		known = append(known, p.Manifest().Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	slices.Sort(known)
	return fmt.Errorf("there is no pack %q; this program was built with %s", name, strings.Join(known, ", "))
}

// checkBackend accepts what can be the name of a file in the data folder, beside the audit store.
func checkBackend(name string) error {
	if name == "audit" {
		return errors.New("audit is the audit store's own file; choose another name")
	}
	ok := name != "" && name[0] >= 'a' && name[0] <= 'z' && len(name) <= 64
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}
	if !ok {
		return fmt.Errorf("%q cannot name a backend; write a lower-case letter, then up to 63 of a-z 0-9 _", name)
	}
	return nil
}
