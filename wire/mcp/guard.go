package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Auth says how HTTP callers prove who they are. The zero value asks for the bearer token.
type Auth uint8

const (
	// AuthToken: the bearer token of HTTPConfig.Token makes the caller Config.Caller's actor.
	AuthToken Auth = iota
	// AuthNone: every caller is anonymous:http. For loopback only.
	AuthNone
)

// guard decides whether an HTTP request may be read at all. It looks at its head only.
type guard struct {
	auth    Auth
	token   [sha256.Size]byte // of the token, so that comparing tells nothing of its length
	hosts   []string          // allowed beside the loopback names, lower case
	origins []string
}

func newGuard(cfg HTTPConfig) (*guard, error) {
	g := &guard{auth: cfg.Auth}
	var problems []error
	switch cfg.Auth {
	case AuthToken:
		if len(cfg.Token) < minToken {
			problems = append(problems, fmt.Errorf("the bearer token has %d characters, at least %d are needed", len(cfg.Token), minToken))
		}
		g.token = sha256.Sum256([]byte(cfg.Token))
	case AuthNone:
		if cfg.Token != "" {
			problems = append(problems, errors.New("a bearer token is set and authentication is off; choose one"))
		}
	default:
		problems = append(problems, fmt.Errorf("unknown authentication %d", cfg.Auth))
	}
	for _, h := range cfg.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/*@ ,") {
			problems = append(problems, fmt.Errorf("allowed host %q is not a host name; write it as in example.org, or example.org:8080 for that port only", h))
		}
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	for _, o := range cfg.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			problems = append(problems, fmt.Errorf("allowed origin %q is not an origin; write it as in https://example.org", o))
		}
		g.origins = append(g.origins, strings.ToLower(o))
	}
	return g, errors.Join(problems...)
}

// check answers a request that must go no further, and reports whether it may. Host comes first: it
// is what tells a page that rebound its own name to this machine.
func (g *guard) check(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !g.hostAllowed(r.Host):
		http.Error(w, "forbidden: this server is not addressed by that Host; use localhost, or configure the name", http.StatusForbidden)
	case !g.originAllowed(r):
		http.Error(w, "forbidden: requests of that Origin are refused; configure the origin to allow it", http.StatusForbidden)
	case g.auth == AuthNone && !localIsLoopback(r):
		http.Error(w, "forbidden: anonymous callers are served on loopback only", http.StatusForbidden)
	case g.auth != AuthNone && !g.tokenValid(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unauthorized: send the header Authorization: Bearer <token>, once", http.StatusUnauthorized)
	default:
		return true
	}
	return false
}

func (g *guard) hostAllowed(host string) bool {
	host = strings.ToLower(host)
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if !isPort(port) {
			return false
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	return name == "localhost" || isLoopback(name) ||
		slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name)
}

func isPort(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 5
}

// isLoopback reports whether s is a loopback address in its plain spelling.
func isLoopback(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// originAllowed refuses what a browser sends on behalf of a page that this server did not serve.
// Programs send no Origin.
func (g *guard) originAllowed(r *http.Request) bool {
	sent, any := r.Header["Origin"]
	if !any {
		return true
	}
	if len(sent) != 1 {
		return false
	}
	origin := strings.ToLower(sent[0])
	return origin == "http://"+strings.ToLower(r.Host) || slices.Contains(g.origins, origin)
}

// localIsLoopback reports whether the connection came in by a loopback address.
func localIsLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	return addrIsLoopback(addr)
}

func addrIsLoopback(addr net.Addr) bool {
	ap, err := netip.ParseAddrPort(addr.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

func (g *guard) tokenValid(r *http.Request) bool {
	sent := r.Header["Authorization"]
	if len(sent) != 1 {
		return false
	}
	scheme, token, found := strings.Cut(sent[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimLeft(token, " ")))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
