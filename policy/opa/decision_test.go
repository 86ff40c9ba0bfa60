package opa_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
)

func TestOKDecisions(t *testing.T) {
	cases := []struct {
		name, rego string
		want       policy.Decision
	}{
		{"OK true", `decision := true`, policy.Decision{Verdict: policy.Allow}},
		{"OK false", `decision := false`, policy.Decision{Reason: "denied by policy"}},
		{"OK object that allows", `decision := {"decision": "allow"}`, policy.Decision{Verdict: policy.Allow}},
		{"OK allow with a reason and a code", `decision := {"decision": "allow", "reason": "staff", "code": "a.b_9"}`, policy.Decision{Verdict: policy.Allow, Reason: "staff", Code: "a.b_9"}},
		{"OK allow with an empty reason", `decision := {"decision": "allow", "reason": "", "obligations": []}`, policy.Decision{Verdict: policy.Allow, Obligations: []policy.Obligation{}}},
		{"OK deny", `decision := {"decision": "deny", "reason": "not yours"}`, policy.Decision{Reason: "not yours"}},
		{"OK deny with a code", `decision := {"decision": "deny", "reason": "no", "code": "` + strings.Repeat("a", 64) + `"}`, policy.Decision{Reason: "no", Code: strings.Repeat("a", 64)}},
		{"OK deny with a tag", `decision := {"decision": "deny", "reason": "no", "obligations": [{"kind": "audit", "tag": "pii"}]}`, policy.Decision{Reason: "no", Obligations: []policy.Obligation{policy.AuditTag{Tag: "pii"}}}},
		{"OK object of partial rules", "decision.decision := \"deny\"\n\ndecision.reason := \"in parts\"", policy.Decision{Reason: "in parts"}},
		{"OK reason made fit for people", `decision := {"decision": "deny", "reason": " two\nlines\t\u001b[31mred\u202e \u2028"}`, policy.Decision{Reason: "two lines  [31mred"}},
		{"OK long reason is cut", `decision := {"decision": "deny", "reason": "` + strings.Repeat("é", 2000) + `"}`, policy.Decision{Reason: strings.Repeat("é", 510) + "…"}},
		{"OK all obligations, in order",
			`decision := {"decision": "allow", "obligations": [
				{"kind": "redact", "paths": ["items[*].email", "users.*.key", "[0]"]},
				{"kind": "custom", "name": "notify", "value": {"to": ["ops"], "n": 18446744073709551617, "none": null, "yes": true}},
				{"kind": "rate_limit", "window_secs": 60, "max": 10},
				{"kind": "audit", "tag": "pii"},
				{"kind": "rate_limit", "window_secs": 6e1, "max": 5.0, "key": "per-user"},
			]}`,
			policy.Decision{Verdict: policy.Allow, Obligations: []policy.Obligation{
				policy.Redact{Paths: []string{"items[*].email", "users.*.key", "[0]"}},
				policy.Custom{Name: "notify", Value: map[string]any{"to": []any{"ops"}, "n": json.Number("18446744073709551617"), "none": nil, "yes": true}},
				policy.RateLimit{Window: time.Minute, Max: 10},
				policy.AuditTag{Tag: "pii"},
				policy.RateLimit{Window: time.Minute, Max: 5, Key: "per-user"},
			}}},
		{"OK custom with a null value", `decision := {"decision": "allow", "obligations": [{"kind": "custom", "name": "n", "value": null}]}`,
			policy.Decision{Verdict: policy.Allow, Obligations: []policy.Obligation{policy.Custom{Name: "n"}}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := gateOf(t, tc.rego)
			tc.want.Gate, tc.want.Revision = "opa", g.Status().Revision
			require.Equal(t, tc.want, g.Decide(t.Context(), call(nil)))
		})
	}
}

// Anything that is no decision denies. In particular nothing that merely looks like an allow allows.
func TestErrShapes(t *testing.T) {
	for name, rego := range map[string]string{
		"Err string true":            `decision := "true"`,
		"Err string allow":           `decision := "allow"`,
		"Err number":                 `decision := 1`,
		"Err null":                   `decision := null`,
		"Err array":                  `decision := []`,
		"Err array of true":          `decision := [true]`,
		"Err set":                    `decision := {true}`,
		"Err partial set":            "decision contains true",
		"Err partial set of two":     "decision contains {\"decision\": \"allow\"}\n\ndecision contains {\"decision\": \"deny\", \"reason\": \"no\"}",
		"Err empty object":           `decision := {}`,
		"Err misspelt member":        `decision := {"alow": true}`,
		"Err allow as a member":      `decision := {"allow": true}`,
		"Err allow as a string":      `decision := {"allow": "yes"}`,
		"Err nested":                 `decision := {"decision": {"decision": "allow"}}`,
		"Err result wrapped":         `decision := {"result": {"decision": "allow"}}`,
		"Err permit":                 `decision := {"decision": "permit"}`,
		"Err decision true":          `decision := {"decision": true}`,
		"Err decision null":          `decision := {"decision": null}`,
		"Err decision in capitals":   `decision := {"decision": "Allow"}`,
		"Err decision a list":        `decision := {"decision": ["allow"]}`,
		"Err unknown member":         `decision := {"decision": "allow", "note": "x"}`,
		"Err member that is no text": `decision := {"decision": "allow", 1: "x"}`,
		"Err reason no text":         `decision := {"decision": "allow", "reason": 1}`,
		"Err reason null":            `decision := {"decision": "allow", "reason": null}`,
		"Err deny without a reason":  `decision := {"decision": "deny"}`,
		"Err deny, reason empty":     `decision := {"decision": "deny", "reason": ""}`,
		"Err deny, reason blank":     `decision := {"decision": "deny", "reason": " \n\u202e"}`,
		"Err code empty":             `decision := {"decision": "allow", "code": ""}`,
		"Err code in capitals":       `decision := {"decision": "allow", "code": "Code"}`,
		"Err code with a dash":       `decision := {"decision": "allow", "code": "a-b"}`,
		"Err code too long":          `decision := {"decision": "allow", "code": "` + strings.Repeat("a", 65) + `"}`,
		"Err code no text":           `decision := {"decision": "allow", "code": 7}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := gateOf(t, rego).Decide(t.Context(), call(nil))
			requirePolicyError(t, d, "the policy returned an unrecognised decision (see the server log, decision d1)")
			require.Empty(t, d.Obligations)
			require.Empty(t, d.Code)
		})
	}
}

func TestErrObligations(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"kind": "audit", "tag": "a"},`, 65), ",")
	for name, list := range map[string]string{
		"Err no array":              `{"kind": "audit", "tag": "a"}`,
		"Err set":                   `{{"kind": "audit", "tag": "a"}}`,
		"Err null":                  `null`,
		"Err too many":              `[` + many + `]`,
		"Err element no object":     `["audit"]`,
		"Err element without kind":  `[{"tag": "a"}]`,
		"Err unknown kind":          `[{"kind": "notify"}]`,
		"Err kind no text":          `[{"kind": 1}]`,
		"Err key no text":           `[{"kind": "audit", "tag": "a", 1: 2}]`,
		"Err audit without tag":     `[{"kind": "audit"}]`,
		"Err audit empty tag":       `[{"kind": "audit", "tag": ""}]`,
		"Err audit tag no text":     `[{"kind": "audit", "tag": 1}]`,
		"Err audit tag with a line": `[{"kind": "audit", "tag": "a\nb"}]`,
		"Err audit tag too long":    `[{"kind": "audit", "tag": "` + strings.Repeat("a", 257) + `"}]`,
		"Err audit unknown member":  `[{"kind": "audit", "tag": "a", "tags": []}]`,
		"Err rate without window":   `[{"kind": "rate_limit", "max": 1}]`,
		"Err rate without max":      `[{"kind": "rate_limit", "window_secs": 1}]`,
		"Err rate zero window":      `[{"kind": "rate_limit", "window_secs": 0, "max": 1}]`,
		"Err rate negative max":     `[{"kind": "rate_limit", "window_secs": 1, "max": -1}]`,
		"Err rate zero max":         `[{"kind": "rate_limit", "window_secs": 1, "max": 0}]`,
		"Err rate fraction":         `[{"kind": "rate_limit", "window_secs": 1.5, "max": 1}]`,
		"Err rate huge window":      `[{"kind": "rate_limit", "window_secs": 1e300, "max": 1}]`,
		"Err rate window past":      `[{"kind": "rate_limit", "window_secs": 31622401, "max": 1}]`,
		"Err rate max as text":      `[{"kind": "rate_limit", "window_secs": 1, "max": "1"}]`,
		"Err rate empty key":        `[{"kind": "rate_limit", "window_secs": 1, "max": 1, "key": ""}]`,
		"Err rate key null":         `[{"kind": "rate_limit", "window_secs": 1, "max": 1, "key": null}]`,
		"Err rate misspelt":         `[{"kind": "rate_limit", "window": 1, "max": 1}]`,
		"Err redact without paths":  `[{"kind": "redact"}]`,
		"Err redact no paths":       `[{"kind": "redact", "paths": []}]`,
		"Err redact path as text":   `[{"kind": "redact", "paths": "a"}]`,
		"Err redact set":            `[{"kind": "redact", "paths": {"a"}}]`,
		"Err redact path no text":   `[{"kind": "redact", "paths": [1]}]`,
		"Err redact path bad":       `[{"kind": "redact", "paths": ["a", "b[-1]"]}]`,
		"Err custom without value":  `[{"kind": "custom", "name": "n"}]`,
		"Err custom without name":   `[{"kind": "custom", "value": 1}]`,
		"Err custom with a set":     `[{"kind": "custom", "name": "n", "value": [{1}]}]`,
		"Err custom with odd keys":  `[{"kind": "custom", "name": "n", "value": {1: 2}}]`,
		"Err the second is bad":     `[{"kind": "audit", "tag": "a"}, {"kind": "audit"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			g := gateOf(t, `decision := {"decision": "allow", "obligations": `+list+`}`)
			d := g.Decide(t.Context(), call(nil))
			requirePolicyError(t, d, "the policy returned a malformed obligation")
			require.Empty(t, d.Obligations)
		})
	}
	g := gateOf(t, `decision := {"decision": "deny", "reason": "no", "obligations": [{"kind": "redact", "paths": ["a"]}]}`)
	requirePolicyError(t, g.Decide(t.Context(), call(nil)), "the policy returned a malformed obligation")
}
