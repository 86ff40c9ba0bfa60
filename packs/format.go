package packs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// isDatetime accepts RFC 3339 in its strict form. time.Parse is looser (a comma before the fraction,
// one-digit hours in older versions), and the policy and the database read the text themselves.
func isDatetime(s string) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || len(s) > 64 || s[10] != 'T' {
		return false
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return false
	}
	return !strings.Contains(s, ",")
}

func jsonFits(t Type, value any) bool {
	got := jsonType(value)
	switch t {
	case UUID, Datetime:
		return got == "string"
	case Integer:
		return got == "number"
	}
	return got == string(t)
}

// describeType words a type for a sentence: "string (a UUID)" says what to send better than "uuid".
func describeType(t Type) string {
	switch t {
	case UUID:
		return "string with a UUID"
	case Datetime:
		return "string with an RFC 3339 date and time"
	}
	return string(t)
}

func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("Go value of type %T", value)
}
