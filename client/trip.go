package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// trip is one call on its way: where it goes, and what became of it so far.
//
//	for {
//		n, err := trip.node(ctx)       // by hint or ring
//		... call n ...
//		if err == nil { return }
//		if err := trip.again(ctx, err); err != nil { return err }
//	}
type trip struct {
	client *Client
	kind   retry.Kind
	// id is where the next try goes.
	id partition.ID
	// picker chooses id.Number, by what is now known; nil when the caller named
	// the partition.
	picker picker

	tries   retry.Tries
	counted bool       // as a call, by the budget of retries
	address string     // of the node that was called last
	hint    string     // where NOT_OWNER sent the call; empty: ask the ring
	epoch   task.Epoch // of the hint
}

// picker is a call whose partition the client chooses.
type picker interface{ pick(t *trip) }

// pickFunc is a picker.
type pickFunc func(t *trip)

func (f pickFunc) pick(t *trip) { f(t) }

// node returns the node to call next.
func (t *trip) node(ctx context.Context) (*node, error) {
	if !t.counted {
		t.counted = true
		t.client.budget.Deposit(t.client.settings().RetryBudget)
	}
	t.address = t.hint
	if t.address == "" {
		address, err := t.client.where(ctx, t.id)
		if err != nil {
			return nil, err
		}
		t.address = address
	}
	return t.client.node(t.address), nil
}

// again returns nil when the call is to be made once more, after the wait that
// is due; else the error to answer with.
func (t *trip) again(ctx context.Context, err error) error {
	wait, ok := t.plan(err) //nolint:contextcheck // counting a retry is not part of the call
	if !ok || ctx.Err() != nil {
		return err
	}
	return pause(ctx, wait, err)
}

// plan decides whether a call that failed is made again, and prepares that.
func (t *trip) plan(err error) (wait time.Duration, again bool) {
	f := t.failure(err)
	d := retry.Decide(t.kind, f, &t.tries, rand.Float64)
	if d.Action == retry.Stop || (d.Action == retry.Recount && t.picker == nil) {
		return 0, false
	}
	if retry.Budgeted(f) && !t.client.budget.Withdraw() {
		t.client.metrics.overBudget()
		return 0, false
	}
	t.client.metrics.retry(d.Action)
	var e *task.Error
	errors.As(err, &e)
	switch d.Action {
	case retry.Reroute:
		t.follow(e.Owner)
	case retry.Recount:
		counts := PartitionCounts{} // a proxy dropped the new ones: the settings decide
		if e.Stale != nil {
			counts.Counts = e.Stale.Counts
		}
		t.client.learn(t.id.Queue, counts)
		t.move()
	case retry.Other:
		t.move()
	default: // Same
		if !answered(err) {
			t.hint = "" // the node that the hint named is gone
		}
	}
	return d.After, true
}

// move picks the partition anew, if the caller left the choice.
func (t *trip) move() {
	t.hint = ""
	if t.picker != nil {
		t.picker.pick(t)
	}
}

// follow goes where an answer said, unless an earlier one knew better: the
// higher epoch is the later one. A hint to the node that gave it is none.
func (t *trip) follow(owner *task.Ownership) {
	if owner == nil || owner.Holder.Address == "" || owner.Holder.Address == t.address {
		t.hint = ""
		return
	}
	if owner.Epoch < t.epoch {
		return
	}
	t.hint, t.epoch = owner.Holder.Address, owner.Epoch
}

// failure is failureOf for a call that chose its partition: ABORTED without any
// detail then means that its counts are stale. Nodes answer ABORTED for nothing
// else that was not re-routed, and a proxy that drops trailers it does not know
// leaves only the code.
func (t *trip) failure(err error) retry.Failure {
	if foreign, ok := errors.AsType[*wire.ForeignError](err); ok && t.picker != nil && foreign.Code == codes.Aborted {
		return retry.Failure{Reason: task.StaleCounts}
	}
	return failureOf(err)
}

// failureOf returns what the retry table wants to know of an error.
func failureOf(err error) retry.Failure {
	if notSent(err) {
		return retry.Failure{NotSent: true}
	}
	f := retry.Failure{Reason: task.ReasonOf(err)}
	if e, ok := errors.AsType[*task.Error](err); ok && e.Limit != nil {
		f.RetryAfter = e.Limit.RetryAfter
	}
	if p, ok := errors.AsType[*pushback](err); ok {
		f.RetryAfter, f.NoRetry = max(f.RetryAfter, p.after), p.never
	}
	return f
}

// pause waits before the next try. A wait that cannot end before the deadline
// is not begun: err is then the better answer.
func pause(ctx context.Context, wait time.Duration, err error) error {
	if wait <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return err
	}
}

// answer returns the error that a caller of the client gets: a gRPC status, as
// from any gRPC client; nil for nil.
func answer(err error) error {
	if notSent(err) {
		return unreachableStatusError{wire.ToStatus(err)}
	}
	return wire.ToStatus(public(err))
}

// public hides how partitions lie on nodes, which is nobody's business but the
// client's: what is left of that after all tries means "not now".
func public(err error) error {
	if e, ok := errors.AsType[*task.Error](err); ok && (e.Reason == task.NotOwner || e.Reason == task.StaleCounts) {
		return task.Errorf(task.NotReady, "the partition is moving: %s", e.Message)
	}
	return err
}

// bounded caps the caller's deadline.
func bounded(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= most {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, most)
}

// cappedContext has a deadline without a timer: it costs one allocation where a
// context with a timeout costs several and a timer. A call that leaves alone
// makes a real one of it, see timed; a joint call has one for all its callers.
//
// So a caller without a deadline of its own may wait a little longer than the
// cap: for the call in flight, and then for its own.
type cappedContext struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

// capKey finds the cappedContext below other values.
type capKey struct{}

// Deadline returns the cap.
func (c *cappedContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Value returns the context itself for capKey.
func (c *cappedContext) Value(key any) any {
	if _, ok := key.(capKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// capped caps the caller's deadline as bounded does, without a timer.
func capped(ctx context.Context, most time.Duration) context.Context {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= most {
		return ctx
	}
	return &cappedContext{ctx, time.Now().Add(most)}
}

// timed makes a context with a timer of a capped one.
func timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if c, ok := ctx.Value(capKey{}).(*cappedContext); ok {
		return context.WithDeadline(ctx, c.deadline)
	}
	return ctx, func() {}
}

// untimed hides the cap of a context below a deadline of its own.
func untimed(ctx context.Context) context.Context { return context.WithValue(ctx, capKey{}, nil) }
