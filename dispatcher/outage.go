package dispatcher

import (
	"log/slog"
	"sync/atomic"
)

// outage remembers whether the gate is out, so that the log hears of its beginning and its end and not
// of every call in between (dispatch.md 4).
type outage struct {
	log *slog.Logger
	on  atomic.Bool
}

func (o *outage) began(cause error) {
	if o.on.CompareAndSwap(false, true) {
		o.log.Warn("the policy gate cannot decide; gate.on_error rules until it can", "error", cause)
	}
}

func (o *outage) over() {
	if o.on.Load() && o.on.CompareAndSwap(true, false) {
		o.log.Info("the policy gate decides again")
	}
}
