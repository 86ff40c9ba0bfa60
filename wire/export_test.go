package wire

// Rules that cannot be met from outside: a newest version other than today's, and a payload of more
// than 4 GiB.
var (
	NewSupportedRangeUnder = newSupportedRange
	DefaultRangeUnder      = defaultRange
	CheckSize              = Codec.checkSize
)
