package wire

import "encoding/json"

// The tools' JSON: a frame as one JSON object that people write and read, in the shape of its
// payload. It differs from a payload in what it can tell: frames that Encode would refuse, such as
// one with an empty id, and the member unrecognized_code of an error that was decoded as a fallback.

// ParseFrameJSON reads a frame as MarshalFrameJSON writes it: the members of wire.md 3 in any order,
// a null optional as absence, a repeated member by its last value. An error frame may carry
// unrecognized_code beside code "internal". Ids may be empty and error frames out of scope; that is
// for Encode to refuse. Result and Payload lose the white space between their tokens, which here
// belongs to the description and not to the frame; nothing else of them changes. The error is a
// *CodecError.
func ParseFrameJSON(text []byte) (Frame, error) {
	f, err := decodePayload(text, rules{described: true})
	if err != nil {
		return nil, err
	}
	switch v := f.(type) {
	case Response:
		v.Result = squeeze(v.Result)
		return v, nil
	case Event:
		v.Payload = squeeze(v.Payload)
		return v, nil
	}
	return f, nil
}

// MarshalFrameJSON is the frame as a payload spells it, and unrecognized_code where the frame keeps
// one. Every decoded frame has this form. The error is a *CodecError, for what is no frame and for a
// frame whose text is not UTF-8 or whose opaque value is not JSON.
func MarshalFrameJSON(f Frame) ([]byte, error) {
	return appendPayload(make([]byte, 0, sizeHint(f)), f, rules{described: true})
}

// squeeze takes the white space between tokens out of good JSON text, in place.
func squeeze(text json.RawMessage) json.RawMessage {
	kept := text[:0]
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
		case '"':
			s := scanner{buf: text, pos: i}
			s.str()
			kept = append(kept, text[i:s.pos]...)
			i = s.pos - 1
		default:
			kept = append(kept, text[i])
		}
	}
	return kept
}
