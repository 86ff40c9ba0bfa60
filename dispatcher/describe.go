package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbgate/verbgate/packs"
)

// describe answers help=true (dispatch.md 9).
func (r *run) describe(tool string, v *verb) Entry {
	if v == nil {
		entry, _ := fail(tool, r.unknown(tool))
		return entry
	}
	result, err := encode(v.Describe(v.pack.manifest.Name))
	if err != nil {
		entry, _ := fail(tool, r.crashed(tool, err))
		return entry
	}
	return Entry{OK: true, Tool: tool, Result: result}
}

// unknown is the refusal of a verb that no pack owns.
func (r *run) unknown(tool string) error {
	return &InvalidInput{Code: CodeUnknownVerb, Message: fmt.Sprintf("unknown verb %q; available: %s", clip(tool), r.d.available)}
}

// Catalogue lists the public verbs, sorted by name.
func (d *Dispatcher) Catalogue() []packs.Listing { return slices.Clone(d.catalogue) }

func names(listings []packs.Listing) string {
	list := make([]string, len(listings))
	for i := range listings {
		list[i] = listings[i].Verb
	}
	return strings.Join(list, ", ")
}

// declaration is the verb's manifest row, nil for a verb that no pack owns.
func (v *verb) declaration() *packs.Verb {
	if v == nil {
		return nil
	}
	return &v.Verb
}
