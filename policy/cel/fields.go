package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// The names of the variables a rule may read.
const (
	varParams = "params"
	varToken  = "token"
	varVerb   = "verb"
	varNow    = "now"
)

// The names of our object types hold a space, so that no rule can spell them and construct one.
const (
	typeToken = "the token"
	typeActor = "the actor"
)

// provider tells the type checker which members params and token have, and the evaluator how to read
// them from the Go values without a copy.
type provider struct {
	*types.Registry
	objects map[string]map[string]*types.FieldType
}

func newProvider(v *packs.Verb) (*provider, *types.Type, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, nil, fmt.Errorf("cel: make the type registry: %w", err)
	}
	paramsType := "the params of " + v.Name
	fields := make(map[string]*types.FieldType, len(v.Params))
	for i := range v.Params {
		p := &v.Params[i]
		t, err := celType(p)
		if err != nil {
			return nil, nil, fmt.Errorf("verb %s: param %s: %w", v.Name, p.Name, err)
		}
		fields[p.Name] = paramField(p, t)
	}
	return &provider{
		Registry: registry,
		objects: map[string]map[string]*types.FieldType{
			paramsType: fields, typeToken: tokenFields, typeActor: actorFields,
		},
	}, types.NewObjectType(paramsType), nil
}

// FindStructType is the type checker's question whether an object type exists.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ours := p.objects[name]; ours {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames lists the members of an object type.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ours := p.objects[name]
	if !ours {
		return p.Registry.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(fields))
	for field := range fields {
		names = append(names, field)
	}
	return names, true
}

// FindStructFieldType is the type of one member and the way to it.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ours := p.objects[name]
	if !ours {
		return p.Registry.FindStructFieldType(name, field)
	}
	t, ok := fields[field]
	return t, ok
}

// celType is the type a rule sees a param with.
func celType(p *packs.Param) (*types.Type, error) {
	t, err := plainType(p.Type)
	if err != nil {
		return nil, err
	}
	if !p.Nullable {
		return t, nil
	}
	switch p.Type {
	case packs.String, packs.UUID, packs.Integer, packs.Number, packs.Boolean:
		return types.NewNullableType(t), nil
	case packs.Datetime: // CEL lets null stand for a timestamp
		return t, nil
	}
	return types.DynType, nil // CEL has no list or map that may be null
}

func plainType(t packs.Type) (*types.Type, error) {
	if elem, ok := t.Elem(); ok {
		e, err := plainType(elem)
		if err != nil {
			return nil, err
		}
		return types.NewListType(e), nil
	}
	switch t {
	case packs.String, packs.UUID:
		return types.StringType, nil
	case packs.Integer:
		return types.IntType, nil
	case packs.Number:
		return types.DoubleType, nil
	case packs.Boolean:
		return types.BoolType, nil
	case packs.Datetime:
		return types.TimestampType, nil
	case packs.Object:
		return types.NewMapType(types.StringType, types.DynType), nil
	case packs.Array:
		return types.NewListType(types.DynType), nil
	case packs.Any:
		return types.DynType, nil
	}
	return nil, fmt.Errorf("the type %q is none of the manifest's", t)
}

// absentError says that a rule read a param the call does not have.
type absentError struct{ param string }

func (e *absentError) Error() string { return "the param " + e.param + " is absent" }

func paramField(p *packs.Param, t *types.Type) *types.FieldType {
	name, kind, nullable := p.Name, p.Type, p.Nullable
	return &types.FieldType{
		Type: t,
		IsSet: func(target any) bool {
			params, _ := target.(map[string]any)
			_, given := params[name]
			return given
		},
		GetFrom: func(target any) (any, error) {
			params, _ := target.(map[string]any)
			value, given := params[name]
			if !given {
				return nil, &absentError{name}
			}
			if value == nil && nullable {
				return types.NullValue, nil
			}
			v, err := typedValue(kind, value)
			if err != nil {
				return nil, &valueError{what: "the param " + name, err: err}
			}
			return v, nil
		},
	}
}

func always(any) bool { return true }

func tokenField(t *types.Type, get func(*policy.Token) any) *types.FieldType {
	return &types.FieldType{Type: t, IsSet: always, GetFrom: func(target any) (any, error) {
		token, ok := target.(*policy.Token)
		if !ok {
			return nil, errUnexpected
		}
		return get(token), nil
	}}
}

func actorField(t *types.Type, get func(*policy.Actor) ref.Val) *types.FieldType {
	return &types.FieldType{Type: t, IsSet: always, GetFrom: func(target any) (any, error) {
		actor, ok := target.(*policy.Actor)
		if !ok {
			return nil, errUnexpected
		}
		return get(actor), nil
	}}
}

var (
	stringList  = types.NewListType(types.StringType)
	tokenFields = map[string]*types.FieldType{
		"namespace": tokenField(types.StringType, func(t *policy.Token) any { return types.String(t.Namespace) }),
		"explicit":  tokenField(types.BoolType, func(t *policy.Token) any { return types.Bool(t.Explicit) }),
		"read":      tokenField(stringList, func(t *policy.Token) any { return types.NewStringList(values, t.Read) }),
		"actor":     tokenField(types.NewObjectType(typeActor), func(t *policy.Token) any { return &t.Actor }),
	}
	actorFields = map[string]*types.FieldType{
		"kind":   actorField(types.StringType, func(a *policy.Actor) ref.Val { return types.String(a.Kind) }),
		"id":     actorField(types.StringType, func(a *policy.Actor) ref.Val { return types.String(a.ID) }),
		"groups": actorField(stringList, func(a *policy.Actor) ref.Val { return types.NewStringList(values, a.Groups) }),
		"claims": actorField(types.NewMapType(types.StringType, types.DynType), func(a *policy.Actor) ref.Val {
			return types.NewStringInterfaceMap(values, a.Claims)
		}),
	}
)
