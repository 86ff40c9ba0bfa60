package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"

	"github.com/verbgate/verbgate/packs"
	"github.com/verbgate/verbgate/policy"
)

// locate asks the pack where the record is that the call is about (dispatch.md 3). It compares nothing.
// A pack that does not answer in time is not waited for: the policy then decides without knowing.
func (r *run) locate(ctx context.Context, v *verb, params packs.Params, token *Token) *policy.Resource {
	id, ok := params[v.Resource].(string)
	if !ok {
		return nil
	}
	resource := &policy.Resource{Param: v.Resource, ID: id}
	if r.d.located.Add(1) > maxLocating {
		r.d.located.Add(-1)
		r.d.log.Warn("a record was not looked up: too many look-ups are under way", "verb", v.Name, "request_id", r.id)
		return resource
	}
	ctx, cancel := context.WithTimeout(ctx, r.d.limits.LocateTimeout)
	defer cancel()
	ref := packs.ResourceRef{Verb: v.Name, Param: v.Resource, ID: id, Token: token}
	done := begin(ctx, func(ctx context.Context) (packs.Location, error) {
		defer r.d.located.Add(-1)
		return v.locator.Locate(ctx, ref)
	})
	var answer outcome[packs.Location]
	select {
	case answer = <-done:
	case <-ctx.Done():
		answer.err = ctx.Err()
	}
	var crashed *crash
	switch location := answer.value; {
	case errors.As(answer.err, &crashed):
		_ = r.crashed(v.Name, crashed)
	case answer.err != nil: // its text may quote the id
		r.d.log.Debug("the pack could not locate a record", "verb", v.Name, "request_id", r.id, "error_type", fmt.Sprintf("%T", answer.err))
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

// crash is a panic, or pack code that ended its goroutine. Its text holds nothing of the panic's value,
// which may quote params.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic with a value of type %T", c.value) }

// outcome is what pack code came to.
type outcome[T any] struct {
	value T
	err   error
}

// begin runs pack code in a goroutine of its own, so that neither a panic nor runtime.Goexit takes more
// with it than the one call. The goroutine ends with fn; its outcome waits in the channel.
func begin[T any](ctx context.Context, fn func(context.Context) (T, error)) <-chan outcome[T] {
	done := make(chan outcome[T], 1)
	go func() {
		var out outcome[T]
		returned := false
		defer func() {
			if !returned {
				out.err = &crash{value: recover(), stack: debug.Stack()}
			}
			done <- out
		}()
		out.value, out.err = fn(ctx)
		returned = true
	}()
	return done
}

// guard is begin for what must not be left behind: it waits for a call that has begun, whatever its
// context says, so that the record tells what really happened.
func guard[T any](ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
	out := <-begin(ctx, fn)
	return out.value, out.err
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
