package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// hexLines reads lines of hex. A line may be of any length, but only its first bytes are kept: what
// comes after the largest frame can be is never looked at, and is only checked to be hex.
type hexLines struct {
	r    *bufio.Reader
	keep int // bytes
	n    int // lines begun
	buf  []byte
}

func newHexLines(r io.Reader, keep int) *hexLines {
	return &hexLines{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// next returns the first bytes of the next line; they are overwritten by the next call. The error is
// io.EOF after the last line, and a *usageError for a line that is not hex.
func (l *hexLines) next() ([]byte, error) {
	l.n++
	l.buf = l.buf[:0]
	var line hexLine
	for {
		chunk, err := l.r.ReadSlice('\n')
		for _, ch := range chunk {
			whole, problem := line.take(ch)
			switch {
			case problem != "":
				return nil, &usageError{fmt.Errorf("line %d is not hex: %s", l.n, problem)}
			case whole && len(l.buf) < l.keep:
				l.buf = append(l.buf, line.value)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && line.column == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read stdin: %w", err)
		case line.digits%2 != 0:
			return nil, &usageError{fmt.Errorf("line %d is not hex: it has %d digits, and each byte takes two", l.n, line.digits)}
		}
		return l.buf, nil
	}
}

// hexLine is how far one line has been read.
type hexLine struct {
	column, digits int
	value          byte // of the byte that its last digit completed
	ended          bool // white space came after digits
}

// take reads one character of the line. It tells whether that completed a byte, or what is wrong.
func (l *hexLine) take(ch byte) (whole bool, problem string) {
	l.column++
	var digit byte
	switch {
	case ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n':
		l.ended = l.digits > 0
		return false, ""
	case '0' <= ch && ch <= '9':
		digit = ch - '0'
	case 'a' <= ch && ch <= 'f':
		digit = ch - 'a' + 10
	case 'A' <= ch && ch <= 'F':
		digit = ch - 'A' + 10
	default:
		return false, fmt.Sprintf("column %d is %q; write two digits of 0-9 a-f a byte", l.column, ch)
	}
	if l.ended {
		return false, fmt.Sprintf("white space before column %d; write the bytes of a frame with nothing between them", l.column)
	}
	l.value = l.value<<4 | digit
	l.digits++
	return l.digits%2 == 0, ""
}

// jsonLines reads lines of JSON.
type jsonLines struct {
	lines *bufio.Scanner
	limit int
	n     int // lines read
	err   error
}

// newJSONLines reads lines that describe frames whose payload has at most payload bytes.
func newJSONLines(r io.Reader, payload int) *jsonLines {
	const (
		longest = 6        // bytes that one byte of a payload may take, escaped
		beside  = 64 << 10 // for white space
	)
	l := &jsonLines{lines: bufio.NewScanner(r), limit: longest*min(payload, 1<<32) + beside}
	l.lines.Buffer(make([]byte, 0, 64<<10), l.limit)
	return l
}

// next reads a line. False means that there is none, or that it is not JSON, as err then says.
func (l *jsonLines) next() bool {
	if l.lines.Scan() {
		l.n++
		if !json.Valid(l.text()) {
			l.err = &usageError{fmt.Errorf("line %d is not JSON%s; write a frame as {\"kind\":\"cancel\",\"id\":\"op-1\"}, each on a line of its own", l.n, where(l.text()))}
			return false
		}
		return true
	}
	switch err := l.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.err = &usageError{fmt.Errorf("line %d is longer than %d bytes", l.n+1, l.limit)}
	case err != nil:
		l.err = fmt.Errorf("read stdin: %w", err)
	}
	return false
}

// text is the line, until the next one is read.
func (l *jsonLines) text() []byte { return l.lines.Bytes() }

// where tells at which byte JSON goes wrong.
func where(text []byte) string {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(text, new(json.RawMessage)); errors.As(err, &syntax) {
		return fmt.Sprintf(" (%v, at byte %d)", syntax, syntax.Offset)
	}
	return ""
}
