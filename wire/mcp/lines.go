package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// line is one line of a stream, or the end of the stream.
type line struct {
	text []byte
	long bool  // it exceeds the limit; text is nil
	err  error // io.EOF or why reading failed; text may hold the last, unfinished line
}

// readLines sends the lines of in, blank ones left out, until the stream or ctx ends. It holds one
// line at a time and never more than max bytes of it. The goroutine that runs it ends with the Read
// it is in, which nothing but the other end of in can make return.
func readLines(ctx context.Context, in io.Reader, max int64, out chan<- line) {
	defer close(out)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(r, max)
		if l.long || l.err != nil || len(bytes.TrimSpace(l.text)) > 0 {
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads up to the next line feed. The rest of a line beyond max is read and thrown away.
func readLine(r *bufio.Reader, max int64) line {
	var l line
	for {
		part, err := r.ReadSlice('\n')
		if !l.long {
			if int64(len(l.text)+len(bytes.TrimRight(part, "\r\n"))) > max {
				l.text, l.long = nil, true
			} else {
				l.text = append(l.text, part...)
			}
		}
		switch {
		case err == nil:
			return l
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			l.err = err
			return l
		}
	}
}
