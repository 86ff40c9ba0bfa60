package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FTS5 cuts text at everything that is no letter or digit. That leaves a sentence of a script without
// spaces as one word, which only the whole sentence would find. So a character of such a script gets
// spaces around it before it goes into the index, and a query finds a run of them as a phrase.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// minPrefix is how many characters a word of a query must have to find longer words that begin with it.
const minPrefix = 3

// spread returns text with spaces around each character of an unspaced script.
func spread(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		if isUnspaced(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isUnspaced(r rune) bool { return r > unicode.MaxLatin1 && unicode.In(r, unspaced...) }

// term is one word of a query, in lower case, or a run of characters of an unspaced script.
type term struct {
	text   string
	phrase bool
}

// terms cuts a query into its words, each once, in the order of their first appearance.
func terms(query string) []term {
	var out []term
	seen := map[string]bool{}
	start, phrase := -1, false // of the word being read
	end := func(at int) {
		if start < 0 {
			return
		}
		text := strings.ToLower(query[start:at])
		start = -1
		if !seen[text] {
			seen[text] = true
			out = append(out, term{text: text, phrase: phrase})
		}
	}
	for i, r := range query {
		letter := r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) && start >= 0)
		if !letter {
			end(i)
			continue
		}
		if start >= 0 && !unicode.IsMark(r) && isUnspaced(r) != phrase {
			end(i)
		}
		if start < 0 {
			start, phrase = i, isUnspaced(r)
		}
	}
	end(len(query))
	return out
}

// whole is the FTS5 query for the term itself. Between the quotes are letters, marks and digits.
func (t term) whole() string {
	if t.phrase {
		return `"` + spread(t.text) + `"`
	}
	return `"` + t.text + `"`
}

// beginning is the FTS5 query for what has a longer word that begins with the term and not the term
// itself, or "" when there is no such thing: a phrase is found anywhere in a run of characters as it is.
func (t term) beginning() string {
	if t.phrase || utf8.RuneCountInString(t.text) < minPrefix {
		return ""
	}
	return t.whole() + "* NOT " + t.whole()
}
