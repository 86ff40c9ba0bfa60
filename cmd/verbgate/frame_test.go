package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/wire"
)

// conformance reads the cases of package wire.
func conformance[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "wire", "testdata", name))
	require.NoError(t, err)
	var out []T
	for line := range strings.Lines(string(text)) {
		var c T
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		out = append(out, c)
	}
	return out
}

// frameCase is a line of frames.jsonl.
type frameCase struct {
	ID, Op  string
	Hex     *string
	JSON    *string
	Frame   json.RawMessage
	Max     *int
	Expect  json.RawMessage
	Amended *struct {
		Rejected    bool
		WireCode    string `json:"wire_code"`
		FrameOK     bool   `json:"frame_ok"`
		OpaqueRaw   string `json:"opaque_raw"`
		Unspecified bool
		Refused     string
	}
}

func (c *frameCase) hex() string {
	if c.JSON == nil {
		return *c.Hex
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(len(*c.JSON)))) + hex.EncodeToString([]byte(*c.JSON))
}

func (c *frameCase) flags(strict bool) []string {
	args := []string{"--jsonl"}
	if c.Max != nil {
		args = append(args, "--max", strconv.Itoa(*c.Max))
	}
	if strict {
		args = append(args, "--strict")
	}
	return args
}

// frame runs a frame command on lines and returns the lines it answers.
func frame(t *testing.T, command string, flags []string, lines ...string) []string {
	t.Helper()
	out, errs, code := frameRun(append([]string{command}, flags...), strings.Join(lines, "\n")+"\n")
	require.Equal(t, exitOK, code, errs)
	require.Empty(t, errs)
	return slices.Collect(strings.Lines(out))
}

func frameRun(args []string, stdin string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"frame"}, args...), strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

// Every case of the codec goes through the commands, in both profiles.
func TestFrameConformance(t *testing.T) {
	cases := conformance[frameCase](t, "frames.jsonl")
	require.Len(t, cases, 181)
	for _, c := range cases {
		t.Run("default/"+c.ID, func(t *testing.T) { c.run(t, c.flags(false)) })
		t.Run("strict/"+c.ID, func(t *testing.T) {
			if c.Amended == nil || c.Amended.Unspecified {
				c.run(t, c.flags(true))
				return
			}
			c.runAmended(t)
		})
	}
}

func (c *frameCase) run(t *testing.T, flags []string) {
	var expect struct {
		Error    string
		Frame    json.RawMessage
		Consumed *int
		Payload  string
	}
	if c.Op != "decode_all" {
		require.NoError(t, json.Unmarshal(c.Expect, &expect))
	}
	switch c.Op {
	case "", "decode":
		got := frame(t, "decode", flags, c.hex())
		require.Len(t, got, 1)
		if expect.Error != "" {
			require.JSONEq(t, string(c.Expect), got[0])
			return
		}
		consumed := len(c.hex()) / 2
		if expect.Consumed != nil {
			consumed = *expect.Consumed
		}
		require.JSONEq(t, `{"frame":`+string(expect.Frame)+`,"consumed":`+strconv.Itoa(consumed)+`}`, got[0])
	case "decode_all":
		c.runAll(t, flags)
	case "reencode":
		got := frame(t, "decode", flags, c.hex())
		var answer struct{ Frame json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(got[0]), &answer))
		require.Equal(t, expect.Payload, string(answer.Frame), "byte for byte")
	case "encode":
		got := frame(t, "encode", flags, string(c.Frame))
		require.Len(t, got, 1)
		require.JSONEq(t, string(c.Expect), got[0])
	default:
		t.Fatalf("op %q", c.Op)
	}
}

// runAll feeds what each answer consumed as the next line, as somebody with a stream would.
func (c *frameCase) runAll(t *testing.T, flags []string) {
	var expect struct {
		Frames   []json.RawMessage
		Consumed []int
		Then     json.RawMessage
	}
	require.NoError(t, json.Unmarshal(c.Expect, &expect))
	rest := c.hex()
	for i, want := range expect.Frames {
		got := frame(t, "decode", flags, rest)
		require.JSONEq(t, `{"frame":`+string(want)+`,"consumed":`+strconv.Itoa(expect.Consumed[i])+`}`, got[0])
		rest = rest[2*expect.Consumed[i]:]
	}
	require.JSONEq(t, string(expect.Then), frame(t, "decode", flags, rest)[0])
}

func (c *frameCase) runAmended(t *testing.T) {
	if c.Op == "encode" {
		require.NotEmpty(t, c.Amended.Refused)
		require.Contains(t, frame(t, "encode", c.flags(true), string(c.Frame))[0], `{"error":"invalid_fields"`)
		return
	}
	got := frame(t, "decode", c.flags(true), c.hex())[0]
	if c.Amended.Rejected {
		var answer struct {
			WireCode string `json:"wire_code"`
		}
		require.NoError(t, json.Unmarshal([]byte(got), &answer))
		require.Equal(t, c.Amended.WireCode, answer.WireCode)
		return
	}
	require.True(t, c.Amended.FrameOK)
	require.Contains(t, got, `"result":`+c.Amended.OpaqueRaw+`},"consumed":`)
}

// Every frame that decodes by default encodes again, and to the same frame.
func TestFrameRoundTrip(t *testing.T) {
	var frames []string
	for _, c := range conformance[frameCase](t, "frames.jsonl") {
		var expect struct{ Frame json.RawMessage }
		if c.Op == "" && json.Unmarshal(c.Expect, &expect) == nil && expect.Frame != nil && !bytes.Contains(expect.Frame, []byte("unrecognized_code")) {
			frames = append(frames, string(expect.Frame))
		}
	}
	require.Greater(t, len(frames), 40)
	var bytesOf []string
	for _, line := range frame(t, "encode", []string{"--jsonl"}, frames...) {
		var answer struct{ Hex string }
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		require.NotEmpty(t, answer.Hex, line)
		bytesOf = append(bytesOf, answer.Hex)
	}
	for i, line := range frame(t, "decode", []string{"--jsonl"}, bytesOf...) {
		require.JSONEq(t, `{"frame":`+frames[i]+`,"consumed":`+strconv.Itoa(len(bytesOf[i])/2)+`}`, line)
	}
}

// gateCase is a line of handshake.jsonl.
type gateCase struct {
	ID, Role  string
	Supported json.RawMessage
	Current   *wire.Version
	Offered   *wire.Version
	Inbound   []json.RawMessage
	Expect    []json.RawMessage
	Final     json.RawMessage
}

// Every case of the gates goes through frame admit, but for those that need another newest version
// than this program's.
func TestFrameAdmitConformance(t *testing.T) {
	cases := conformance[gateCase](t, "handshake.jsonl")
	require.Len(t, cases, 52)
	left := 0
	for _, c := range cases {
		if c.Current != nil && *c.Current != wire.CurrentVersion {
			left++
			continue
		}
		t.Run(c.ID, c.run)
	}
	require.Equal(t, 6, left)
}

func (c *gateCase) run(t *testing.T) {
	args := []string{"admit", "--role", c.Role}
	var supported struct{ Min, Max uint32 }
	switch {
	case c.Offered != nil:
		args = append(args, "--offered", strconv.Itoa(int(*c.Offered)))
	case c.Role == roleServer && string(c.Supported) != `"default"`:
		require.NoError(t, json.Unmarshal(c.Supported, &supported))
		args = append(args, "--min", strconv.Itoa(int(supported.Min)), "--max", strconv.Itoa(int(supported.Max)))
	}
	var stdin strings.Builder
	for _, f := range c.Inbound {
		stdin.Write(append(f, '\n'))
	}
	out, errs, code := frameRun(args, stdin.String())
	got := slices.Collect(strings.Lines(out))
	if string(c.Final) == "null" {
		require.Equal(t, exitBad, code)
		require.NotEmpty(t, errs)
	} else {
		require.Equal(t, exitOK, code, errs)
		require.Empty(t, errs)
	}
	if string(c.Supported) == `"default"` { // the case is about the range
		require.Empty(t, got)
		return
	}
	require.Len(t, got, len(c.Expect))
	for i, want := range c.Expect {
		require.JSONEq(t, string(want), got[i])
	}
}

// Each line is answered before the next one is there.
func TestFrameLineByLine(t *testing.T) {
	for name, c := range map[string]struct {
		args       []string
		line, want string
	}{
		"OKDecode": {[]string{"frame", "decode", "--jsonl"}, "00000000", `{"error":"invalid_json","wire_code":"malformed_frame"}`},
		"OKEncode": {[]string{"frame", "encode", "--jsonl"}, `{"kind":"cancel","id":""}`, `{"error":"invalid_fields","wire_code":"malformed_frame","frame_kind":"cancel"}`},
		"OKAdmit":  {[]string{"frame", "admit", "--role", "client", "--offered", "1"}, `{"kind":"handshake_ack","version":1}`, `{"outcome":"completed","version":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			in, lines := io.Pipe()
			answers, out := io.Pipe()
			done := make(chan int, 1)
			var errs bytes.Buffer
			go func() { // ends with the input
				defer out.Close()
				done <- run(context.Background(), c.args, in, out, &errs)
			}()
			_, err := io.WriteString(lines, c.line+"\n")
			require.NoError(t, err)
			answer, err := bufio.NewReader(answers).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, c.want+"\n", answer)
			require.NoError(t, lines.Close())
			require.Equal(t, exitOK, <-done, errs.String())
		})
	}
}

// A line may be far longer than a frame, and is not kept in memory for that.
func TestFrameLongLine(t *testing.T) {
	zeros := strings.Repeat("00", 3*wire.DefaultMaxPayload)
	cancel := "0000001d7b226b696e64223a2263616e63656c222c226964223a226f702d31227d"
	got := frame(t, "decode", []string{"--jsonl", "--max", "64"}, cancel+zeros, "00000041"+zeros, cancel)
	require.Equal(t, []string{
		`{"frame":{"kind":"cancel","id":"op-1"},"consumed":33}` + "\n",
		`{"error":"frame_too_large","wire_code":"frame_too_large","declared":65,"max":64}` + "\n",
		`{"frame":{"kind":"cancel","id":"op-1"},"consumed":33}` + "\n",
	}, got)
	lines := newHexLines(strings.NewReader(zeros), 68)
	b, err := lines.next()
	require.NoError(t, err)
	require.Len(t, b, 68)
	require.LessOrEqual(t, cap(b), 256)
}

// FuzzHexLines: what is read is what encoding/hex reads, or there is a complaint.
func FuzzHexLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "00ff\n", " 0A \r\n\r\n1", "0g", "00 00", "é", "\t\n00"} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, keep uint8) {
		lines := newHexLines(bytes.NewReader(text), int(keep))
		for line := range bytes.Lines(text) {
			want, wantErr := hex.DecodeString(strings.Trim(string(line), " \t\r\n"))
			got, err := lines.next()
			require.Equal(t, wantErr == nil, err == nil, "%q: %v", line, err)
			if err != nil {
				return
			}
			require.Equal(t, len(want[:min(len(want), int(keep))]), len(got))
			require.True(t, bytes.HasPrefix(want, got))
		}
		_, err := lines.next()
		require.ErrorIs(t, err, io.EOF)
	})
}

// FuzzFrameAdmit: whatever comes, there is an outcome, and once closed a gate stays closed.
func FuzzFrameAdmit(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("..", "..", "wire", "testdata", "handshake.jsonl"))
	require.NoError(f, err)
	for line := range bytes.Lines(text) {
		var c gateCase
		require.NoError(f, json.Unmarshal(line, &c))
		f.Add(bytes.Join(rawLines(c.Inbound), []byte{'\n'}), c.Role == roleServer)
	}
	codec, err := wire.NewCodec(wire.Config{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte, server bool) {
		client := wire.NewClientGate()
		require.NoError(t, client.Offered(1))
		var g frameGate = client
		if server {
			g = wire.NewServerGate(wire.DefaultRange())
		}
		closed := false
		for line := range bytes.Lines(text) {
			answer, err := admitted(codec, g, line)
			require.NoError(t, err)
			var out struct {
				Outcome string
				Close   bool
			}
			require.NoError(t, json.Unmarshal(answer, &out))
			require.NotEmpty(t, out.Outcome)
			if closed {
				require.True(t, out.Close || out.Outcome == "not_read", "%s", answer)
			}
			closed = closed || out.Close
		}
	})
}

func rawLines(frames []json.RawMessage) [][]byte {
	out := make([][]byte, len(frames))
	for i, f := range frames {
		out[i] = f
	}
	return out
}
