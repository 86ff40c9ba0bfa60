package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/verbgate/verbgate/packs"
)

// invoker lets a verb call other verbs: through the same pipeline, for the same actor, with the same
// token, within the outer request's deadline (dispatch.md 1). Whatever refuses the nested call refuses
// it as it would refuse the caller's own.
func (r *run) invoker(above operation, token *Token) func(context.Context, string, packs.Params) (json.RawMessage, error) {
	return func(ctx context.Context, tool string, params packs.Params) (json.RawMessage, error) {
		via := append(slices.Clone(above.via), above.tool)
		if len(via) > maxVia {
			return nil, refusal(tool, fmt.Sprintf("verbs call verbs more than %d deep", maxVia))
		}
		if r.nested.Add(1) > maxNested {
			return nil, refusal(tool, fmt.Sprintf("one request may make verbs call verbs at most %d times", maxNested))
		}
		args := map[string]any(maps.Clone(params))
		if args == nil {
			args = map[string]any{}
		}
		help, asked := args["help"]
		entry := r.operate(ctx, operation{
			tool: tool, index: above.index, help: help, asked: asked, token: token, via: via,
			resolve: func() (map[string]any, error) { return args, nil },
		})
		if entry.OK {
			return entry.Result, nil
		}
		return nil, &packs.InvokeError{Verb: tool, Code: string(entry.Code), Message: fmt.Sprint(entry.Error)}
	}
}

func refusal(tool, why string) error {
	return &packs.InvokeError{Verb: tool, Code: string(CodeNotCallable), Message: (&NotCallable{Verb: tool, Why: why}).Error()}
}
