package dispatcher

import (
	"context"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// RunResolving runs one call of a verb whose arguments resolve gives: no text makes resolving panic.
func (d *Dispatcher) RunResolving(ctx context.Context, caller Caller, tool string, resolve func() (map[string]any, error)) Entry {
	r := &run{d: d, caller: caller, id: uuid.NewString(), mode: request.Single, count: 1}
	entry := r.operate(ctx, operation{tool: tool, resolve: resolve})
	r.store(ctx)
	return entry
}
