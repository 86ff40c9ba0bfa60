package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/wire"
)

// The roles of frame admit.
const (
	roleServer = "server"
	roleClient = "client"
)

func (c *cli) frameAdmitCommand() *cobra.Command {
	var (
		role                     string
		lowest, highest, offered uint32
	)
	cmd := &cobra.Command{
		Use:   "admit --role server [--min N] [--max N] | admit --role client [--offered N]",
		Short: "Show what one side of a connection makes of frames",
		Long: `Show what one side of a connection makes of the frames that come in, in their order.

Every line of stdin is a frame as JSON, in the shape of its payload, and every line of stdout the outcome:
{"outcome":"accepted","version":1,"ack":{…}}, {"outcome":"admitted"},
{"outcome":"violation","error":{"code":"malformed_frame","id":null},"close":true,"reason":"…"}, ….
JSON that is no frame has the outcome of its bytes, codec_error, and what comes after it is not_read: the
place in the stream is lost. A line {"raw_json":"…"} is a payload as a text, {"declared_length":N} the
length of one. A line that is not JSON ends the command.

A server takes the versions from --min to --max; a range that cannot be is answered with
{"construct_error":"…"} and exit code 2. A client has sent a handshake with the version --offered; without
it, it has sent nothing.` + frameExits,
		Example: `  echo '{"kind":"handshake","version":1}' | verbgate frame admit --role server`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			switch {
			case role != roleServer && role != roleClient:
				return &usageError{fmt.Errorf("--role %q: write --role server or --role client", role)}
			case role == roleServer && changed("offered"):
				return &usageError{errors.New("--offered is what a client has asked for; a server takes --min and --max")}
			case role == roleClient && (changed("min") || changed("max")):
				return &usageError{errors.New("--min and --max are what a server takes; a client has --offered")}
			case role == roleServer:
				supported, err := wire.NewSupportedRange(wire.Version(lowest), wire.Version(highest))
				if err != nil {
					return c.refuseRange(err)
				}
				return c.admitLines(wire.NewServerGate(supported))
			}
			g := wire.NewClientGate()
			if changed("offered") {
				if err := g.Offered(wire.Version(offered)); err != nil {
					return &usageError{fmt.Errorf("--offered %d: %w", offered, err)}
				}
			}
			return c.admitLines(g)
		},
	}
	supported := wire.DefaultRange()
	cmd.Flags().StringVar(&role, "role", "", "the side that the frames come to: server or client")
	cmd.Flags().Uint32Var(&lowest, "min", uint32(supported.Min()), "the lowest version a server takes")
	cmd.Flags().Uint32Var(&highest, "max", uint32(supported.Max()), "the highest version a server takes")
	cmd.Flags().Uint32Var(&offered, "offered", 0, "the version a client has asked for (default: it has not asked)")
	return cmd
}

// refuseRange answers a range that no server can have.
func (c *cli) refuseRange(err error) error {
	var refused *wire.RangeError
	if errors.As(err, &refused) {
		text, _ := json.Marshal(map[string]string{"construct_error": refused.Fault.String()}) // strings always encode
		if err := c.answer(text); err != nil {
			return err
		}
	}
	return &usageError{err}
}

// frameGate is what the gates of both sides have in common.
type frameGate interface {
	Admit(wire.Frame) wire.Outcome
	Fail(*wire.CodecError) wire.Outcome
	ClosedBy() wire.Reason
}

func (c *cli) admitLines(g frameGate) error {
	codec, err := (&codecFlags{max: wire.DefaultMaxPayload}).codec()
	if err != nil {
		return err
	}
	lines := newJSONLines(c.stdin, codec.MaxPayload())
	for lines.next() {
		text, err := admitted(codec, g, lines.text())
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		if err := c.answer(text); err != nil {
			return err
		}
	}
	return lines.err
}

// admitted is the answer to one line.
func admitted(codec wire.Codec, g frameGate, line []byte) ([]byte, error) {
	if g.ClosedBy() == wire.UndecodableBytes {
		return []byte(`{"outcome":"not_read"}`), nil
	}
	f, err := inbound(codec, line)
	var bad *wire.CodecError
	switch {
	case errors.As(err, &bad):
		return json.Marshal(g.Fail(bad))
	case err != nil:
		return nil, err
	}
	return json.Marshal(g.Admit(f))
}

// inbound is the frame that a line describes, as a connection would get it, or the codec's error.
func inbound(codec wire.Codec, line []byte) (wire.Frame, error) {
	var special struct {
		RawJSON        *string `json:"raw_json"`
		DeclaredLength *uint32 `json:"declared_length"`
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&special); err == nil {
		switch {
		case special.RawJSON != nil:
			return codec.DecodePayload([]byte(*special.RawJSON))
		case special.DeclaredLength != nil:
			return codec.Decode(binary.BigEndian.AppendUint32(nil, *special.DeclaredLength))
		}
	}
	f, err := codec.DecodePayload(line)
	if err == nil {
		return f, nil
	}
	// An error with a code this version does not know is told by what it was decoded to.
	if told, toldErr := wire.ParseFrameJSON(line); toldErr == nil {
		if e, ok := told.(wire.ErrorFrame); ok && e.UnrecognizedCode.Present() {
			return e, nil
		}
	}
	return nil, err
}
