package request_test

import (
	"strings"
	"testing"

	"github.com/verbgate/verbgate/dispatcher/request"
)

const batchOfTen = `[
  create(kind="entity", entity_kind="concept", name="LoRA", tags=["adapter", "fine-tuning"]),
  create(kind="note", text="Low-rank adapters freeze the base weights.\nThey train two small matrices.", salience=0.8),
  link(source_id="0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11", target_id="9d2a7a44-8f7e-4f0b-b7fb-0a3fca1f0e55", relation="introduced_by"),
  search(kind="entity", query="LoRA", limit=10),
  get(id="0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11"),
  list(kind="entity", filter={"tag": "adapter", "since": "2026-01-01", "archived": false}, limit=25),
  neighbors(id="0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11", depth=2, relations=["introduced_by", "uses"]),
  memory.remember(text="The user prefers short answers", salience=0.5, tags=["style"]),
  memory.recall(query="attention cache behavior", limit=3),
  stats()
]`

func bench(b *testing.B, text string) {
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := request.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func asJSON(tb testing.TB, text string) string {
	tb.Helper()
	req, err := request.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return jsonForm(tb, req)
}

func BenchmarkParseBatchOfTen(b *testing.B)     { bench(b, batchOfTen) }
func BenchmarkParseBatchOfTenJSON(b *testing.B) { bench(b, asJSON(b, batchOfTen)) }
func BenchmarkParseOne(b *testing.B)            { bench(b, `get(id="0b0e3c1a-3c0f-4f0e-8a51-9b6c6f6d2f11")`) }

func BenchmarkParseChain(b *testing.B) {
	bench(b, `create(kind="entity", entity_kind="concept", name="LoRA") | link(source_id=$prev.id, target_id="x", relation="introduced_by")`)
}

func BenchmarkParseLongText(b *testing.B) {
	bench(b, `note(text="`+strings.Repeat("A line of ordinary text, with commas.\n", 6000)+`")`)
}

func BenchmarkParseNumbers(b *testing.B) {
	bench(b, `v(a=[`+strings.Repeat("1,", 500_000)+`1])`)
}

func BenchmarkParseRefused(b *testing.B) {
	text := `v(a=` + strings.Repeat("[", 1<<20-10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.Parse(text); err == nil {
			b.Fatal("parsed")
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	req, err := request.Parse(batchOfTen)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = req.String()
	}
}

func BenchmarkAny(b *testing.B) {
	req, err := request.Parse(batchOfTen)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, op := range req.Ops {
			for _, a := range op.Args {
				if _, err := a.Value.Any(nil); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
