// Package wire is the protocol of a framed connection, without the connection: the eleven frames, the
// codec that turns them into bytes and back, and the gates that hold each side to the handshake
// (wire.md). A length of four bytes, big end first, comes before that many bytes of JSON.
//
// What it does not do: it reads and writes no sockets, starts no goroutines, looks at no clock and
// keeps no buffers. It knows neither who a peer is nor what an operation, a topic or a namespace may
// be called. Package wire/session puts all that around it.
//
// Invariants.
//   - A decoder that is given anything but a whole, good frame returns no frame, and a *CodecError that
//     says which rule it broke. It never panics.
//   - A length is compared with the bound before anything is allocated for it, and decoding n bytes
//     never allocates more than 4n + 64 KiB.
//   - Members and kinds are closed sets, told apart by case. Response.Result and Event.Payload are the
//     only free values, and they keep their bytes.
//   - A frame shares no memory with the bytes it came from, so buffers may be reused: copying what is
//     kept costs little beside reading it, and a long-lived id must not hold an 8 MiB payload.
//   - Encode writes nothing that Decode of the same profile refuses, and reports a mistake of this side
//     before there is anything to send.
//   - A gate only moves forward. What is not expressly let through closes it, and once closed it stays
//     closed, for the first reason.
//
// # Reading and writing
//
// A reader takes four bytes, asks Codec.PayloadSize, reads as many more into a buffer it may use
// again, and calls Codec.DecodePayload. Codec.DecodeWithConsumed does all of it on bytes that are
// already there. A writer calls Codec.AppendEncode with a buffer of its own. After an error of the
// decoder the place in the stream is lost: hand the error to the gate's Fail, send the error frame of
// its outcome, and close.
//
// # One exchange, byte by byte
//
// A client connects and asks for version 1, sends a request, gets its response, and then errs by
// sending a second handshake, which ends the connection. Each frame is shown with what the gate of
// the side that receives it makes of it; Example is the code.
//
//	client: handshake, accepted
//	00000000  00 00 00 20 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |... {"kind":"han|
//	00000010  64 73 68 61 6b 65 22 2c  22 76 65 72 73 69 6f 6e  |dshake","version|
//	00000020  22 3a 31 7d                                       |":1}|
//	server: handshake_ack, completed
//	00000000  00 00 00 24 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |...${"kind":"han|
//	00000010  64 73 68 61 6b 65 5f 61  63 6b 22 2c 22 76 65 72  |dshake_ack","ver|
//	00000020  73 69 6f 6e 22 3a 31 7d                           |sion":1}|
//	client: request, admitted
//	00000000  00 00 00 41 7b 22 6b 69  6e 64 22 3a 22 72 65 71  |...A{"kind":"req|
//	00000010  75 65 73 74 22 2c 22 69  64 22 3a 22 6f 70 2d 31  |uest","id":"op-1|
//	00000020  22 2c 22 6f 70 73 22 3a  22 73 74 61 74 73 28 29  |","ops":"stats()|
//	00000030  22 2c 22 64 65 61 64 6c  69 6e 65 5f 6d 73 22 3a  |","deadline_ms":|
//	00000040  35 30 30 30 7d                                    |5000}|
//	server: response, admitted
//	00000000  00 00 00 37 7b 22 6b 69  6e 64 22 3a 22 72 65 73  |...7{"kind":"res|
//	00000010  70 6f 6e 73 65 22 2c 22  69 64 22 3a 22 6f 70 2d  |ponse","id":"op-|
//	00000020  31 22 2c 22 72 65 73 75  6c 74 22 3a 7b 22 72 65  |1","result":{"re|
//	00000030  73 75 6c 74 73 22 3a 5b  5d 7d 7d                 |sults":[]}}|
//	client: handshake, violation
//	00000000  00 00 00 20 7b 22 6b 69  6e 64 22 3a 22 68 61 6e  |... {"kind":"han|
//	00000010  64 73 68 61 6b 65 22 2c  22 76 65 72 73 69 6f 6e  |dshake","version|
//	00000020  22 3a 31 7d                                       |":1}|
//	server: error, server_terminated
//	00000000  00 00 00 68 7b 22 6b 69  6e 64 22 3a 22 65 72 72  |...h{"kind":"err|
//	00000010  6f 72 22 2c 22 63 6f 64  65 22 3a 22 6d 61 6c 66  |or","code":"malf|
//	00000020  6f 72 6d 65 64 5f 66 72  61 6d 65 22 2c 22 6d 65  |ormed_frame","me|
//	00000030  73 73 61 67 65 22 3a 22  74 68 65 20 68 61 6e 64  |ssage":"the hand|
//	00000040  73 68 61 6b 65 20 69 73  20 64 6f 6e 65 3b 20 61  |shake is done; a|
//	00000050  20 73 65 63 6f 6e 64 20  6f 6e 65 20 69 73 20 6e  | second one is n|
//	00000060  6f 74 20 61 6c 6c 6f 77  65 64 22 7d              |ot allowed"}|
//
// The first four bytes of the first frame, 00 00 00 20, are 32: the payload from { to } without the
// prefix. The members stand in the order of the table in wire.md 3, with no white space between them;
// a decoder takes any order and any white space.
package wire
