package wire

import "fmt"

// Version is a version of the protocol. 0 does not exist.
type Version uint32

// CurrentVersion is the newest version, whose grammar this package is.
const CurrentVersion Version = 1

// SupportedRange is the versions a server takes, both ends included. The zero SupportedRange holds
// none, so a gate made with it refuses every handshake.
type SupportedRange struct{ min, max Version }

// RangeFault is why NewSupportedRange refuses a range.
type RangeFault uint8

// The faults of a range, in the order they are looked for (wire.md 6).
const (
	MinVersionZero RangeFault = iota + 1
	InvertedRange
	MaxAboveCurrent
)

// String is the fault's printed name.
func (f RangeFault) String() string {
	switch f {
	case MinVersionZero:
		return "min_version_zero"
	case InvertedRange:
		return "inverted_range"
	case MaxAboveCurrent:
		return "max_above_current"
	}
	return "none"
}

// RangeError is a range that cannot be supported.
type RangeError struct {
	Fault             RangeFault
	Min, Max, Current Version
}

// Error names the fault and the numbers.
func (e *RangeError) Error() string {
	switch e.Fault {
	case MinVersionZero:
		return fmt.Sprintf("%s: versions begin at 1", e.Fault)
	case InvertedRange:
		return fmt.Sprintf("%s: the smallest version, %d, is above the largest, %d", e.Fault, e.Min, e.Max)
	default:
		return fmt.Sprintf("%s: version %d is above %d, the newest there is", e.Fault, e.Max, e.Current)
	}
}

// NewSupportedRange is the versions from min to max, or a *RangeError.
func NewSupportedRange(min, max Version) (SupportedRange, error) {
	return newSupportedRange(min, max, CurrentVersion)
}

func newSupportedRange(min, max, current Version) (SupportedRange, error) {
	e := RangeError{Min: min, Max: max, Current: current}
	switch {
	case min < 1:
		e.Fault = MinVersionZero
	case min > max:
		e.Fault = InvertedRange
	case max > current:
		e.Fault = MaxAboveCurrent
	default:
		return SupportedRange{min, max}, nil
	}
	return SupportedRange{}, &e
}

// DefaultRange is the current version and, once there is one, the version before it.
func DefaultRange() SupportedRange { return defaultRange(CurrentVersion) }

func defaultRange(current Version) SupportedRange {
	return SupportedRange{min: max(1, current-1), max: current}
}

// Min is the smallest version of the range, 0 for the zero range.
func (r SupportedRange) Min() Version { return r.min }

// Max is the largest version of the range, 0 for the zero range.
func (r SupportedRange) Max() Version { return r.max }

// Contains says whether the version is in the range; 0 never is.
func (r SupportedRange) Contains(v Version) bool { return v >= 1 && r.min <= v && v <= r.max }

// String is the range as "[min, max]".
func (r SupportedRange) String() string { return fmt.Sprintf("[%d, %d]", r.min, r.max) }
