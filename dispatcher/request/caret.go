package request

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of the offending line and of a found text an error shows, in code points.
const (
	shownBefore = 60
	shownAfter  = 40
	shownFound  = 40
)

// Caret is the message followed by the offending line and a caret under the place.
func (e *Error) Caret() string {
	if e.Line == 0 {
		return e.Error()
	}
	return e.Error() + "\n  " + e.excerpt + "\n  " + strings.Repeat(" ", e.caret) + "^"
}

// locate fills in line, column and excerpt. Only LF ends a line.
func (e *Error) locate(text string) {
	before := text[:e.Pos]
	start := strings.LastIndexByte(before, '\n') + 1
	e.Line = strings.Count(before, "\n") + 1
	e.Column = utf8.RuneCountInString(before[start:]) + 1
	end := strings.IndexByte(text[e.Pos:], '\n') + e.Pos
	if end < e.Pos {
		end = len(text)
	} else if end > e.Pos && text[end-1] == '\r' {
		end--
	}
	from, to := e.Pos, e.Pos
	for n := 0; n < shownBefore && from > start; n++ {
		_, size := utf8.DecodeLastRuneInString(text[start:from])
		from -= size
	}
	for n := 0; n < shownAfter && to < end; n++ {
		_, size := utf8.DecodeRuneInString(text[to:end])
		to += size
	}
	var b strings.Builder
	if from > start {
		b.WriteRune('…')
	}
	writeFit(&b, text[from:e.Pos])
	e.caret = utf8.RuneCountInString(b.String())
	writeFit(&b, text[e.Pos:to])
	if to < end {
		b.WriteRune('…')
	}
	e.excerpt = strings.TrimRight(b.String(), " ")
}

// show quotes a piece of the text for a message: short, and with nothing in it that a terminal or a log
// would act on.
func show(s string) string { return "`" + clip(s) + "`" }

// clip is show without the quotes.
func clip(s string) string {
	var b strings.Builder
	end := 0
	for n := 0; n < shownFound && end < len(s); n++ {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	writeFit(&b, s[:end])
	if end < len(s) {
		b.WriteRune('…')
	}
	return b.String()
}

// writeFit writes s with a space for each tab and an escape for whatever is not a visible character:
// controls, bidirectional marks, line separators, bytes that are not UTF-8.
func writeFit(b *strings.Builder, s string) {
	for i, r := range s {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
}
