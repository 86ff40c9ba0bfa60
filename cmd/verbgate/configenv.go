package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix begins the name of every variable the program reads: key a.b is VERBGATE_A_B.
const envPrefix = "VERBGATE_"

// Variables that are not keys of the configuration.
const (
	envConfig    = "VERBGATE_CONFIG"     // --config
	envToken     = "VERBGATE_TOKEN"      // the bearer token of request --server
	envTokenFile = "VERBGATE_TOKEN_FILE" // --token-file of request --server
)

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// mustHave are the variables that may not be empty: one that was to name the policy, or the file that
// names it, must not leave the starter policy in charge because what it was made from was not set.
var mustHave = []string{envConfig, envName("gate.policy")}

// lookup returns a variable's value; an empty variable is not set.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// loadEnv lays the environment over c. A VERBGATE_ variable that is no key is refused: a misspelt
// VERBGATE_GATE_POLICY must not leave the starter policy in charge.
func (c *config) loadEnv(environ []string) error {
	settings := c.settings()
	var known []string
	for _, s := range settings {
		known = append(known, envName(s.key))
	}
	for _, kv := range environ {
		name, text, _ := strings.Cut(kv, "=")
		if text == "" && slices.Contains(mustHave, name) {
			return fmt.Errorf("variable %s: %w", name, errEmpty)
		}
		if !strings.HasPrefix(name, envPrefix) || slices.Contains([]string{envConfig, envToken, envTokenFile}, name) {
			continue
		}
		at := slices.Index(known, name)
		if at < 0 {
			return fmt.Errorf("unknown variable %s; key a.b of the configuration is %sA_B. The variables are %s", name, envPrefix,
				strings.Join(append(known, envConfig, envToken, envTokenFile), ", "))
		}
		if text == "" {
			continue
		}
		if err := settings[at].putText(text); err != nil {
			return fmt.Errorf("variable %s: %w", name, err)
		}
	}
	return nil
}

// putFlag stores a value given on the command line, where nobody writes down what is not meant.
func (s setting) putFlag(text string) error {
	if s.other && len(splitList(text)) == 0 {
		return errEmpty
	}
	return s.putText(text)
}

// putText stores a value written as one text outside of a file.
func (s setting) putText(text string) error {
	if into, ok := s.into.(special); ok {
		return putSpecial(s.key, into, text)
	}
	base, err := os.Getwd()
	if err != nil {
		return err
	}
	v, err := s.parse(text, base)
	if err != nil {
		return err
	}
	return s.put(v)
}

// globalFlags are the flags of every command.
type globalFlags struct {
	config    string
	set       []string
	shorthand *pflag.FlagSet
}

// shorthands are flags that stand for a key.
var shorthands = []struct{ flag, key, usage string }{
	{"data-dir", "data_dir", "folder for the databases, the audit store and the HTTP token"},
	{"policy", "gate.policy", "policy folder or .tar.gz bundle (default: the starter policy built in)"},
	{"namespace", "namespace", "namespace of calls that name none"},
	{"log-level", "log.level", "debug, info, warn or error"},
	{"log-format", "log.format", "text or json"},
}

func (f *globalFlags) register(fs *pflag.FlagSet) {
	f.shorthand = fs
	fs.StringVar(&f.config, "config", "", "configuration file (also "+envConfig+")")
	fs.StringArrayVar(&f.set, "set", nil, "set any key of the configuration, as --set gate.timeout=1s; may be repeated")
	for _, s := range shorthands {
		fs.String(s.flag, "", s.usage)
	}
}

// loadFlags lays the flags over c.
func (c *config) loadFlags(f *globalFlags) error {
	settings := c.settings()
	find := func(key string) (setting, bool) {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
		if at < 0 {
			return setting{}, false
		}
		return settings[at], true
	}
	for _, kv := range f.set {
		key, text, ok := strings.Cut(kv, "=")
		if !ok {
			return &usageError{fmt.Errorf("--set %s: write key=value", kv)}
		}
		s, ok := find(key)
		if !ok {
			return &usageError{fmt.Errorf("--set: unknown key %s", key)}
		}
		if err := s.putFlag(text); err != nil {
			return &usageError{fmt.Errorf("--set %s: %w", key, err)}
		}
	}
	for _, short := range shorthands {
		if !f.shorthand.Changed(short.flag) {
			continue
		}
		s, _ := find(short.key)
		if err := s.putFlag(f.shorthand.Lookup(short.flag).Value.String()); err != nil {
			return &usageError{fmt.Errorf("--%s: %w", short.flag, err)}
		}
	}
	return nil
}

// configuration is what the command runs with.
func (c *cli) configuration() (*config, error) {
	cfg := defaults()
	path := c.flags.config
	if path == "" && c.flags.shorthand.Changed("config") {
		return nil, &usageError{fmt.Errorf("--config: %w", errEmpty)}
	}
	if path == "" {
		path = lookup(c.environ, envConfig)
	}
	if path != "" {
		if err := cfg.loadFile(path); err != nil {
			return nil, &startError{err}
		}
	}
	if err := cfg.loadEnv(c.environ); err != nil {
		return nil, &startError{err}
	}
	if err := cfg.loadFlags(&c.flags); err != nil {
		return nil, err
	}
	if cfg.DataDir == "" {
		dir, err := stateDir()
		if err != nil {
			return nil, &startError{err}
		}
		cfg.DataDir = dir
	}
	return cfg, nil
}
