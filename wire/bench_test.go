package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// plainRequest is what a program without this package would decode a request into.
type plainRequest struct {
	Kind              string   `json:"kind"`
	ID                string   `json:"id"`
	Ops               string   `json:"ops"`
	DeadlineMS        *uint64  `json:"deadline_ms,omitempty"`
	Namespace         *string  `json:"namespace,omitempty"`
	ActorID           *string  `json:"actor_id,omitempty"`
	VisibleNamespaces []string `json:"visible_namespaces,omitempty"`
}

// request300 is a request whose payload is 300 bytes.
func request300(tb testing.TB) (wire.Request, []byte) {
	f := wire.Request{
		ID: "op-000042",
		Ops: `search(kind="entity", query="low-rank adapters") | link(source_id=$prev.id, ` +
			`target_id="9d2a", relation="uses")`,
		DeadlineMS:        wire.Some(uint64(5000)),
		Namespace:         wire.Some("team.research"),
		ActorID:           wire.Some("agent-7"),
		VisibleNamespaces: wire.Some(wire.NewStringList("team.research", "shared")),
	}
	b, err := newCodec(tb, wire.Config{}).Encode(f)
	require.NoError(tb, err)
	f.Ops += strings.Repeat(" ", 300-(len(b)-wire.PrefixSize))
	b, err = newCodec(tb, wire.Config{}).Encode(f)
	require.NoError(tb, err)
	require.Len(tb, b, wire.PrefixSize+300)
	return f, b
}

func decodeOurs(codec wire.Codec, b []byte) error {
	_, err := codec.Decode(b)
	return err
}

// decodeStrictJSON is the closest encoding/json comes to the same work: one value, no unknown member.
func decodeStrictJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b[wire.PrefixSize:]))
	dec.DisallowUnknownFields()
	var v plainRequest
	if err := dec.Decode(&v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows: %w", err)
	}
	return nil
}

func plain(f wire.Request) *plainRequest {
	deadline, _ := f.DeadlineMS.Get()
	namespace, _ := f.Namespace.Get()
	actor, _ := f.ActorID.Get()
	visible, _ := f.VisibleNamespaces.Get()
	return &plainRequest{
		Kind: "request", ID: string(f.ID), Ops: f.Ops, DeadlineMS: &deadline, Namespace: &namespace,
		ActorID: &actor, VisibleNamespaces: visible.Slice(),
	}
}

func BenchmarkDecodeRequest(b *testing.B) {
	_, data := request300(b)
	codec := newCodec(b, wire.Config{})
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if err := decodeOurs(codec, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if err := decodeStrictJSON(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncodeRequest(b *testing.B) {
	f, data := request300(b)
	codec := newCodec(b, wire.Config{})
	p := plain(f)
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := codec.Encode(f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("wire append", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		var buf []byte
		frame := wire.Frame(f)
		for b.Loop() {
			var err error
			if buf, err = codec.AppendEncode(buf[:0], frame); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := json.Marshal(*p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json pointer", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := json.Marshal(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRatio takes both sides of each comparison in turn, ten times over, and reports the median
// of the ten ratios, which holds on a busy machine where single figures do not.
func BenchmarkRatio(b *testing.B) {
	f, data := request300(b)
	codec := newCodec(b, wire.Config{})
	p := plain(f)
	compare := func(name string, ours, theirs func() error) {
		b.Run(name, func(b *testing.B) {
			const rounds, times = 10, 5000
			measure := func(work func() error) float64 {
				start := time.Now()
				for range times {
					if err := work(); err != nil {
						b.Fatal(err)
					}
				}
				return float64(time.Since(start))
			}
			var median float64
			for b.Loop() {
				var ratios []float64
				for range rounds {
					ratios = append(ratios, measure(ours)/measure(theirs))
				}
				slices.Sort(ratios)
				median = (ratios[rounds/2-1] + ratios[rounds/2]) / 2
			}
			b.ReportMetric(median, "ours/json")
		})
	}
	var buf []byte
	compare("decode",
		func() error { return decodeOurs(codec, data) },
		func() error { return decodeStrictJSON(data) })
	compare("encode",
		func() error { _, err := codec.Encode(f); return err },
		func() error { _, err := json.Marshal(p); return err })
	compare("append",
		func() (err error) { buf, err = codec.AppendEncode(buf[:0], f); return err },
		func() error { _, err := json.Marshal(p); return err })
}

func BenchmarkDecodeResponse(b *testing.B) {
	row := `{"id":"0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11","kind":"entity","name":"Löw-rank \"adapters\"","score":0.8125,"tags":["a","b"],"n":12345},`
	result := "[" + strings.TrimSuffix(strings.Repeat(row, 8000), ",") + "]"
	codec := newCodec(b, wire.Config{})
	data, err := codec.Encode(wire.Response{ID: "op-1", Result: json.RawMessage(result)})
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := codec.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
