package policy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/policy"
)

func TestRecordJSON(t *testing.T) {
	record := policy.Record{
		ID: "r1", Kind: policy.KindDecision, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), RequestID: "q1", Count: 1,
		Source: "cli", Actor: "user:bob", Verb: "get", Decision: "deny", Effect: "denied", Reason: "a < b & c",
		Outcome: "not_run", Duration: 1500 * time.Microsecond, Params: json.RawMessage(`{"id":"<x>","n":9007199254740993}`),
	}
	text, err := json.Marshal(record)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"r1","kind":"decision","time":"2026-01-02T03:04:05.000000006Z","request_id":"q1","index":0,"count":1,
		"source":"cli","actor":"user:bob","verb":"get","decision":"deny","effect":"denied","reason":"a < b & c","obligations":[],
		"outcome":"not_run","duration_us":1500,"params":{"id":"<x>","n":9007199254740993}}`, string(text))

	var back policy.Record
	require.NoError(t, json.Unmarshal(text, &back))
	require.JSONEq(t, string(record.Params), string(back.Params))
	record.Obligations, record.Params, back.Params = []string{}, nil, nil
	require.Equal(t, record, back)

	// Embedded in something else it stays whole.
	text, err = json.Marshal(map[string]any{"record": record})
	require.NoError(t, err)
	require.Contains(t, string(text), `"duration_us":1500`)
	require.Error(t, json.Unmarshal([]byte(`{"time":1}`), &back))
}
