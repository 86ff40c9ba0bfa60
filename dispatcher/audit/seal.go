package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Seal returns {"$sealed":"v1:<key id>:<hex>"} for the plain JSON value at path: HMAC-SHA-256 over
// path, JSON type and value. Equal values at one path have equal seals. Numbers are compared by their
// exact value, so 1, 1.0 and 1e0 are equal and 2^53 and 2^53+1 are not; object members have no order;
// the string "1", the number 1, true, null and [] are all different. A value that is not JSON at all
// is sealed as such, without its content: Seal never returns what it was given.
func (k *Key) Seal(path string, value any) any {
	mac := hmac.New(sha256.New, k.secret[:])
	mac.Write(appendValue(appendText(nil, 'p', path), value))
	return map[string]any{"$sealed": "v1:" + k.id + ":" + hex.EncodeToString(mac.Sum(nil))}
}

// appendValue appends an injective encoding: every value starts with a letter for its type, and
// whatever has no fixed length is preceded by it.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case string:
		return appendText(b, 's', v)
	case json.Number:
		if n, ok := canonicalNumber(v.String()); ok {
			return appendText(b, 'd', n)
		}
		return append(b, 'x')
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, e := range v {
			b = appendValue(b, e)
		}
		return b
	case map[string]any:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = appendValue(appendText(b, 'm', name), v[name])
		}
		return b
	}
	// A Go type that plain JSON values do not have, such as a float64: as JSON would spell it.
	text, err := json.Marshal(value)
	if err != nil {
		return append(b, 'x')
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var plain any
	if decoder.Decode(&plain) != nil {
		return append(b, 'x')
	}
	return appendValue(b, plain)
}

func appendText(b []byte, kind byte, s string) []byte {
	b = binary.AppendUvarint(append(b, kind), uint64(len(s)))
	return append(b, s...)
}

// canonicalNumber spells the exact value of a JSON number: [-]digits e exponent, the digits without
// zeros at either end, and 0 for zero. It works on the text, because the value of 1e-300 or of a
// hundred digits fits no number type.
func canonicalNumber(s string) (string, bool) {
	rest, negative := strings.CutPrefix(s, "-")
	mantissa, exponent := rest, new(big.Int)
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		if _, ok := exponent.SetString(strings.TrimPrefix(rest[i+1:], "+"), 10); !ok {
			return "", false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	digits := whole + fraction
	if whole == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	digits = strings.TrimLeft(digits, "0")
	short := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(short))))
	if short == "" {
		return "0", true
	}
	if negative {
		short = "-" + short
	}
	return short + "e" + exponent.String(), true
}
