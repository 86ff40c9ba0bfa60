package cel

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/verbgate/verbgate/packs"
)

var (
	errUnexpected = errors.New("a value is not of the declared type")
	errNumber     = errors.New("a number does not fit CEL's numbers exactly")
	errTime       = errors.New("a time lies outside the years 1 to 9999")
)

// valueError says that a value cannot be shown to a rule.
type valueError struct {
	what string // "the param limit"
	err  error
}

func (e *valueError) Error() string { return e.what + ": " + e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }

// adapter turns plain JSON into CEL values. Lists and maps are wrapped, not copied, and convert an
// element when it is read; elem is the declared type of the elements of an array<T>.
type adapter struct{ elem packs.Type }

// values converts plain JSON that has no declared type.
var values = adapter{elem: packs.Any}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	if v, ok := value.(ref.Val); ok {
		return v
	}
	v, err := typedValue(a.elem, value)
	if err != nil {
		return types.WrapErr(err)
	}
	return v
}

// typedValue shows a value of a declared type to a rule. Null is of type any only: a rule such as
// params.s != "x" would pass it.
func typedValue(t packs.Type, value any) (ref.Val, error) {
	if elem, ok := t.Elem(); ok {
		list, ok := value.([]any)
		if !ok {
			return nil, errUnexpected
		}
		return types.NewDynamicList(adapter{elem: elem}, list), nil
	}
	switch t {
	case packs.String, packs.UUID:
		if s, ok := value.(string); ok {
			return types.String(s), nil
		}
	case packs.Integer:
		if n, ok := value.(json.Number); ok {
			i, err := strconv.ParseInt(string(n), 10, 64)
			if err != nil {
				return nil, errNumber
			}
			return types.Int(i), nil
		}
	case packs.Number:
		if n, ok := value.(json.Number); ok {
			return double(n)
		}
	case packs.Boolean:
		if b, ok := value.(bool); ok {
			return types.Bool(b), nil
		}
	case packs.Datetime:
		if s, ok := value.(string); ok {
			return timestamp(s)
		}
	case packs.Object:
		if m, ok := value.(map[string]any); ok {
			return types.NewStringInterfaceMap(values, m), nil
		}
	case packs.Array:
		if l, ok := value.([]any); ok {
			return types.NewDynamicList(values, l), nil
		}
	case packs.Any:
		return untypedValue(value)
	}
	return nil, errUnexpected
}

func untypedValue(value any) (ref.Val, error) {
	switch v := value.(type) {
	case nil:
		return types.NullValue, nil
	case string:
		return types.String(v), nil
	case bool:
		return types.Bool(v), nil
	case json.Number:
		return number(v)
	case []any:
		return types.NewDynamicList(values, v), nil
	case map[string]any:
		return types.NewStringInterfaceMap(values, v), nil
	}
	return nil, errUnexpected
}

// maxNumberBytes bounds what reading a literal costs; the parser refuses longer ones (request.md 2).
const maxNumberBytes = 128

// number is an int if the literal fits one, else a uint, else a double.
func number(n json.Number) (ref.Val, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return types.Int(i), nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return types.Uint(u), nil
	}
	return double(n)
}

// double never rounds an integer: a whole literal beyond 2^53 must be one that a double holds. A
// literal with point or exponent is rounded as CEL rounds its own literals, unless it vanishes.
func double(n json.Number) (ref.Val, error) {
	s := string(n)
	if len(s) > maxNumberBytes {
		return nil, errNumber
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "-+.eE0123456789") != "" {
		return nil, errNumber
	}
	const exact = 1 << 53
	if !strings.ContainsAny(s, ".eE") && (f > exact || f < -exact || f == exact || f == -exact) {
		whole, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return nil, errNumber
		}
		rounded, accuracy := new(big.Float).SetFloat64(f).Int(nil)
		if accuracy != big.Exact || rounded.Cmp(whole) != 0 {
			return nil, errNumber
		}
	}
	if mantissa, _, _ := strings.Cut(strings.ToLower(s), "e"); f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return nil, errNumber
	}
	return types.Double(f), nil
}

func timestamp(s string) (ref.Val, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, errUnexpected
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return nil, errTime
	}
	return types.Timestamp{Time: t}, nil
}

// maxDepth is how deep a value may nest, as in request.md 5.
const maxDepth = 64

// scan looks through a value for what no rule may see. A list or map converts its elements one by
// one while a rule runs, and CEL's equality takes an element that failed for an equal one.
func scan(t packs.Type, value any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it nests deeper than %d levels", maxDepth)
	}
	switch v := value.(type) {
	case []any:
		elem, ok := t.Elem()
		if !ok {
			elem = packs.Any
		}
		for _, e := range v {
			if err := scan(elem, e, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := scan(packs.Any, e, depth+1); err != nil {
				return err
			}
		}
	default:
		_, err := typedValue(t, value)
		return err
	}
	return nil
}
