package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// execution is a task with its handler, until it is settled.
type execution struct {
	task *Task
	// end ends the handler's context, with a cause.
	end context.CancelCauseFunc
	// Guarded by leases.mu.
	lease   time.Duration
	held    time.Time // last time at which the lease surely began anew
	next    time.Time // when to extend it
	beating bool      // a heartbeat is out
}

// slotCount bounds what goes on beside the slots.
type slotCount struct {
	most int64
	now  atomic.Int64
}

// tryAdd reports whether there was room for one more.
func (c *slotCount) tryAdd() bool {
	if c.now.Add(1) <= c.most {
		return true
	}
	c.now.Add(-1)
	return false
}

// execute starts the handler of a granted task.
func (r *run) execute(g wire.Granted) {
	ctx, end := context.WithCancelCause(r.handling)
	e := &execution{task: newTask(g), end: end, lease: g.Lease}
	r.leases.add(e, time.Now())
	r.executing.Go(func() {
		err := r.handle(ctx, e.task)
		// The slot is free while the answer is on its way, so that the next
		// poll need not wait for it; the lease is kept until it arrived. When
		// answers are slow, slots wait for them.
		early := r.settling.tryAdd()
		if early {
			r.slots.handled()
		}
		r.settle(ctx, e.task, err)
		r.leases.remove(e)
		end(nil)
		if early {
			r.settling.now.Add(-1)
		} else {
			r.slots.handled()
		}
	})
}

// panicError is a handler's panic, as a failure.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

// handle calls the handler.
func (r *run) handle(ctx context.Context, t *Task) (err error) {
	ctx, span := r.client.handled(ctx, t)
	defer func() { span.end(err) }()
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
			r.o.Logger.Error("a handler panicked", "partition", t.Partition, "task", t.ID, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	return r.o.Handler(ctx, t)
}

// settle tells the node how a task went. It tries for as long as the lease may
// last: an answer that is lost makes the task come again.
func (r *run) settle(handler context.Context, t *Task, err error) {
	cause := context.Cause(handler)
	if errors.Is(cause, ErrTaskCancelled) || (err != nil && errors.Is(cause, ErrLeaseLost)) {
		return
	}
	ctx := context.WithoutCancel(handler)
	var answer func(context.Context) error
	switch {
	case err == nil:
		answer = func(ctx context.Context) error { return r.complete(ctx, t) }
	case errors.Is(err, ErrRelease) || errors.Is(cause, ErrDrainTimeout):
		answer = func(ctx context.Context) error {
			_, err := r.client.ReleaseTask(ctx, &matchingpb.ReleaseTaskRequest{Token: t.Token()})
			return err
		}
	default:
		failed, failure := err, failureFor(err)
		answer = func(ctx context.Context) error {
			out, err := r.client.FailTask(ctx, &matchingpb.FailTaskRequest{Token: t.Token(), Failure: failure})
			if err == nil {
				r.tellFailure(t, failed, out)
			}
			return err
		}
	}
	if err := r.insist(ctx, answer); err != nil {
		r.o.Logger.Warn("a task could not be settled; unless somebody else did, it comes again", "partition", t.Partition, "task", t.ID, "error", err)
	}
}

// tellFailure tells the user of the worker what became of a failed task.
func (r *run) tellFailure(t *Task, err error, out *matchingpb.FailTaskResponse) {
	if r.o.OnFailure == nil {
		return
	}
	f := Failure{Err: err, Dead: out.GetDead()}
	if at := out.GetNextAttemptAt(); at != nil {
		f.Next = at.AsTime()
	}
	r.o.OnFailure(t, f)
}

func (r *run) complete(ctx context.Context, t *Task) error {
	_, err := settleToken(ctx, r.client, t.token, func(ctx context.Context, n *node, token task.Token) (*matchingpb.CompleteTaskResponse, error) {
		return n.complete(ctx, token, nil)
	})
	return err
}

// settleFor is how long an answer is tried at most.
const settleFor = 30 * time.Second

// insist repeats an answer while the node is away.
func (r *run) insist(ctx context.Context, answer func(context.Context) error) error {
	began := time.Now()
	for n := 1; ; n++ {
		err := wire.FromStatus(answer(ctx))
		if err == nil {
			return nil
		}
		switch task.ReasonOf(err) {
		case task.NotReady, task.PartitionClosing, task.StoreUnavailable, task.OutcomeUnknown, task.Quota:
		default:
			return err
		}
		if time.Since(began) >= settleFor || pause(ctx, retryPoll(n), err) != nil {
			return err
		}
	}
}

// failureFor returns what the node is told of a handler's error.
func failureFor(err error) *matchingpb.Failure {
	f := wire.Failure{Message: err.Error()}
	if p, ok := errors.AsType[*panicError](err); ok {
		f.Details = p.stack
	}
	if how, ok := errors.AsType[*failureError](err); ok {
		f.NonRetryable = how.nonRetryable
		f.RetryAfter, f.HasRetryAfter = how.after, how.hasAfter
	}
	return f.Encode()
}

// leaseDuration reads a lease of an answer; unset gives before.
func leaseDuration(d *durationpb.Duration, before time.Duration) time.Duration {
	if d == nil {
		return before
	}
	return d.AsDuration()
}
