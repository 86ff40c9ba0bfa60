package wire

import (
	"fmt"
	"strconv"
)

// Fault is what a codec refuses something for: the closed set of wire.md 5.
type Fault uint8

// The faults. The zero Fault is none.
const (
	TruncatedLengthPrefix Fault = iota + 1
	TruncatedPayload
	PayloadTooLarge
	PrefixLimitExceeded
	InvalidJSON
	MissingKind
	UnknownFrameKind
	InvalidFields
	InconsistentErrorScope
	FallbackFrameNotEncodable
	endOfFaults
)

var faultNames = [endOfFaults]string{
	"none", "truncated_length_prefix", "truncated_payload", "frame_too_large",
	"prefix_limit_exceeded", "invalid_json", "missing_kind", "unknown_frame_kind",
	"invalid_fields", "inconsistent_error_scope", "fallback_frame_not_encodable",
}

// String is the fault's name, as it is printed everywhere.
func (f Fault) String() string {
	if f >= endOfFaults {
		f = 0
	}
	return faultNames[f]
}

// WireCode is the code a peer is told for a fault of its frame: FrameTooLarge for the two about
// size, MalformedFrame for the rest. Both end the connection. After a failed Encode nobody is told.
func (f Fault) WireCode() ErrorCode {
	switch f {
	case PayloadTooLarge, PrefixLimitExceeded:
		return FrameTooLarge
	default:
		return MalformedFrame
	}
}

// CodecError is the error of everything in this package that reads or writes frames. Beside Fault
// only the fields a fault names are set.
type CodecError struct {
	Fault Fault
	// Available is how many bytes there were of what is truncated.
	Available int
	// Declared is the payload's size in bytes as the prefix declares it, or as Encode made it.
	Declared uint64
	// Max is the bound that PayloadTooLarge exceeds, in bytes.
	Max int
	// Name is the kind UnknownFrameKind met.
	Name string
	// Kind is the frame's kind, for InvalidFields, for the two about error frames and, when encoding,
	// for InvalidJSON. It is zero for an InvalidFields of what is no frame at all.
	Kind Kind
	// Field is the name of the member at fault, for InvalidFields and, when encoding, InvalidJSON. It
	// is a peer's text when it is no member's.
	Field string
	// Code is the code a fallback frame keeps, for FallbackFrameNotEncodable.
	Code string
	// Offset is where in the payload InvalidJSON was found, in bytes; when encoding, in the value.
	Offset int
	// Detail says in words what is wrong, for the faults of a payload.
	Detail string
}

// WireCode is the code of the fault, see Fault.WireCode.
func (e *CodecError) WireCode() ErrorCode { return e.Fault.WireCode() }

// Error is the fault's name, and what is wrong where. It quotes at most a few dozen bytes of a peer.
func (e *CodecError) Error() string {
	switch e.Fault {
	case TruncatedLengthPrefix:
		return fmt.Sprintf("%s: %d of the 4 bytes are there", e.Fault, e.Available)
	case TruncatedPayload:
		return fmt.Sprintf("%s: %d of the %d bytes declared are there", e.Fault, e.Available, e.Declared)
	case PayloadTooLarge:
		return fmt.Sprintf("%s: a payload of %d bytes, where at most %d are taken", e.Fault, e.Declared, e.Max)
	case PrefixLimitExceeded:
		return fmt.Sprintf("%s: a payload of %d bytes, where the prefix holds at most %d", e.Fault, e.Declared, uint64(prefixLimit))
	case InvalidJSON:
		if e.Kind != 0 {
			return fmt.Sprintf("%s: %s.%s, byte %d: %s", e.Fault, e.Kind, e.Field, e.Offset, e.Detail)
		}
		return fmt.Sprintf("%s: payload byte %d: %s", e.Fault, e.Offset, e.Detail)
	case UnknownFrameKind:
		return fmt.Sprintf("%s: %s is not a kind of this version", e.Fault, shown(e.Name))
	case InvalidFields:
		if e.Kind == 0 {
			return fmt.Sprintf("%s: %s", e.Fault, e.Detail)
		}
		return fmt.Sprintf("%s: %s: member %s %s", e.Fault, e.Kind, shown(e.Field), e.Detail)
	case FallbackFrameNotEncodable:
		return fmt.Sprintf("%s: code %s is not one of this version; forward the bytes it came in", e.Fault, shown(e.Code))
	case MissingKind, InconsistentErrorScope:
		return fmt.Sprintf("%s: %s", e.Fault, e.Detail)
	default:
		return e.Fault.String()
	}
}

// MarshalJSON is the error as the tools print it: "error" and "wire_code", then for the faults that
// have them "declared", "available", "max", "name", "frame_kind", "code".
func (e *CodecError) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 96), `{"error":`...)
	b = appendQuoted(b, e.Fault.String())
	b = appendQuoted(append(b, `,"wire_code":`...), e.WireCode().String())
	switch e.Fault {
	case TruncatedLengthPrefix:
		b = strconv.AppendInt(append(b, `,"available":`...), int64(e.Available), 10)
	case TruncatedPayload:
		b = strconv.AppendUint(append(b, `,"declared":`...), e.Declared, 10)
		b = strconv.AppendInt(append(b, `,"available":`...), int64(e.Available), 10)
	case PayloadTooLarge:
		b = strconv.AppendUint(append(b, `,"declared":`...), e.Declared, 10)
		b = strconv.AppendInt(append(b, `,"max":`...), int64(e.Max), 10)
	case PrefixLimitExceeded:
		b = strconv.AppendUint(append(b, `,"declared":`...), e.Declared, 10)
	case UnknownFrameKind:
		b = appendQuoted(append(b, `,"name":`...), e.Name)
	case InvalidFields:
		b = appendQuoted(append(b, `,"frame_kind":`...), e.Kind.String())
	case FallbackFrameNotEncodable:
		b = appendQuoted(append(b, `,"code":`...), e.Code)
	}
	return append(b, '}'), nil
}
