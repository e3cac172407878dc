package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// produce adds every task and returns when each add was answered. The first
// error ends it: a run whose adds fail measures nothing.
func (r *run) produce(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begun := time.Now()
	var next atomic.Int64
	var producers sync.WaitGroup
	for range r.producers * r.outstanding {
		producers.Go(func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= r.tasks {
					return
				}
				err := r.due(ctx, begun, number)
				if err == nil {
					err = r.add(ctx, number)
				}
				if err != nil {
					fail(err)
					return
				}
			}
		})
	}
	producers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// due waits until a task is to be added at the rate of the plan.
func (r *run) due(ctx context.Context, begun time.Time, number int) error {
	if r.rate == 0 {
		return ctx.Err()
	}
	at := begun.Add(time.Duration(float64(number) / r.rate * float64(time.Second)))
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *run) add(ctx context.Context, number int) error {
	request := &matchingpb.AddTaskRequest{
		TaskQueue: wire.EncodeQueue(r.queue),
		Payload:   r.ledger.payload(number),
		Options:   &matchingpb.TaskOptions{Durability: r.durability},
	}
	r.ledger.call(number)
	reply, err := r.producing.AddTask(ctx, request)
	if err != nil {
		return explain(err, fmt.Sprintf("adding task %d", number))
	}
	r.ledger.answer(number, place{reply.GetPartition(), reply.GetId()})
	return nil
}

// consume starts the workers. stop ends them, waits, and returns what went wrong.
func (r *run) consume(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var strangers atomic.Int64
	worker, err := client.NewWorker(r.consuming, client.WorkerOptions{
		Queue: r.queue, Concurrency: r.workers * r.outstanding, Identity: remote.Identity(),
		Handler: func(_ context.Context, t *client.Task) error {
			if !r.ledger.receive(t.Payload, place{t.Partition.Number, uint64(t.ID)}) {
				strangers.Add(1)
			}
			return nil
		},
	})
	if err != nil {
		return func() error { cancel(); return err }
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	return func() error {
		cancel()
		err := <-ended
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		if n := strangers.Load(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d tasks were received that the run never added", n))
		}
		return err
	}
}
