package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// locate asks the pack where the record is that the call is about (dispatch.md 3). It compares nothing.
func (r *run) locate(ctx context.Context, v *verb, params packs.Params, token *Token) *policy.Resource {
	id, ok := params[v.Resource].(string)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.d.limits.LocateTimeout)
	defer cancel()
	resource := &policy.Resource{Param: v.Resource, ID: id}
	ref := packs.ResourceRef{Verb: v.Name, Param: v.Resource, ID: id, Token: token}
	location, err := guard(ctx, func(ctx context.Context) (packs.Location, error) { return v.locator.Locate(ctx, ref) })
	switch {
	case err != nil:
		r.d.log.Debug("the pack could not locate a record", "verb", v.Name, "request_id", r.id, "error", err)
	case !location.Exists:
		resource.Exists = policy.Absent
	default:
		resource.Exists, resource.ID, resource.Namespace, resource.Kind = policy.Present, location.ID, location.Namespace, location.Kind
	}
	return resource
}

// pin makes the handler act on the very record that the gate judged: an abbreviated id is replaced by the
// full one it stood for then, so that nothing that happens in between can make it mean another record.
func pin(params packs.Params, resource *policy.Resource) packs.Params {
	if resource == nil || resource.Exists != policy.Present || resource.ID == params[resource.Param] {
		return params
	}
	params = maps.Clone(params)
	params[resource.Param] = resource.ID
	return params
}

// handle runs a handler and encodes what it returns.
func (r *run) handle(ctx context.Context, v *verb, call *packs.Call) (json.RawMessage, error) {
	return guard(ctx, func(ctx context.Context) (json.RawMessage, error) {
		value, err := v.handler(ctx, call)
		if err != nil {
			return nil, err
		}
		result, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
		return result, nil
	})
}

// crash is a panic, or a handler that ended its goroutine.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v", c.value) }

// guard runs pack code in a goroutine of its own, so that neither a panic nor runtime.Goexit takes more
// with it than the one call. The goroutine ends with fn, and guard waits for it: a call that has begun
// is never left behind, so its record tells what really happened.
func guard[T any](ctx context.Context, fn func(context.Context) (T, error)) (result T, err error) {
	done := make(chan struct{})
	go func() {
		returned := false
		defer func() {
			if !returned {
				err = &crash{value: recover(), stack: debug.Stack()}
			}
			close(done)
		}()
		result, err = fn(ctx)
		returned = true
	}()
	<-done
	return result, err
}

// crashed logs a panic and returns what the caller may know of it.
func (r *run) crashed(tool string, value any) error {
	stack := debug.Stack()
	if c, ok := value.(*crash); ok {
		value, stack = c.value, c.stack
	}
	// The value may hold params, which logs never do; what the runtime itself says holds none.
	what := fmt.Sprintf("a value of type %T", value)
	if e, ok := value.(runtime.Error); ok {
		what = e.Error()
	}
	r.d.log.Error("panic", "verb", tool, "request_id", r.id, "panic", what, "stack", string(stack))
	return errInternal
}
