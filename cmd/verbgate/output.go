package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// printJSON writes v to stdout as one JSON text: indented when a person reads it, compact in a pipe.
func (c *cli) printJSON(v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if c.terminal() {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if _, err := c.stdout.Write(buf.Bytes()); err != nil {
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
