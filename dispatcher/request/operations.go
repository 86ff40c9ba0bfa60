package request

import (
	"fmt"
	"strings"
)

// shape is where the parts of one JSON operation stand on the tape.
type shape struct {
	tool uint32 // the String node
	args uint32 // the Object node, when has
	has  bool
}

// operations makes the request from the JSON on the tape (request.md 4).
func (p *parser) operations(mode Mode) (*Request, *Error) {
	read := tape{text: p.text, nodes: p.nodes}
	count, first := 1, uint32(0)
	if mode == Parallel {
		count, first = int(read.nodes[0].n), 1
	}
	if count > MaxOps {
		return nil, p.failTooMany(count)
	}
	var shapes [MaxOps]shape
	args, at := 0, first
	for i := range count {
		s, err := p.operation(&read, at)
		if err != nil {
			return nil, err
		}
		if shapes[i] = s; s.has {
			args += int(read.nodes[s.args].n)
		}
		at = read.nodes[at].next
	}
	for _, s := range shapes[:count] {
		if err := p.checkArgs(&read, s); err != nil {
			return nil, err
		}
	}
	out, slab := p.finish(mode, count, args)
	t := &out.tape
	for _, s := range shapes[:count] {
		from := len(slab)
		if s.has {
			args := Value{t: t, i: s.args}
			for name, value := range args.Members() {
				slab = append(slab, Arg{Name: name, Value: value})
			}
		}
		out.req.Ops = append(out.req.Ops, Operation{Tool: t.str(s.tool), Args: slab[from:len(slab):len(slab)]})
	}
	return &out.req, nil
}

// operation checks the shape of the operation at a node.
func (p *parser) operation(t *tape, at uint32) (shape, *Error) {
	var s shape
	op := t.nodes[at]
	if op.kind != Object {
		return s, p.failJSON(p.place(at), fmt.Sprintf("%s stands where an operation was due", nameOf(op.kind)), "write {\"tool\": \"verb\", \"args\": {…}}")
	}
	tool := false
	for k := at + 1; k < op.next; k = t.nodes[k+1].next {
		if t.nodes[k].flags&flagDead != 0 {
			continue
		}
		switch key := t.str(k); key {
		case "tool":
			s.tool, tool = k+1, true
		case "args":
			s.args, s.has = k+1, true
		default:
			return s, p.failUnknownKey(k, key)
		}
	}
	switch {
	case !tool:
		return s, p.failJSON(p.place(at), "the operation has no \"tool\"", "write {\"tool\": \"verb\", \"args\": {…}}")
	case t.nodes[s.tool].kind != String:
		return s, p.failJSON(p.place(s.tool), "\"tool\" is "+nameOf(t.nodes[s.tool].kind), "it is the verb, as a string")
	case s.has && t.nodes[s.args].kind != Object:
		return s, p.failJSON(p.place(s.args), "\"args\" is "+nameOf(t.nodes[s.args].kind), "it is an object of name: value; leave it out when there are none")
	}
	return s, p.checkTool(t, s.tool)
}

// checkTool holds the name of a verb in a JSON string to the grammar of request.md 2.
func (p *parser) checkTool(t *tape, at uint32) *Error {
	tool := t.str(at)
	place := func(i int) int {
		if t.nodes[at].flags&flagEscaped != 0 {
			i = rawOffset(t.raw(at), i)
		}
		return int(t.nodes[at].off) + i
	}
	if tool == "" {
		return p.failIdentifier(p.place(at), "\"tool\" is empty; it is the verb, as in \"verb\" or \"pack.verb\"")
	}
	end := scanName(tool, 0)
	if end > 0 && end < len(tool) && tool[end] == '.' {
		start := end + 1
		if end = scanName(tool, start); end > start && end < len(tool) && tool[end] == '.' {
			return p.failNesting(place(end))
		}
		if end == start {
			return p.failIdentifier(place(end), "no name follows the dot of the verb %s; write \"pack.verb\"", show(tool))
		}
	}
	if end == len(tool) {
		return nil
	}
	return p.failIdentifier(place(end), "%s is no verb; a verb is ASCII letters, digits and underscores, does not begin with a digit, and has at most one dot", show(tool))
}

// checkArgs refuses strings that would be references, then reserved names, of one operation.
func (p *parser) checkArgs(t *tape, s shape) *Error {
	if !s.has {
		return nil
	}
	args := t.nodes[s.args]
	if args.flags&flagHasRef != 0 {
		for k := s.args + 1; k < args.next; k = t.nodes[k+1].next {
			if t.nodes[k].flags&flagDead != 0 {
				continue
			}
			if ref, ok := t.firstRef(k + 1); ok {
				name := t.str(k)
				e := p.fail(PrevRefInJsonForm, p.place(ref), "the argument %s holds a reference, and JSON form has none; write a chain of calls: first() | second(name=$prev)", show(name))
				e.Arg = name
				return e
			}
		}
	}
	for k := s.args + 1; k < args.next; k = t.nodes[k+1].next {
		if n := t.nodes[k]; n.flags&flagDead == 0 && (n.flags&flagEscaped != 0 || n.n <= uint32(len("presentation_per_op"))) {
			if name := t.str(k); envelopeArg(name) {
				return p.failReserved(p.place(k), t.str(s.tool), name)
			}
		}
	}
	return nil
}

// place is where a value or a key begins in the body, its quote included.
func (p *parser) place(at uint32) int {
	n := p.nodes[at]
	if n.kind == String || n.kind == kindKey {
		return int(n.off) - 1
	}
	return int(n.off)
}

func (p *parser) failTooMany(count int) *Error {
	at := uint32(1)
	for range MaxOps {
		at = p.nodes[at].next
	}
	e := p.fail(TooManyOps, p.place(at), "the request has %d operations and may have at most %d; send the rest, from here on, in another request", count, MaxOps)
	e.Count, e.Max = count, MaxOps
	return e
}

func (p *parser) failUnknownKey(k uint32, key string) *Error {
	advice := "an operation has \"tool\" and \"args\" and nothing else; arguments belong inside \"args\""
	switch strings.ToLower(key) {
	case "tool", "verb", "name", "method", "op":
		advice = "write \"tool\" for the verb"
	case "args", "arg", "arguments", "params", "parameters", "input":
		advice = "write \"args\" for the arguments"
	}
	e := p.failJSON(p.place(k), "the key "+show(key)+" is unknown", advice)
	e.Found = clip(key)
	return e
}

// nameOf is a kind as a message says it.
func nameOf(k Kind) string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	case Reference:
	}
	return "a reference"
}
