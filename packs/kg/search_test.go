package kg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestSearch(t *testing.T) {
	w := open(t)
	a, b := in("a"), in("b")
	both := in("a", "b")
	lora := w.entity(a, "LoRA", object{"description": "Low-rank adaptation of large language models. Café crème.", "tags": list("peft", "ml")})
	qlora := w.entity(a, "QLoRA", object{"entity_kind": "paper", "description": "Quantised LoRA for GPUs"})
	cjk := w.note(b, "画像認識技術とGPT4モデルの応用。データベース。タイ語 ภาษาไทย 한국어를 공부한다")
	emoji := w.note(b, "ship it 🚀❤️ don't panic; snake_case and C++ \x00 after nul")
	note := w.must(a, "create", object{"kind": "note", "note_kind": "observation", "title": "Meeting", "content": "We spoke about adapters", "tags": list("ml")})["id"].(string)
	w.entity(in("z"), "LoRA", object{"tags": list("ml")})
	for _, tt := range []struct {
		name       string
		who        packs.Token
		params     object
		want       []string
		kind, text string
	}{
		{name: "OK seed", params: object{"kind": "entity", "query": "LoRA"}, want: []string{lora, qlora}},
		{name: "OK name before text", params: object{"query": "lora"}, want: []string{lora, qlora}},
		{name: "OK tags are words", params: object{"query": "peft"}, want: []string{lora}},
		{name: "OK title", params: object{"query": "meeting"}, want: []string{note}},
		{name: "OK beginnings of words", params: object{"query": "adapt"}, want: []string{note, lora}},
		{name: "OK no beginnings of short words", params: object{"query": "la"}, want: []string{}},
		{name: "OK all words", params: object{"query": "lora gpus"}, want: []string{qlora}},
		{name: "OK all words in any order and field", params: object{"query": "models peft LORA"}, want: []string{lora}},
		{name: "OK any word", params: object{"query": "peft meeting nonsense", "match": "any"}, want: []string{note, lora}},
		{name: "OK accents", params: object{"query": "cafe creme"}, want: []string{lora}},
		{name: "OK punctuation in a word", params: object{"query": "low-rank"}, want: []string{lora}},
		{name: "OK kind", params: object{"query": "ml", "kind": "note"}, want: []string{note}},
		{name: "OK entity_kind", params: object{"query": "lora", "entity_kind": "paper"}, want: []string{qlora}},
		{name: "OK note_kind", params: object{"query": "ml", "note_kind": "observation"}, want: []string{note}},
		{name: "OK tag", params: object{"query": "lora", "tag": "peft"}, want: []string{lora}},
		{name: "OK tag that nothing has", params: object{"query": "lora", "tag": "PEFT"}, want: []string{}},
		{name: "OK limit", params: object{"query": "lora", "limit": number(1)}, want: []string{lora}},
		{name: "OK two Han characters in a run", params: object{"query": "認識"}, want: []string{cjk}},
		{name: "OK one Han character", params: object{"query": "技"}, want: []string{cjk}},
		{name: "OK Han characters in the wrong order", params: object{"query": "識認"}, want: []string{}},
		{name: "OK long vowels", params: object{"query": "データ"}, want: []string{cjk}},
		{name: "OK long vowels in the wrong order", params: object{"query": "デタ"}, want: []string{}},
		{name: "OK mixed scripts", params: object{"query": "GPT4モデル"}, want: []string{cjk}},
		{name: "OK Thai", params: object{"query": "ไทย"}, want: []string{cjk}},
		{name: "OK Hangul", params: object{"query": "한국어"}, want: []string{cjk}},
		{name: "OK emoji", params: object{"query": "🚀"}, want: []string{emoji}},
		{name: "OK emoji with a variation selector", params: object{"query": "❤️"}, want: []string{emoji}},
		{name: "OK other emoji", params: object{"query": "🛸"}, want: []string{}},
		{name: "OK apostrophe", params: object{"query": "don't"}, want: []string{emoji}},
		{name: "OK underscore", params: object{"query": "snake_case"}, want: []string{emoji}},
		{name: "OK after NUL", params: object{"query": "nul\x00after"}, want: []string{emoji}},
		{name: "OK own namespace only", who: b, params: object{"query": "lora"}, want: []string{}},
		{name: "OK no namespace at all", who: token{namespace: "a"}, params: object{"query": "lora"}, want: []string{}},
		{name: "OK unknown namespace", who: in("nowhere"), params: object{"query": "lora"}, want: []string{}},
		{name: "OK a star is a name like any other", who: in("*"), params: object{"query": "lora"}, want: []string{}},
		{name: "Err no query", params: object{}, kind: invalid, text: "query"},
		{name: "Err empty", params: object{"query": ""}, kind: invalid, text: "query: holds nothing to look for"},
		{name: "Err blank", params: object{"query": " \t\n"}, kind: invalid, text: "query: holds nothing to look for"},
		{name: "Err punctuation", params: object{"query": `"*":^-(`}, kind: invalid, text: "query: holds nothing to look for"},
		{name: "Err too many words", params: object{"query": strings.Repeat("w ", 33)}, kind: invalid, text: "query: has 33 words"},
		{name: "Err too long", params: object{"query": strings.Repeat("w", 4097)}, kind: invalid, text: "query: has 4097 bytes"},
		{name: "Err limit", params: object{"query": "x", "limit": number(101)}, kind: invalid, text: "limit"},
		{name: "Err match", params: object{"query": "x", "match": "some"}, kind: invalid, text: "match"},
		{name: "Err tag null (fc-025)", params: object{"query": "x", "tag": nil}, kind: invalid, text: "tag: is null"},
		{name: "Err empty tag", params: object{"query": "x", "tag": ""}, kind: invalid, text: "tag: is blank"},
	} {
		if tt.who == nil {
			tt.who = both
		}
		for via, call := range map[string]func() (object, error){
			"":         func() (object, error) { return w.call(tt.who, "search", tt.params) },
			" by hand": func() (object, error) { return w.direct(context.Background(), tt.who, "search", tt.params) },
		} {
			t.Run(tt.name+via, func(t *testing.T) {
				got, err := call()
				requireKind(t, err, tt.kind, tt.text)
				if tt.kind == ok {
					require.Equal(t, tt.want, pluck(got, "id"))
					require.EqualValues(t, fmt.Sprint(len(tt.want)), got["count"])
				}
			})
		}
	}
}

// What a caller writes is never read as FTS5's query language or as SQL.
func TestSearchInjection(t *testing.T) {
	w := open(t)
	me := in("a")
	w.entity(me, "harmless")
	w.entity(in("z"), "secret")
	for _, query := range []string{
		`"`, `""`, `'`, `*`, `secret*`, `"secret" OR "secret"`, `secret OR harmless`, `harmless OR secret`, `NOT harmless`, `harmless NOT secret`,
		`name:secret`, `{name body}:secret`, `- name : secret`, `^secret`, `NEAR(secret harmless, 5)`, `secret + secret`, `(secret`, `secret)`,
		`secret" OR "harmless`, `x') OR 1=1 --`, `x'; DROP TABLE kg_records; --`, `rank`, `kg_fts`, `rowid:1`, `\`, `%`, `_`, "secret\x00",
		`AND`, `OR`, `NOT`, `AND OR NOT`, `u73 ecret`,
	} {
		for _, match := range []string{"all", "any"} {
			got, err := w.call(me, "search", object{"query": query, "match": match})
			if err != nil {
				require.ErrorAs(t, err, new(*packs.InvalidError), query)
				continue
			}
			for _, name := range pluck(got, "name") {
				require.Equal(t, "harmless", name, query)
			}
			if match == "all" && !strings.EqualFold(query, "harmless") {
				require.Empty(t, got["items"], query)
			}
		}
	}
	require.Equal(t, 2, w.rows("kg_records"))
}

func TestSearchRanking(t *testing.T) {
	w := open(t)
	me := in("a")
	body := w.must(me, "create", object{"kind": "note", "content": "the transformer architecture"})["id"].(string)
	tag := w.entity(me, "Something", object{"tags": list("transformer")})
	longer := w.entity(me, "Transformers")
	exact := w.entity(me, "Transformer")
	same1, same2 := w.entity(me, "Twin star"), w.entity(me, "Twin star")
	for range 10 {
		w.note(me, "filler text that says nothing of the matter")
	}
	t.Run("OK name, tag, text, and last what only begins with the word", func(t *testing.T) {
		got := w.must(me, "search", object{"query": "transformer"})
		ids := pluck(got, "id")
		require.Equal(t, []string{exact, tag, body, longer}, ids)
		last := 1.0
		for i, item := range got["items"].([]any) {
			score, err := item.(object)["score"].(interface{ Float64() (float64, error) }).Float64()
			require.NoError(t, err)
			require.LessOrEqual(t, score, last)
			require.Positive(t, score)
			if i == 0 {
				require.InDelta(t, 1, score, 0)
			}
			last = score
		}
	})
	t.Run("OK newest first among equals, always", func(t *testing.T) {
		for range 5 {
			require.Equal(t, []string{same2, same1}, pluck(w.must(me, "search", object{"query": "twin"}), "id"))
		}
	})
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("before and ", 40) + "the NEEDLE lies\n\nhere " + strings.Repeat("after and ", 40)
	for _, tt := range []struct{ name, content, query, want string }{
		{"OK short text whole", "one two", "two", "one two"},
		{"OK around the place", long, "needle", "…" + strings.Repeat("before and ", 5) + "the NEEDLE lies here " +
			strings.Repeat("after and ", 16) + "af…"},
		{"OK characters are not cut", strings.Repeat("é", 100) + " needle " + strings.Repeat("語", 100), "needle",
			"…" + strings.Repeat("é", 30) + " needle " + strings.Repeat("語", 57) + "…"},
		{"OK run of characters", strings.Repeat("あ", 100) + "画像", "画像", "…" + strings.Repeat("あ", 20) + "画像"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t)
			w.note(in("a"), tt.content)
			got := w.must(in("a"), "search", object{"query": tt.query})
			require.Equal(t, []string{tt.want}, pluck(got, "snippet"))
		})
	}
	t.Run("OK the beginning when only the title matches, none without text", func(t *testing.T) {
		w := open(t)
		w.must(in("a"), "create", object{"kind": "note", "title": "title", "content": "content"})
		w.entity(in("a"), "title")
		items := w.must(in("a"), "search", object{"query": "title"})["items"].([]any)
		require.NotContains(t, items[0], "snippet")
		require.Equal(t, "content", items[1].(object)["snippet"])
	})
}

// The index follows every kind of write.
func TestSearchFollowsWrites(t *testing.T) {
	w := open(t)
	me := in("a")
	found := func(query string) int {
		return len(w.must(me, "search", object{"query": query})["items"].([]any))
	}
	id := w.entity(me, "alpha", object{"description": "beta", "tags": list("gamma")})
	require.Equal(t, []int{1, 1, 1}, []int{found("alpha"), found("beta"), found("gamma")})
	w.must(me, "update", object{"id": id, "name": "delta", "description": nil, "tags": list("epsilon")})
	require.Equal(t, []int{0, 0, 0}, []int{found("alpha"), found("beta"), found("gamma")})
	require.Equal(t, []int{1, 1}, []int{found("delta"), found("epsilon")})
	other := w.entity(me, "zeta", object{"tags": list("eta")})
	w.must(me, "merge_entity", object{"into_id": id, "from_id": other})
	require.Equal(t, []int{0, 1}, []int{found("zeta"), found("eta")})
	w.must(me, "delete", object{"id": id})
	require.Equal(t, []int{0, 0, 0}, []int{found("delta"), found("epsilon"), found("eta")})
	require.Zero(t, w.rows("kg_fts"))
	require.Zero(t, w.rows("kg_tags"))
}
