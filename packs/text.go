package packs

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownRunes is how much of a caller's text an error repeats: enough to recognise it, too little to
// flood a log.
const shownRunes = 48

// show quotes a caller's text for an error. Control, bidi and other invisible characters come out as
// escapes, so the text cannot forge a line or turn the reading direction.
func show(s string) string {
	n := 0
	for i := range s {
		if n == shownRunes {
			return strconv.Quote(s[:i]) + "…"
		}
		n++
	}
	return strconv.Quote(s)
}

// showName quotes a name of the manifest and escapes whatever is not ASCII, so that a look-alike
// letter shows itself.
func showName(s string) string {
	if len(s) > 80 {
		return strconv.QuoteToASCII(s[:80]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// plainText says what is wrong with a text of the manifest that people and models will read, or "".
func plainText(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && !strconv.IsPrint(r) {
			return "holds the invisible character " + strconv.QuoteRuneToASCII(r) + ": leave it out"
		}
	}
	return ""
}

// article puts a or an before a type's name.
func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// closest returns the candidate a misspelt name most likely meant, or "".
func closest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(name), c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace, and swapped neighbours as one.
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
