package wire_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// allowed is the promise of the package comment: what decoding n bytes may allocate.
func allowed(n int) uint64 { return 4*uint64(n) + 64<<10 }

// allocated is how many bytes work allocates in all, freed or not. Other goroutines allocate too, so
// it is the least of a few runs.
func allocated(most uint64, work func()) uint64 {
	least := ^uint64(0)
	var before, after runtime.MemStats
	for range 5 {
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= most {
			break
		}
	}
	return least
}

// What makes a decoder allocate most for its bytes.
func TestDecodeAllocatesInProportion(t *testing.T) {
	const n = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	codec := newCodec(t, wire.Config{})
	for name, payload := range map[string]string{
		"empty elements":      `{"kind":"request","id":"i","ops":"","visible_namespaces":[` + fill(`"",`) + `""]}`,
		"one-byte elements":   `{"kind":"request","id":"i","ops":"","visible_namespaces":[` + fill(`"a",`) + `""]}`,
		"escaped elements":    `{"kind":"request","id":"i","ops":"","visible_namespaces":[` + fill(`"\n",`) + `""]}`,
		"one escaped element": `{"kind":"request","id":"i","ops":"","visible_namespaces":["` + fill(`\n`) + `"]}`,
		"a few escapes":       `{"kind":"request","id":"i","ops":"","visible_namespaces":["` + fill(`\n`+strings.Repeat("a", 1000)) + `"]}`,
		"elements, then none": `{"kind":"request","id":"i","ops":"","visible_namespaces":[` + fill(`"",`) + `1]}`,
		"the same member":     `{"kind":"cancel",` + fill(`"id":"aaaaaaaa",`) + `"id":"i"}`,
		"unknown members":     `{"kind":"cancel",` + fill(`"a":1,`) + `"id":"i"}`,
		"one long name":       `{"kind":"cancel","` + fill(`\n`) + `":1}`,
		"a long kind":         `{"kind":"` + fill(`\n`) + `"}`,
		"a long code":         `{"kind":"error","id":"i","message":"","code":"` + fill(`a`) + `"}`,
		"escaped ops":         `{"kind":"request","id":"i","ops":"` + fill(`\n`) + `"}`,
		"a result of numbers": `{"kind":"response","id":"i","result":[` + fill(`1e308,`) + `1e308]}`,
		"a result of arrays":  `{"kind":"response","id":"i","result":[` + fill(`[],`) + `[]]}`,
		"a long number":       `{"kind":"response","id":"i","result":1` + fill(`0`) + `}`,
		"a bad end":           `{"kind":"response","id":"i","result":"` + fill(`\n`) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			b := prefixed(payload)
			most := allowed(len(b))
			require.LessOrEqual(t, allocated(most, func() { _, _ = codec.Decode(b) }), most)
		})
	}
}

// A length alone makes nobody allocate, whatever it says.
func TestLengthAllocatesNothing(t *testing.T) {
	codec := newCodec(t, wire.Config{MaxPayload: wire.Some(1<<31 - 1)})
	for _, b := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff, '{'}} {
		const most = 1 << 10
		got := allocated(most, func() {
			if f, err := codec.Decode(b); f != nil || err == nil {
				panic(fmt.Sprint("decoded ", b))
			}
		})
		require.LessOrEqual(t, got, uint64(most))
	}
}
