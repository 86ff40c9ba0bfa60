package packs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// validate checks everything about a verb but its name.
func (v *Verb) validate(r *report) {
	if !oneOf(v.Category, Assertive, Commissive, Declaration, Directive) {
		r.addf("the category is %s; it must be one of assertive, commissive, declaration, directive", showName(string(v.Category)))
	}
	if v.Visibility != Public && v.Visibility != Subhandler {
		r.addf("the visibility is %d; it must be public or a subhandler", v.Visibility)
	}
	r.text("description", v.Description)
	r.text("returns text", v.Returns)

	params := seen{}
	for i := range v.Params {
		p := &v.Params[i]
		pr := r.at("param " + showName(p.Name))
		pr.add(params.again(p.Name, "the param is declared twice; remove one"))
		p.validate(pr)
	}

	templates := seen{}
	for _, template := range v.WriteKeys {
		kr := r.at("write key " + showName(template))
		kr.add(templates.again(template, "the template is declared twice; remove one"))
		kr.add(v.writeKeyProblem(template))
	}

	if v.Resource == "" {
		return
	}
	switch p := v.Param(v.Resource); {
	case p == nil:
		r.addf("the resource names the param %s, which the verb does not declare; declare it or correct the name", showName(v.Resource))
	case p.Type != String && p.Type != UUID:
		r.addf("the resource param %s has type %s; a record is named by a string or uuid", showName(v.Resource), p.Type)
	}
}

func (p *Param) validate(r *report) {
	switch p.Name {
	case helpParam, "presentation", "presentation_per_op":
		r.add("the name is reserved for the request itself; choose another")
	case namespaceParam:
		p.validateNamespace(r)
	}
	r.add(nameProblem(p.Name, maxName))
	r.text("description", p.Description)
	if !p.Type.Valid() {
		r.addf("the type is %s; it must be one of string, integer, number, boolean, object, array, uuid, datetime, any, or array<T> of one of them but array", showName(string(p.Type)))
		return // what follows depends on it
	}
	bounds := p.validateBounds(r)
	enum := p.validateEnum(r)
	if p.Default == nil {
		return
	}
	if p.Required {
		r.add("is required and has a default, which could never be used; drop one of the two")
	}
	if !bounds || !enum {
		return
	}
	if _, f := p.conform(p.Default); f != nil {
		hint := ""
		if isGoNumber(p.Default) {
			hint = `; write numbers as json.Number("1")`
		}
		r.add("the default " + f.text + hint)
	}
}

// validateNamespace keeps a declared namespace param what the envelope takes it for.
func (p *Param) validateNamespace(r *report) {
	if p.Type != String {
		r.add("a verb that takes the namespace itself declares it as a string")
	}
	if p.Nullable || p.Default != nil || p.Sensitive {
		r.add("a namespace has the caller's default, is never null and never secret; drop default, nullable and sensitive")
	}
}

// validateBounds reports whether the bounds are sound enough to check a default against.
func (p *Param) validateBounds(r *report) bool {
	ok := true
	numeric := p.Type == Integer || p.Type == Number
	for _, b := range []struct {
		name  string
		value json.Number
	}{{"min", p.Min}, {"max", p.Max}} {
		if b.value == "" {
			continue
		}
		problem := numberProblem(b.value)
		switch {
		case !numeric:
			problem = fmt.Sprintf("is for integer and number params only; drop it, or change the type %s", p.Type)
		case problem == "" && p.Type == Integer && !isInteger(string(b.value)):
			problem = fmt.Sprintf("is %s; the bound of an integer is a literal without point or exponent", b.value)
		}
		if problem != "" {
			r.add(b.name + " " + problem)
			ok = false
		}
	}
	if ok && p.Min != "" && p.Max != "" && compare(p.Min, p.Max) > 0 {
		r.addf("min %s is above max %s; no value fits", p.Min, p.Max)
		ok = false
	}
	for _, b := range []struct {
		name  string
		value int
		fits  bool
		what  string
	}{
		{"max_length", p.MaxLength, p.Type.holdsStrings(), "for params that hold strings"},
		{"max_items", p.MaxItems, p.Type.holdsItems(), "for arrays and objects"},
	} {
		switch {
		case b.value < 0:
			r.addf("%s is %d; it must be positive, or 0 for the default", b.name, b.value)
			ok = false
		case b.value > 0 && !b.fits:
			r.addf("%s is %s only; drop it, or change the type %s", b.name, b.what, p.Type)
		}
	}
	return ok
}

// validateEnum reports whether the enum is sound enough to check a default against.
func (p *Param) validateEnum(r *report) bool {
	if p.Enum == nil {
		return true
	}
	if p.Type != String && p.Type != ArrayOf(String) {
		r.addf("an enum is for string and array<string> params only; drop it, or change the type %s", p.Type)
		return false
	}
	if len(p.Enum) == 0 {
		r.add("the enum is empty, so no value fits; list the values or drop it")
		return false
	}
	ok := true
	values := seen{}
	for _, e := range p.Enum {
		problem := ""
		switch {
		case values.again(e, "twice") != "":
			problem = "is there twice; remove one"
		case !utf8.ValidString(e):
			problem = "is not valid UTF-8"
		case len(e) > p.LengthLimit():
			problem = fmt.Sprintf("is longer than max_length %d", p.LengthLimit())
		case strings.TrimSpace(e) != e:
			problem = "begins or ends with white space; trim it"
		}
		if problem != "" {
			r.add("the enum value " + showName(e) + " " + problem)
			ok = false
		}
	}
	return ok
}

func isGoNumber(value any) bool {
	switch value.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return true
	}
	return false
}
