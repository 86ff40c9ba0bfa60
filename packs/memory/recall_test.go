package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestRecallFinds(t *testing.T) {
	for _, c := range []struct {
		name, content, query string
		found                bool
	}{
		{"OK word", "Attention cache behaviour", "cache", true},
		{"OK case", "Attention cache", "ATTENTION", true},
		{"OK any of the words", "Attention cache", "cache eviction", true},
		{"OK beginning of a word", "Attention caches", "cach", true},
		{"OK accents", "Café crème", "cafe creme", true},
		{"OK accents the other way", "cafe", "café", true},
		{"OK Greek", "Ἀλήθεια ΣΊΣΥΦΟΣ", "σίσυφος", true},
		{"OK Cyrillic", "Привет мир", "привет", true},
		{"OK digits", "port 8080 is taken", "8080", true},
		{"OK punctuation is no part of a word", "use go-sqlite/v2.", "go sqlite v2", true},
		{"OK Chinese in the middle", "研究注意力缓存的行为", "注意力", true},
		{"OK one Chinese character", "研究注意力", "意", true},
		{"OK Chinese beside Latin", "用LoRA微调模型", "LoRA", true},
		{"OK Latin beside Chinese in a query", "LoRA adapters", "微调LoRA", true},
		{"OK Japanese", "今日は良い天気です", "天気", true},
		{"OK Korean with its particle", "캐시를 지운다", "캐시", true},
		{"OK Thai", "ภาษาไทย", "ไทย", true},
		{"OK NUL in a text", "before\x00after", "after", true},
		{"Err end of a word", "caching", "aching", false},
		{"Err two letters are no beginning", "caching", "ca", false},
		{"Err Chinese in another order", "研究注意力", "力意", false},
		{"Err nothing in common", "Attention cache", "weather", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			w.remember(me, c.content)
			if c.found {
				require.Equal(t, []string{c.content}, w.recall(me, c.query))
			} else {
				require.Empty(t, w.recall(me, c.query))
			}
		})
	}
}

// A query is text: nothing in it is an operator, a column, a quote or a wildcard.
func TestQueriesAreNoSyntax(t *testing.T) {
	w := open(t)
	w.remember(me, "alpha beta", "tags", []any{"gamma"})
	w.remember(me, "not near or and content tags")
	for _, query := range queries {
		if len(query) > 1024 {
			continue
		}
		_, err := w.call(me, "memory.recall", object{"query": query})
		var invalid *packs.InvalidError
		if err != nil {
			require.ErrorAs(t, err, &invalid, "%q", query)
		}
	}
	require.Len(t, w.recall(me, "alpha NOT beta"), 2, "not is a word here")
	require.Len(t, w.recall(me, "tags:gamma"), 2, "so is tags")
	require.Empty(t, w.recall(me, "al*"))
	require.Equal(t, []string{"alpha beta"}, w.recall(me, `"alpha`))
}

var queries = []string{
	"", " ", `"`, `""`, `"""`, "'", "*", "a*", "^a", "-a", "+a", "a AND", "AND", "OR NOT", "NEAR(a b, 2)", "content:alpha", "{content tags}:alpha", "(", ")", "()",
	"a\x00b", "alpha'; DROP TABLE memory_records; --", "\\", "a:b", "é", "\u0301", "\ufe0f", "\U0001f9e0", "注意", "注\u0301", "\u202ealpha", "½ ² ª", "\U0001e900\U0001e901",
	"\xff\xfe", strings.Repeat("a ", 33), strings.Repeat("ab", 600), "ǅ", "İstanbul", "ß", "\u0e01\u0e47", "alpha beta gamma", "a\u0300\u0301b", "_", "$prev", "%_", "123 4.5e6",
}

func TestRecallRanks(t *testing.T) {
	w := open(t)
	w.remember(me, "the cache keeps the attention of the model") // both words
	w.remember(me, "the attention of the public")                // one
	w.remember(me, "the cached pages")                           // the beginning of one
	w.remember(me, "the weather")                                // only the common word
	require.Equal(t, []string{
		"the cache keeps the attention of the model", "the attention of the public", "the cached pages", "the weather",
	}, w.recall(me, "the attention cache"))
	require.Len(t, w.recall(me, "the attention cache", "limit", number("2")), 2)

	t.Run("rare words weigh more", func(t *testing.T) {
		w := open(t)
		for range 10 {
			w.remember(me, "common")
		}
		w.remember(me, "rare")
		require.Equal(t, "rare", w.recall(me, "common rare")[0])
	})
	t.Run("recent before old", func(t *testing.T) {
		w := open(t)
		w.remember(me, "tea, new one")
		w.now = start.Add(-90 * day)
		w.remember(me, "tea, old one") // written later, about an earlier time
		w.now = start
		require.Equal(t, []string{"tea, new one", "tea, old one"}, w.recall(me, "tea"))
	})
	t.Run("salient before trivial", func(t *testing.T) {
		w := open(t)
		w.remember(me, "tea, vital", "salience", number("0.9"))
		w.remember(me, "tea, trivial", "salience", number("0.1"))
		require.Equal(t, []string{"tea, vital", "tea, trivial"}, w.recall(me, "tea"))
	})
	t.Run("words before age and weight", func(t *testing.T) {
		w := open(t)
		w.now = start.Add(-365 * day)
		w.remember(me, "green tea pot", "salience", number("0"))
		w.now = start
		w.remember(me, "unrelated tea", "salience", number("0.5"))
		require.Equal(t, "green tea pot", w.recall(me, "green tea pot")[0])
	})
	t.Run("equals: the newest first", func(t *testing.T) {
		w := open(t)
		ids := []string{}
		for i := range 20 {
			ids = append([]string{w.remember(me, "same", "tags", []any{fmt.Sprint(i)})}, ids...)
		}
		for range 3 {
			items := w.must(me, "memory.recall", object{"query": "same", "limit": number("20")})["items"].([]any)
			for i, item := range items {
				require.Equal(t, ids[i], item.(object)["id"])
			}
		}
	})
}

func TestRecallFilters(t *testing.T) {
	w := open(t)
	w.remember(me, "tea one", "tags", []any{"drink", "hot"})
	w.remember(me, "tea two", "tags", []any{"drink"})
	w.remember(token{"a2"}, "tea in a2", "tags", []any{"drink"})
	w.remember(other, "tea in z", "tags", []any{"drink"})
	require.ElementsMatch(t, []string{"tea one", "tea two", "tea in a2"}, w.recall(me, "tea"))
	require.Equal(t, []string{"tea one"}, w.recall(me, "tea", "tag", "hot"))
	require.Empty(t, w.recall(me, "tea", "tag", "HOT"), "a tag is compared as it is")
	require.ElementsMatch(t, []string{"tea one", "tea two", "tea in a2"}, w.recall(me, "drink"), "tags are searched too")
	require.Equal(t, []string{"tea in z"}, w.recall(other, "tea"))
	require.Empty(t, w.recall(token{"nowhere"}, "tea"))
	require.Empty(t, w.recall(token{"*"}, "tea"))
	require.Empty(t, w.recall(token{`a","z`}, "tea"))

	result := w.must(me, "memory.recall", object{"query": "weather"})
	require.Equal(t, object{"items": []any{}, "count": number("0")}, result)
	for range 12 {
		w.remember(me, "tea more")
	}
	require.Len(t, w.recall(me, "tea"), 10, "the default")
}

// What is in a namespace the caller cannot read changes neither scores nor order.
func TestScoresTellNothingOfOthers(t *testing.T) {
	w := open(t)
	w.remember(me, "green tea")
	w.remember(me, "black tea")
	before := w.must(me, "memory.recall", object{"query": "green tea"})
	for range 20 {
		w.remember(other, "green green tea")
	}
	require.Equal(t, before, w.must(me, "memory.recall", object{"query": "green tea"}))
}

func parts(t *testing.T, e object) (sum int64) {
	t.Helper()
	weights := int64(0)
	for _, name := range []string{"text", "recency", "salience"} {
		part := e["parts"].(object)[name].(object)
		value, points := micros(t, part["value"]), micros(t, part["points"])
		require.GreaterOrEqual(t, value, int64(0))
		require.LessOrEqual(t, value, int64(1e6))
		weight := micros(t, part["weight"])
		require.InDelta(t, value*weight/1e6, points, 1.5, name)
		weights += weight
		sum += points
	}
	require.EqualValues(t, 1e6, weights)
	return sum
}

// micros reads a number of at most six decimals exactly.
func micros(t *testing.T, v any) int64 {
	t.Helper()
	whole, fraction, _ := strings.Cut(v.(json.Number).String(), ".")
	require.LessOrEqual(t, len(fraction), 6, "%v", v)
	n, err := json.Number(whole + fraction + strings.Repeat("0", 6-len(fraction))).Int64()
	require.NoError(t, err)
	return n
}

func TestRecallScoreExplains(t *testing.T) {
	w := open(t)
	for i, content := range []string{"green tea pot", "green leaves", "teapots", "black tea", "weather", "greenish"} {
		w.now = start.Add(-time.Duration(i*i) * 7 * day)
		w.remember(me, content, "salience", number(fmt.Sprintf("0.%d", i)), "tags", []any{"t"})
	}
	w.now = start.Add(123456 * time.Microsecond)
	for _, params := range []object{{"query": "green tea"}, {"query": "green tea", "tag": "t"}, {"query": "Tea! green? TEA"}, {"query": "nothing pot"}} {
		items := w.must(me, "memory.recall", params)["items"].([]any)
		require.NotEmpty(t, items)
		for _, item := range items {
			item := item.(object)
			e := w.must(me, "memory.recall_score", object{"id": item["id"], "query": params["query"]})
			require.Equal(t, item["score"], e["score"], "recall and its explanation agree")
			require.Equal(t, micros(t, e["score"]), parts(t, e), "the parts add up")
			require.Equal(t, true, e["recalled"])
			require.Equal(t, item["namespace"], e["namespace"])
		}
	}
}

func TestRecallScoreTerms(t *testing.T) {
	w := open(t)
	id := w.remember(me, "Greenish tea", "salience", number("1"))
	w.remember(me, "tea")
	w.now = start.Add(30 * day)
	e := w.must(me, "memory.recall_score", object{"id": id[:8], "query": "green TEA pot"})
	require.Equal(t, id, e["id"])
	require.Equal(t, number("30"), e["age_days"])
	var matches []string
	weights := int64(0)
	for _, term := range e["terms"].([]any) {
		term := term.(object)
		matches = append(matches, fmt.Sprint(term["term"], " ", term["match"]))
		weights += micros(t, term["weight"])
	}
	require.Equal(t, []string{"green prefix", "tea word", "pot none"}, matches)
	require.InDelta(t, 1e6, weights, 3)
	recency := e["parts"].(object)["recency"].(object)
	require.Equal(t, object{"value": number("0.5"), "weight": number("0.2"), "points": number("0.1")}, recency, "half of it is left after a half-life")
	require.Equal(t, object{"value": number("1"), "weight": number("0.2"), "points": number("0.2")}, e["parts"].(object)["salience"])

	t.Run("what recall does not return", func(t *testing.T) {
		e := w.must(me, "memory.recall_score", object{"id": id, "query": "weather"})
		require.Equal(t, false, e["recalled"])
		require.Equal(t, number("0"), e["parts"].(object)["text"].(object)["value"])
		e = w.must(other, "memory.recall_score", object{"id": id, "query": "tea"})
		require.Equal(t, false, e["recalled"], "not in a namespace that this caller's recall searches")
		require.Equal(t, "a", e["namespace"])
		_, err := w.call(other, "memory.recall_score", object{"id": id[:8], "query": "tea"})
		var missing *packs.NotFoundError
		require.ErrorAs(t, err, &missing)
	})
	t.Run("a memory from the future is new", func(t *testing.T) {
		w.now = start.Add(-day)
		e := w.must(me, "memory.recall_score", object{"id": id, "query": "tea"})
		require.Equal(t, number("1"), e["parts"].(object)["recency"].(object)["value"])
		require.Equal(t, number("0"), e["age_days"])
	})
	t.Run("a very old one has no recency", func(t *testing.T) {
		w.now = start.AddDate(250, 0, 0)
		e := w.must(me, "memory.recall_score", object{"id": id, "query": "tea"})
		require.Equal(t, number("0"), e["parts"].(object)["recency"].(object)["value"])
	})
}

func FuzzRecall(f *testing.F) {
	for _, query := range queries {
		f.Add(query, query)
	}
	w := open(f)
	f.Fuzz(func(t *testing.T, content, query string) {
		text, err := w.direct(me, "memory.remember", object{"content": content, "tags": []any{"t"}})
		if err != nil {
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid)
			text, err = w.direct(me, "memory.remember", object{"content": "stands in for what cannot be kept"})
			require.NoError(t, err)
		}
		id := decode(t, text)["id"].(string)
		defer func() {
			_, err := w.direct(me, "memory.forget", object{"id": id})
			require.NoError(t, err)
		}()
		text, err = w.direct(me, "memory.recall", object{"query": query, "limit": number("100")})
		score, scoreErr := w.direct(me, "memory.recall_score", object{"id": id, "query": query})
		if err != nil {
			var invalid *packs.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.ErrorAs(t, scoreErr, &invalid)
			return
		}
		require.NoError(t, scoreErr)
		e := decode(t, score)
		require.Equal(t, micros(t, e["score"]), parts(t, e))
		items := decode(t, text)["items"].([]any)
		if e["recalled"] == true {
			require.Len(t, items, 1)
			require.Equal(t, e["score"], items[0].(object)["score"])
		} else {
			require.Empty(t, items)
		}
	})
}
