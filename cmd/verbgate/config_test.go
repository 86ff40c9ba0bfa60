package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What verbgate init writes has every key, and says of each what is true without it.
func TestDocument(t *testing.T) {
	text := defaults().document()
	loaded := &config{} // not the defaults: every value must come from the text
	base := t.TempDir()
	require.NoError(t, loaded.load([]byte(text), "verbgate.yaml", base))

	want := defaults()
	require.Equal(t, filepath.Join(base, policyName), loaded.Gate.Policy, "the one key that is not at its default")
	loaded.Gate.Policy = want.Gate.Policy
	require.Equal(t, want, loaded)

	for _, s := range want.settings() {
		require.NotEmpty(t, s.doc, s.key)
		name := s.key[strings.LastIndex(s.key, ".")+1:]
		require.Regexp(t, `(?m)^ *# .+\n *`+name+`: `, text, s.key)
		for line := range strings.SplitSeq(s.doc, "\n") {
			require.LessOrEqual(t, len(line), 96, s.key)
		}
	}
}

// Every key arrives by every way, and the ways beat each other in the documented order.
func TestConfigurationWays(t *testing.T) {
	samples := map[string][2]string{ // two values that differ from the default
		"data_dir": {"/a", "/b"}, "namespace": {"a", "b"}, "visible": {"a", "b"}, "packs": {"kg", "probe"},
		"backends": {"kg=a", "kg=b"}, "gate.policy": {"/a", "/b"}, "gate.entrypoint": {"data.a", "data.b"},
		"gate.timeout": {"1s", "2s"}, "gate.on_error": {"closed", "open"}, "gate.allow_builtins": {"a", "b"}, "gate.allow_hosts": {"a", "b"},
		"audit.params": {"none", "record"}, "limits.request_timeout": {"1s", "2s"}, "http.addr": {"a", "b"},
		"http.auth": {"none", "token"}, "http.allowed_origins": {"a", "b"}, "http.allowed_hosts": {"a", "b"},
		"log.level": {"warn", "error"}, "log.format": {"json", "text"},
		"listen": {"unix://", "unix:///a,tls://127.0.0.1:1"}, "operators": {"user:a", "user:b"},
		"audit.retention.age": {"720h", "1h30m"}, "audit.retention.rows": {"1", "1000000"}, "unix.trust_actor_id": {"true", "false"},
		"tls.cert": {"/a", "/b"}, "tls.key": {"/a", "/b"}, "tls.client_ca": {"/a", "/b"}, "tcp.plain": {"true", "false"},
		"tls.clients": {`[{name: "CN=a,O=b", actor: user:a, namespace: a, visible: [b, c]}]`, `[{name: spiffe://a/b, actor: user:b, namespace: b}]`},
	}
	show := func(c *config, key string) string {
		for _, s := range c.settings() {
			if s.key == key {
				return s.text()
			}
		}
		return ""
	}
	for _, s := range defaults().settings() {
		t.Run(s.key, func(t *testing.T) {
			sample, ok := samples[s.key]
			require.True(t, ok, "no samples")
			first, second := defaults(), defaults()
			for _, side := range []struct {
				c    *config
				text string
			}{{first, sample[0]}, {second, sample[1]}} {
				for _, into := range side.c.settings() {
					if into.key == s.key {
						require.NoError(t, into.putText(side.text))
					}
				}
			}
			require.NotEqual(t, show(first, s.key), show(second, s.key))

			file := filepath.Join(t.TempDir(), "verbgate.yaml")
			text := s.key + ": " + show(first, s.key) + "\n"
			if parent, child, nested := strings.Cut(s.key, "."); nested {
				text = parent + ":\n  " + child + ": " + show(first, s.key) + "\n"
			}
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

			c := cliWith(nil, "--config", file, "--data-dir", t.TempDir())
			if s.key == "data_dir" {
				c = cliWith(nil, "--config", file)
			}
			cfg, err := c.configuration()
			require.NoError(t, err)
			require.Equal(t, show(first, s.key), show(cfg, s.key), "from the file")

			c = cliWith([]string{envName(s.key) + "=" + sample[1]}, "--config", file)
			cfg, err = c.configuration()
			require.NoError(t, err)
			require.Equal(t, show(second, s.key), show(cfg, s.key), "a variable beats the file")

			c = cliWith([]string{envName(s.key) + "=" + sample[1]}, "--set", s.key+"="+sample[0])
			cfg, err = c.configuration()
			require.NoError(t, err)
			require.Equal(t, show(first, s.key), show(cfg, s.key), "a flag beats a variable")
		})
	}
}

// cliWith is a command line with these flags in this environment.
func cliWith(environ []string, flags ...string) *cli {
	c := &cli{environ: environ}
	root := c.command()
	if err := root.ParseFlags(flags); err != nil {
		panic(err)
	}
	return c
}

func TestEnvName(t *testing.T) {
	require.Equal(t, "VERBGATE_DATA_DIR", envName("data_dir"))
	require.Equal(t, "VERBGATE_GATE_ON_ERROR", envName("gate.on_error"))
	seen := map[string]string{envConfig: "--config", envToken: "token", envTokenFile: "token file"}
	for _, s := range defaults().settings() {
		require.NotContains(t, seen, envName(s.key), "two keys with one variable")
		seen[envName(s.key)] = s.key
	}
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		250 * time.Millisecond: "250ms", time.Second: "1s", time.Minute: "1m", 90 * time.Second: "1m30s",
		time.Hour: "1h", time.Hour + time.Minute: "1h1m", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s",
	} {
		require.Equal(t, want, shortDuration(d))
		back, err := time.ParseDuration(want)
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
}

// Whatever the file holds, loading it ends with a configuration or with an error that names the file.
func FuzzConfigFile(f *testing.F) {
	f.Add(defaults().document())
	for _, text := range []string{
		"", "namespace: local", "namespace: [", "- a", "a: &x b\nc: *x", "gate:\n  timeout: 1s\n", "gate: {timeout: 1}", "? [a]\n: b",
		"<<: {namespace: a}", "!!binary aGk=", "namespace: !!str 1", "---\n---\n", "backends: {kg: a, kg: b}", "visible: [a, [b]]",
		"\xff", "namespace: |\n  local\n", "a: b: c", "'", "%YAML 1.2\n---\nnamespace: a", "log: null",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := defaults()
		if err := c.load([]byte(text), "fuzz.yaml", "/base"); err != nil {
			require.Contains(t, err.Error(), "fuzz.yaml")
			return
		}
		require.Positive(t, c.Gate.Timeout)
		require.Contains(t, []string{onErrorOpen, onErrorClosed}, c.Gate.OnError)
		require.Contains(t, []string{authToken, authNone}, c.HTTP.Auth)
	})
}

func FuzzParseLine(f *testing.F) {
	for _, line := range []string{`"a()"`, `"a(x=\"\\u00e9\")"`, "\"\xff\"", `"`, `""`, `"\`, `"\ud800"`, "\"\\\xff\"", `a`, `" "x`, "\"a\xc3\""} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		text, err := decodeLine(line)
		if err == nil {
			require.LessOrEqual(t, len(text), len(line))
		}
	})
}
