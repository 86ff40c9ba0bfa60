package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/verbgate/verbgate/dispatcher"
)

// printEnvelope writes the answer to a request to stdout.
func (c *cli) printEnvelope(envelope *dispatcher.Envelope) error {
	text, err := envelope.JSON()
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.printText(text)
}

// printJSON writes v, anything but an envelope, to stdout as JSON.
func (c *cli) printJSON(v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.printText(text.Bytes())
}

// printText writes one JSON text to stdout: indented and with nothing that steers a terminal when a person
// reads it, compact in a pipe. Numbers and texts keep their spelling there.
func (c *cli) printText(text []byte) error {
	var out bytes.Buffer
	format := json.Compact
	if c.terminal() {
		format = func(dst *bytes.Buffer, src []byte) error { return json.Indent(dst, src, "", "  ") }
	}
	if err := format(&out, bytes.TrimSpace(text)); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.WriteByte('\n')
	if c.terminal() {
		out = *bytes.NewBufferString(harmless(out.String()))
	}
	if _, err := c.stdout.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// harmless writes the characters that could steer a terminal, or turn the order of what it shows, as JSON
// escapes: controls but the line feed, those beyond ASCII as well, and invisible ones that change how
// others are shown. The two joiners that scripts and emoji are written with stay. In a JSON text such
// characters are found in strings only, so that it stays the same JSON.
func harmless(text string) string {
	var out strings.Builder
	for _, r := range text { // a byte that is not UTF-8 becomes U+FFFD
		switch {
		case r == '\n' || r == '\u200c' || r == '\u200d' || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// terminal reports whether stdout is one.
func (c *cli) terminal() bool { return isTerminal(c.stdout) }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
