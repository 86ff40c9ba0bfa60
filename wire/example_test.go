package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/verbgate/verbgate/wire"
)

// The exchange of the package comment: what each side encodes, what the other side's gate says of
// it, and every byte that travels.
func Example() {
	codec, err := wire.NewCodec(wire.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, client := wire.NewServerGate(wire.DefaultRange()), wire.NewClientGate()

	// send carries a frame to the other side: encode, show the bytes, decode, ask the gate.
	send := func(from string, f wire.Frame, admit func(wire.Frame) wire.Outcome) wire.Outcome {
		b, err := codec.Encode(f)
		if err != nil {
			fmt.Println(err)
			return wire.Outcome{}
		}
		got, err := codec.Decode(b)
		if err != nil {
			fmt.Println(err)
			return wire.Outcome{}
		}
		out := admit(got)
		fmt.Printf("%s: %s, %s\n%s", from, wire.KindOf(got), out.Verdict, hex.Dump(b))
		return out
	}

	out := send("client", wire.Handshake{Version: wire.CurrentVersion}, server.Admit)
	if err := client.Offered(wire.CurrentVersion); err != nil {
		fmt.Println(err)
		return
	}
	ack, _ := out.Ack.Get()
	send("server", ack, client.Admit)
	send("client", wire.Request{ID: "op-1", Ops: "stats()", DeadlineMS: wire.Some(uint64(5000))}, server.Admit)
	send("server", wire.Response{ID: "op-1", Result: json.RawMessage(`{"results":[]}`)}, client.Admit)

	// A second handshake is against the rules: the server says so and closes.
	out = send("client", wire.Handshake{Version: wire.CurrentVersion}, server.Admit)
	refusal, _ := out.Error.Get()
	send("server", refusal, client.Admit)
	// Output:
	// client: handshake, accepted
	// 00000000  00 00 00 20 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |... {"kind":"han|
	// 00000010  64 73 68 61 6b 65 22 2c  22 76 65 72 73 69 6f 6e  |dshake","version|
	// 00000020  22 3a 31 7d                                       |":1}|
	// server: handshake_ack, completed
	// 00000000  00 00 00 24 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |...${"kind":"han|
	// 00000010  64 73 68 61 6b 65 5f 61  63 6b 22 2c 22 76 65 72  |dshake_ack","ver|
	// 00000020  73 69 6f 6e 22 3a 31 7d                           |sion":1}|
	// client: request, admitted
	// 00000000  00 00 00 41 7b 22 6b 69  6e 64 22 3a 22 72 65 71  |...A{"kind":"req|
	// 00000010  75 65 73 74 22 2c 22 69  64 22 3a 22 6f 70 2d 31  |uest","id":"op-1|
	// 00000020  22 2c 22 6f 70 73 22 3a  22 73 74 61 74 73 28 29  |","ops":"stats()|
	// 00000030  22 2c 22 64 65 61 64 6c  69 6e 65 5f 6d 73 22 3a  |","deadline_ms":|
	// 00000040  35 30 30 30 7d                                    |5000}|
	// server: response, admitted
	// 00000000  00 00 00 37 7b 22 6b 69  6e 64 22 3a 22 72 65 73  |...7{"kind":"res|
	// 00000010  70 6f 6e 73 65 22 2c 22  69 64 22 3a 22 6f 70 2d  |ponse","id":"op-|
	// 00000020  31 22 2c 22 72 65 73 75  6c 74 22 3a 7b 22 72 65  |1","result":{"re|
	// 00000030  73 75 6c 74 73 22 3a 5b  5d 7d 7d                 |sults":[]}}|
	// client: handshake, violation
	// 00000000  00 00 00 20 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |... {"kind":"han|
	// 00000010  64 73 68 61 6b 65 22 2c  22 76 65 72 73 69 6f 6e  |dshake","version|
	// 00000020  22 3a 31 7d                                       |":1}|
	// server: error, server_terminated
	// 00000000  00 00 00 68 7b 22 6b 69  6e 64 22 3a 22 65 72 72  |...h{"kind":"err|
	// 00000010  6f 72 22 2c 22 63 6f 64  65 22 3a 22 6d 61 6c 66  |or","code":"malf|
	// 00000020  6f 72 6d 65 64 5f 66 72  61 6d 65 22 2c 22 6d 65  |ormed_frame","me|
	// 00000030  73 73 61 67 65 22 3a 22  74 68 65 20 68 61 6e 64  |ssage":"the hand|
	// 00000040  73 68 61 6b 65 20 69 73  20 64 6f 6e 65 3b 20 61  |shake is done; a|
	// 00000050  20 73 65 63 6f 6e 64 20  6f 6e 65 20 69 73 20 6e  | second one is n|
	// 00000060  6f 74 20 61 6c 6c 6f 77  65 64 22 7d              |ot allowed"}|
}
