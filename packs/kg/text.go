package kg

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is cut into words here and not by FTS5, for three reasons. Scripts that put no space between
// words (Chinese, Japanese, Thai, …) and symbols (emoji) become one word a character, which a query
// finds as a phrase: any part of a text, however short, in an index of ordinary size. Nothing a caller
// writes, in a record or in a query, is ever read as FTS5's query language. And a snippet can be cut
// at the place that was found. Letters with their case and accents are left to FTS5's tokenizer, which
// folds both sides alike.

// piece is a word, or a character that stands for itself.
type piece struct {
	text   string
	at     int  // byte offset
	single bool // a character that stands for itself
}

// pieces yields the words of a text in order.
func pieces(text string, yield func(piece) bool) {
	start := -1 // of the word being read
	for i, r := range text {
		c := classify(r)
		if start >= 0 && c != wordRune {
			if !yield(piece{text: text[start:i], at: start}) {
				return
			}
			start = -1
		}
		switch c {
		case wordRune:
			// A mark without a letter (a variation selector after an emoji) begins no word.
			if start < 0 && !unicode.IsMark(r) {
				start = i
			}
		case singleRune:
			if !yield(piece{text: text[i : i+utf8.RuneLen(r)], at: i, single: true}) {
				return
			}
		case gapRune:
		}
	}
	if start >= 0 {
		yield(piece{text: text[start:], at: start})
	}
}

type runeClass uint8

const (
	gapRune runeClass = iota
	wordRune
	singleRune
)

func classify(r rune) runeClass {
	switch {
	case r == utf8.RuneError: // also an invalid byte, whose length is not the rune's
		return gapRune
	case r < 0x80:
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return wordRune
		}
		return gapRune
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan):
		if unicode.IsPunct(r) {
			return gapRune
		}
		return singleRune
	case unicode.Is(unicode.So, r), r == 'ー', r == 'ｰ': // the long vowel of Katakana belongs to no script
		return singleRune
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
		return wordRune
	}
	return gapRune
}

// appendIndexed adds the words of a text, each after a space, as the index keeps them. A character
// that stands for itself is spelt by its number, so that it does not depend on which characters the
// tokenizer's tables know.
func appendIndexed(b []byte, text string) []byte {
	pieces(text, func(p piece) bool {
		b = append(b, ' ')
		b = appendPiece(b, p)
		return true
	})
	return b
}

func appendPiece(b []byte, p piece) []byte {
	if !p.single {
		return append(b, p.text...)
	}
	r, _ := utf8.DecodeRuneInString(p.text)
	return strconv.AppendInt(append(b, 'u'), int64(r), 16)
}

func indexed(text *string) string {
	if text == nil {
		return ""
	}
	return string(appendIndexed(make([]byte, 0, len(*text)+len(*text)/8), *text))
}

// term is a part of a query: one word, or a run of characters that stand for themselves.
type term struct {
	text   string
	single bool
}

// terms cuts a query.
func terms(query string) []term {
	var out []term
	end := -1 // where the piece before ended
	pieces(query, func(p piece) bool {
		if n := len(out); p.single && n > 0 && out[n-1].single && end == p.at {
			out[n-1].text += p.text
		} else {
			out = append(out, term{text: p.text, single: p.single})
		}
		end = p.at + len(p.text)
		return true
	})
	return out
}

// minPrefixRunes is how long a word of a query must be to find words that only begin with it.
const minPrefixRunes = 3

// match spells the terms as an FTS5 query. Every term is a quoted string of letters, marks and digits.
func match(query []term, all bool) string {
	operator := " OR "
	if all {
		operator = " AND "
	}
	parts := make([]string, len(query))
	for i, t := range query {
		parts[i] = t.match()
	}
	return strings.Join(parts, operator)
}

// whole is the FTS5 query for the term itself.
func (t term) whole() string {
	if t.single {
		return `"` + string(appendIndexed(nil, t.text)) + `"`
	}
	return `"` + t.text + `"`
}

// begins reports whether the term also finds words that only begin with it.
func (t term) begins() bool { return !t.single && utf8.RuneCountInString(t.text) >= minPrefixRunes }

// match is the FTS5 query for all that the term finds.
func (t term) match() string {
	if t.begins() {
		return t.whole() + "*"
	}
	return t.whole()
}

// Widths of a snippet, in bytes, before and after the place that was found.
const (
	snippetBefore = 60
	snippetAfter  = 180
)

// snippet is the part of a text around the first word that the query asks for, or its beginning. Line
// breaks become spaces.
func snippet(text string, query []term) string {
	at := 0
	pieces(text, func(p piece) bool {
		for _, t := range query {
			if p.single && t.single && strings.HasPrefix(text[p.at:], t.text) || !p.single && !t.single && beginsWith(p.text, t.text) {
				at = p.at
				return false
			}
		}
		return true
	})
	from, to := max(0, at-snippetBefore), min(len(text), at+snippetAfter)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	out := strings.Join(strings.Fields(text[from:to]), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// beginsWith reports whether the word begins with the other one, without regard to case.
func beginsWith(word, start string) bool {
	n := utf8.RuneCountInString(start)
	for i := range word {
		if n == 0 {
			return strings.EqualFold(word[:i], start)
		}
		n--
	}
	return n == 0 && strings.EqualFold(word, start)
}
