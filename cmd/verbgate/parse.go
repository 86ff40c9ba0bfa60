package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// maxParseLine bounds one line of parse --jsonl: a text of the largest size, every byte escaped.
const maxParseLine = 6*request.MaxBytes + 1<<10

func (c *cli) parseCommand() *cobra.Command {
	var jsonl bool
	cmd := &cobra.Command{
		Use:   "parse --jsonl | parse OPS",
		Short: "Show how ops are read, without running them",
		Long: `Show how ops are read, without running them.

With --jsonl every line of stdin is a JSON string of ops, and every line of stdout its answer:
{"mode","ops"} or {"error":{"kind","message","pos"}}. An error in the ops is an answer like any
other; a line that is not a JSON string ends the command with exit code 2.`,
		Args: func(_ *cobra.Command, args []string) error {
			if jsonl && len(args) > 0 || !jsonl && len(args) != 1 {
				return errors.New("parse needs either --jsonl and lines on stdin, or one OPS argument")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if jsonl {
				return parseLines(c.stdin, c.stdout)
			}
			req, err := request.Parse(args[0])
			if err != nil {
				return err
			}
			return c.printJSON(req)
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read JSON strings from stdin, one a line")
	return cmd
}

// parseLines answers line by line, so that it can be driven through a pipe.
func parseLines(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxParseLine)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	n := 0
	for lines.Scan() {
		n++
		text, err := decodeLine(lines.Bytes())
		if err != nil {
			return errors.Join(w.Flush(), &usageError{fmt.Errorf("line %d is %w", n, err)})
		}
		if err := enc.Encode(parsed(text)); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &usageError{fmt.Errorf("line %d is longer than %d bytes", n+1, maxParseLine)}
	case err != nil:
		return fmt.Errorf("read stdin: %w", err)
	}
	return nil
}

// What else a line of parse --jsonl can be.
var (
	errNotString = errors.New("not a JSON string")
	errSurrogate = errors.New("not a JSON string of Unicode text: it escapes half of a surrogate pair")
)

// decodeLine decodes a JSON string. Half a surrogate pair is refused, and bytes that are not UTF-8 stay
// as they are: encoding/json would mend both, and the parser is to see what was sent.
func decodeLine(line []byte) (string, error) {
	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '"' || line[len(line)-1] != '"' {
		return "", errNotString
	}
	var out []byte
	for rest := line[1 : len(line)-1]; ; {
		valid := validPrefix(rest)
		piece, err := decodePiece(rest[:valid])
		if err != nil {
			return "", err
		}
		out = append(out, piece...)
		if valid == len(rest) {
			return string(out), nil
		}
		out = append(out, rest[valid])
		rest = rest[valid+1:]
	}
}

// validPrefix is how many bytes of text are UTF-8 before one that is not.
func validPrefix(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// decodePiece decodes what stands between the quotes of a JSON string. An escape never spans two
// pieces: a byte that is not UTF-8 cannot be part of one.
func decodePiece(inner []byte) (string, error) {
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return "", errNotString
	}
	if halfPair(inner) {
		return "", errSurrogate
	}
	return text, nil
}

// halfPair reports whether a JSON string, sound but for that, escapes half of a surrogate pair.
func halfPair(inner []byte) bool {
	unit := func(at int) rune { // the escape \uXXXX there, or 0
		if at+6 > len(inner) || inner[at] != '\\' || inner[at+1] != 'u' {
			return 0
		}
		v, err := strconv.ParseUint(string(inner[at+2:at+6]), 16, 16)
		if err != nil {
			return 0
		}
		return rune(v)
	}
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			continue
		}
		if high := unit(i); utf16.IsSurrogate(high) {
			if utf16.DecodeRune(high, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 10
		}
		i++ // past the character that is escaped
	}
	return false
}

// parsed is the answer for one text.
func parsed(text string) any {
	req, err := request.Parse(text)
	if err == nil {
		return req
	}
	return map[string]any{"error": err}
}
