package dispatcher

import (
	"cmp"
	"slices"
)

// BudgetExceeded stands in the place of a result that did not fit the answer (request.md 8, response
// size). It is the typed error object of the entry.
type BudgetExceeded struct {
	Kind        Code   `json:"kind"` // CodeFrameBudget
	Message     string `json:"message"`
	Recoverable string `json:"recoverable"` // reduce_result_size, or read_outcome when what the verb did stands
}

func (e *BudgetExceeded) Error() string { return e.Message }

// maxHeld bounds the results that one request keeps for its answer, in bytes.
const maxHeld = 64 << 20

// held counts a result that is kept, and lets one go when there are too many: of a chain the earliest,
// which no later step refers to any more, else the result itself.
func (r *run) held(e *Entry, earlier []Entry) {
	if !e.OK {
		return
	}
	const why = "is too large for the answer beside the others"
	over := r.holding.Add(int64(len(e.Result))) > maxHeld
	for i := range earlier {
		if over && earlier[i].OK {
			n := len(earlier[i].Result)
			earlier[i] = earlier[i].omitted(why)
			over = r.holding.Add(-int64(n)) > maxHeld
		}
	}
	if over && earlier == nil {
		r.holding.Add(-int64(len(e.Result)))
		*e = e.omitted(why)
	}
}

// Fit encodes the envelope within size bytes and depth levels of nesting, itself included. Results that
// are too deep, and then the largest ones, are replaced by a *BudgetExceeded until the rest fits; the
// summary and the status are counted again. ok is false when even that is too large.
func (e *Envelope) Fit(size, depth int) (text []byte, ok bool) {
	const around = 3 // the envelope, its results, the entry
	entries := slices.Clone(e.Results)
	for i := range entries {
		if entries[i].OK && jsonDepth(entries[i].Result)+around > depth {
			entries[i] = entries[i].omitted("is nested too deep for the answer")
		}
	}
	bySize := make([]int, 0, len(entries))
	for i := range entries {
		if entries[i].OK {
			bySize = append(bySize, i)
		}
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(len(entries[b].Result), len(entries[a].Result)) })
	for {
		fitted := envelope(e.RequestID, entries)
		text, err := fitted.JSON()
		if err != nil {
			return nil, false
		}
		over := len(text) - size
		if over <= 0 {
			return text, true
		}
		if len(bySize) == 0 {
			return nil, false
		}
		for over > 0 && len(bySize) > 0 { // largest first; encoded again only when it may be enough
			i := bySize[0]
			bySize = bySize[1:]
			over -= len(entries[i].Result)
			entries[i] = entries[i].omitted("is too large for the answer")
		}
	}
}

// omitted is the entry without its result. What stands beside it stays.
func (e Entry) omitted(why string) Entry {
	exceeded := &BudgetExceeded{Kind: CodeFrameBudget, Recoverable: "reduce_result_size", Message: "the result " + why + "; ask for less of it"}
	if e.writes {
		exceeded.Recoverable = "read_outcome"
		exceeded.Message = "the result " + why + "; what the verb did stands, read it back instead of calling it again"
	}
	e.OK, e.Result, e.Error, e.Code = false, nil, exceeded, CodeFrameBudget
	return e
}

// jsonDepth is how deep valid JSON is nested.
func jsonDepth(text []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
