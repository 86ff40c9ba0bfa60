package dispatcher

import (
	"slices"
	"strconv"
	"strings"

	"github.com/verbgate/verbgate/dispatcher/request"
	"github.com/verbgate/verbgate/packs"
)

// conflicts finds the operations of a request that would write the same thing (request.md 7), and
// returns the refusal of each by index, nil for those that may run. All operations that share a key
// are refused before any operation of the request runs. Help calls, malformed namespaces and verbs
// the caller cannot call take no part: they have answers of their own.
func (r *run) conflicts(ops []request.Operation) []error {
	refusals := make([]error, len(ops))
	var owners map[string][]int
	for i := range ops {
		for _, key := range r.writeKeys(&ops[i]) {
			if owners == nil {
				owners = make(map[string][]int)
			}
			owners[key] = append(owners[key], i)
		}
	}
	keys := make([]string, 0, len(owners))
	for key, by := range owners {
		if len(by) > 1 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys) // the same request names the same key each time
	for _, key := range keys {
		by := slices.Compact(slices.Clone(owners[key]))
		for _, i := range by {
			if refusals[i] == nil {
				refusals[i] = &WriteConflict{Key: key, Operations: by}
			}
		}
	}
	return refusals
}

// writeKeys are the keys an operation takes. Only literals give keys.
func (r *run) writeKeys(op *request.Operation) []string {
	v := r.d.verbs[op.Tool]
	if v == nil || len(v.WriteKeys) == 0 || (v.Visibility != packs.Public && r.caller.Source != CLI) {
		return nil
	}
	args := make(map[string]any, len(op.Args))
	for _, a := range op.Args {
		if a.Value.HasRef() {
			continue
		}
		value, err := a.Value.Any(nil)
		if err != nil {
			continue
		}
		args[a.Name] = value
	}
	if _, help := args["help"]; help {
		return nil // described, or refused for a help that is not true
	}
	if ns, given := args["namespace"]; given {
		if _, err := namespaceArg(ns); err != nil {
			return nil
		}
	}
	return v.WriteKeyTuples(args)
}

func joinInts(list []int) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
