package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/wire"
)

// frameExits is what every frame command says of its exit code.
const frameExits = `

Exit codes: 0 every line has been answered, whatever the answers; 1 stdin or stdout failed; 2 a line,
whose number stderr tells, or the command line is wrong. Answers come line by line, so the command can be
driven through a pipe.`

func (c *cli) frameCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "frame",
		Short: "Read and write frames of the framed protocol, for people who write clients",
		Long: `Read and write frames of the framed protocol, for people who write clients. Nothing is sent
anywhere. What the bytes are, "go doc ./wire" shows in a worked exchange.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.frameDecodeCommand(), c.frameEncodeCommand(), c.frameAdmitCommand())
	return cmd
}

// codecFlags choose a codec.
type codecFlags struct {
	strict bool
	max    int
}

func (f *codecFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.strict, "strict", false, "the strict profile: no null for absence, no repeated members, …")
	cmd.Flags().IntVar(&f.max, "max", wire.DefaultMaxPayload, "the largest payload in bytes, inclusive")
}

func (f *codecFlags) codec() (wire.Codec, error) {
	codec, err := wire.NewCodec(wire.Config{MaxPayload: wire.Some(f.max), Strict: f.strict})
	if err != nil {
		return codec, &usageError{fmt.Errorf("--max: %w", err)}
	}
	return codec, nil
}

// eitherLines is the Args of a command that takes --jsonl, or else one argument.
func eitherLines(jsonl *bool, name, arg string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if *jsonl && len(args) > 0 || !*jsonl && len(args) != 1 {
			return fmt.Errorf("%s needs either --jsonl and lines on stdin, or one %s argument", name, arg)
		}
		return nil
	}
}

func (c *cli) frameDecodeCommand() *cobra.Command {
	var (
		jsonl bool
		flags codecFlags
	)
	cmd := &cobra.Command{
		Use:   "decode --jsonl | decode HEX",
		Short: "Decode frames given as hex",
		Long: `Decode frames given as hex: the four bytes of the length, then the payload. What follows the frame
is not looked at.

With --jsonl every line of stdin is the hex of some bytes, an empty one of none, and every line of
stdout its answer: {"frame":{…},"consumed":N} or {"error":"NAME","wire_code":"CODE",…}. Bytes that are
no frame have an answer like any other; a line that is not hex ends the command.` + frameExits,
		Example: `  verbgate frame decode 0000001d7b226b696e64223a2263616e63656c222c226964223a226f702d31227d`,
		Args:    eitherLines(&jsonl, "frame decode", "HEX"),
		RunE: func(_ *cobra.Command, args []string) error {
			codec, err := flags.codec()
			if err != nil {
				return err
			}
			if jsonl {
				return c.decodeLines(codec)
			}
			b, err := hex.DecodeString(args[0])
			if err != nil {
				return &usageError{fmt.Errorf("the argument is not hex: %w; write two digits of 0-9 a-f a byte, with nothing between them", err)}
			}
			f, n, err := codec.DecodeWithConsumed(b)
			if err != nil {
				return &usageError{err}
			}
			text, err := decoded(f, n)
			if err != nil {
				return err
			}
			return c.printText(text)
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read hex from stdin, the bytes of one frame a line")
	flags.register(cmd)
	return cmd
}

func (c *cli) decodeLines(codec wire.Codec) error {
	lines := newHexLines(c.stdin, wire.PrefixSize+codec.MaxPayload())
	for {
		b, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var text []byte
		f, n, err := codec.DecodeWithConsumed(b)
		if err != nil {
			text, err = json.Marshal(err)
		} else {
			text, err = decoded(f, n)
		}
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		if err := c.answer(text); err != nil {
			return err
		}
	}
}

// decoded is the answer that shows a frame.
func decoded(f wire.Frame, consumed int) ([]byte, error) {
	frame, err := wire.MarshalFrameJSON(f)
	if err != nil {
		return nil, err
	}
	text := append(make([]byte, 0, len(frame)+40), `{"frame":`...)
	text = append(append(text, oneLine(frame)...), `,"consumed":`...)
	return append(strconv.AppendInt(text, int64(consumed), 10), '}'), nil
}

func (c *cli) frameEncodeCommand() *cobra.Command {
	var (
		jsonl bool
		flags codecFlags
	)
	cmd := &cobra.Command{
		Use:   "encode --jsonl | encode JSON",
		Short: "Encode frames given as JSON",
		Long: `Encode frames given as JSON, in the shape of their payload: "kind", and the members of that kind in
any order.

With --jsonl every line of stdin is a frame, and every line of stdout its answer: {"hex":"…"}, the four
bytes of the length and the payload, or {"error":"NAME","wire_code":"CODE",…}. What may not be sent, or
is no frame, has an answer like any other; a line that is not JSON ends the command.` + frameExits,
		Example: `  verbgate frame encode '{"kind":"cancel","id":"op-1"}'`,
		Args:    eitherLines(&jsonl, "frame encode", "JSON"),
		RunE: func(_ *cobra.Command, args []string) error {
			codec, err := flags.codec()
			if err != nil {
				return err
			}
			if jsonl {
				return c.encodeLines(codec)
			}
			b, err := encoded(codec, []byte(args[0]))
			if err != nil {
				return &usageError{err}
			}
			return c.printText(b)
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read frames from stdin, one a line")
	flags.register(cmd)
	return cmd
}

func (c *cli) encodeLines(codec wire.Codec) error {
	lines := newJSONLines(c.stdin, codec.MaxPayload())
	for lines.next() {
		text, err := encoded(codec, lines.text())
		if err != nil {
			text, err = json.Marshal(err)
		}
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		if err := c.answer(text); err != nil {
			return err
		}
	}
	return lines.err
}

// encoded is the answer that shows the bytes of a frame. The error is a *wire.CodecError.
func encoded(codec wire.Codec, text []byte) ([]byte, error) {
	f, err := wire.ParseFrameJSON(text)
	if err != nil {
		return nil, err
	}
	b, err := codec.Encode(f)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, hex.EncodedLen(len(b))+10), `{"hex":"`...)
	return append(hex.AppendEncode(out, b), `"}`...), nil
}

// oneLine makes line ends between the tokens of JSON, where a peer may put them, blanks. Nothing else
// changes; in a string there is none.
func oneLine(text []byte) []byte {
	for i, b := range text {
		if b == '\n' || b == '\r' {
			text[i] = ' '
		}
	}
	return text
}

// withoutKind takes the first member out of a frame's JSON, which is its kind.
func withoutKind(frame []byte) []byte {
	_, rest, _ := bytes.Cut(frame, []byte{','})
	return append([]byte{'{'}, rest...)
}

// answer writes one line of JSON to stdout at once; on a terminal without anything that steers it.
func (c *cli) answer(text []byte) error {
	if c.terminal() {
		text = []byte(harmless(string(text)))
	}
	if _, err := c.stdout.Write(append(bytes.TrimSpace(text), '\n')); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
