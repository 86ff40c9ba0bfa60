package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

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

// printText writes one JSON text to stdout: indented when a person reads it, compact in a pipe. Numbers
// and texts keep their spelling.
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
	if _, err := c.stdout.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// terminal reports whether stdout is one.
func (c *cli) terminal() bool {
	f, ok := c.stdout.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
