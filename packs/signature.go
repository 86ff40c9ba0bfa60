package packs

import "strings"

// Signature is the verb in one line, its params in the manifest's order and the optional ones marked:
// get(id: string, limit?: integer).
func (v *Verb) Signature() string {
	var b strings.Builder
	b.WriteString(v.Name)
	b.WriteByte('(')
	for i := range v.Params {
		p := &v.Params[i]
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
		if !p.Required {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		b.WriteString(string(p.Type))
	}
	b.WriteByte(')')
	return b.String()
}

// Description is the answer to help=true (dispatch.md 9). Encoded as JSON its keys are in the order
// of the contract; the last two are there for subhandlers only.
type Description struct {
	Verb           string             `json:"verb"`
	Pack           string             `json:"pack"`
	Description    string             `json:"description"`
	Category       Category           `json:"category"`
	Params         []ParamDescription `json:"params"`
	Visibility     string             `json:"visibility,omitempty"`
	CallableViaMCP *bool              `json:"callable_via_mcp,omitempty"`
}

// ParamDescription is one param of a Description.
type ParamDescription struct {
	Name        string `json:"name"`
	Type        Type   `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

// Describe answers help=true. pack is the name of the pack that declares the verb.
func (v *Verb) Describe(pack string) Description {
	d := Description{
		Verb: v.Name, Pack: pack, Description: v.Description, Category: v.Category,
		Params: make([]ParamDescription, len(v.Params)),
	}
	for i := range v.Params {
		p := &v.Params[i]
		d.Params[i] = ParamDescription{Name: p.Name, Type: p.Type, Required: p.Required, Description: p.Description}
	}
	if v.Visibility != Public {
		no := false
		d.Visibility, d.CallableViaMCP = "internal", &no
	}
	return d
}

// Listing is the verb as verbs() and the tool description show it.
func (v *Verb) Listing(pack string) Listing {
	return Listing{Verb: v.Name, Pack: pack, Category: v.Category, Signature: v.Signature(), Description: v.Description}
}
