package server

import (
	"context"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// deadCounted is how many dead letters are counted for a description; more make
// it an estimate.
const deadCounted = 1000

// GetTask shows a task with its payload.
func (h *Handler) GetTask(ctx context.Context, r *matchingpb.GetTaskRequest) (*matchingpb.GetTaskResponse, error) {
	var f wire.Fields
	p := f.Partition("task_queue", r.GetTaskQueue())
	if r.GetId() == 0 {
		f.Addf("id", "is missing: name a task")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	var got queue.Description
	err := h.on(ctx, p, engine.Settle, func(q *queue.Queue) (err error) {
		got, err = q.Get(ctx, task.ID(r.GetId()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &matchingpb.GetTaskResponse{Task: describe(p, got).Encode(true)}, nil
}

// describe puts what the queue says of a task into the form of the wire.
func describe(p partition.ID, d queue.Description) wire.Description {
	t := *d.Task // shared with the queue: attempts and deliveries are written to a copy
	t.Attempts, t.Deliveries = d.Attempts, d.Deliveries
	out := wire.Description{Partition: p, Task: &t, State: stateOf(d.State), Due: d.Due}
	if out.State == wire.Leased {
		out.Lease = &wire.Lease{Identity: d.Identity, Grant: d.Lease, Duration: d.Duration, Remaining: d.Left}
	}
	if out.State == wire.Dead {
		out.Dead = &wire.Death{Reason: d.DeathReason, At: d.DiedAt}
	}
	return out
}

// stateOf returns 0 for a task that is finished.
func stateOf(s ledger.State) wire.State {
	switch s {
	case ledger.Ready:
		return wire.Ready
	case ledger.Leased:
		return wire.Leased
	case ledger.Delayed:
		return wire.Scheduled
	case ledger.Dying:
		return wire.Dead
	default:
		return 0
	}
}

// DescribePartition shows one partition. It is loaded for that, unless the
// request says not to.
func (h *Handler) DescribePartition(ctx context.Context, r *matchingpb.DescribePartitionRequest) (*matchingpb.DescribePartitionResponse, error) {
	p, err := wire.DecodePartition("task_queue", r.GetTaskQueue())
	if err != nil {
		return nil, err
	}
	out := &matchingpb.DescribePartitionResponse{TaskQueue: wire.EncodePartition(p)}
	if r.GetOnlyIfLoaded() {
		if _, loaded := h.cfg.Engine.Loaded(p); !loaded {
			out.Partition, err = h.describeUnloaded(ctx, p)
			return out, err
		}
	}
	err = h.on(ctx, p, engine.Read, func(q *queue.Queue) (err error) {
		out.Partition, err = h.describeLoaded(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (h *Handler) describeUnloaded(ctx context.Context, p partition.ID) (*matchingpb.PartitionDescription, error) {
	listed, _, err := h.cfg.Engine.Lookup(ctx, p)
	if err != nil {
		return nil, err
	}
	return &matchingpb.PartitionDescription{
		Partition: p.Number,
		Holder:    wire.EncodeHolder(listed.Holder),
		Epoch:     uint64(listed.Epoch),
		Counts:    h.counts(p.Queue),
		Drained:   !listed.Meta.MayHold,
	}, nil
}

func (h *Handler) describeLoaded(ctx context.Context, q *queue.Queue) (*matchingpb.PartitionDescription, error) {
	dead, more, err := q.Peek(ctx, queue.PeekRequest{Kind: row.Dead, Items: deadCounted})
	if err != nil {
		return nil, task.Errorf(task.StoreUnavailable, "counting dead letters: %w", err)
	}
	p, s := q.Partition(), q.Describe()
	stats := statsOf(s)
	rates := h.cfg.Engine.Rates(q, s)
	stats.AddRate, stats.DispatchRate = rates.Adds, rates.Grants
	stats.Dead, stats.Estimated = int64(len(dead)), stats.GetEstimated() || more
	out := &matchingpb.PartitionDescription{
		Partition: p.Number,
		Loaded:    true,
		Holder:    wire.EncodeHolder(h.cfg.Engine.Holder()),
		Epoch:     uint64(s.Epoch),
		LoadedAt:  wire.EncodeTime(task.At(rates.LoadedAt)),
		Stats:     stats,
		Counts:    h.counts(p.Queue),
		Drained:   s.Empty && len(dead) == 0,
	}
	for _, w := range s.Pollers {
		out.Pollers = append(out.Pollers, &matchingpb.Poller{
			Identity: w.Identity, LastSeenAt: wire.EncodeTime(task.At(w.LastSeen)), OpenPolls: int32(w.Open),
		})
	}
	return out, nil
}

// statsOf counts what only the store has as ready: it is not known better.
func statsOf(s queue.Stats) *matchingpb.QueueStats {
	return &matchingpb.QueueStats{
		Ready:         s.Ready + s.Spilled,
		Scheduled:     s.Delayed,
		Leased:        s.Leased,
		OldestReadyAt: wire.EncodeTime(s.OldestReady),
		WaitingPolls:  int64(s.WaitingPolls),
		Estimated:     s.Spilled > 0,
	}
}

func (h *Handler) counts(q partition.Queue) *matchingpb.PartitionCounts {
	return wire.PartitionCounts{Counts: h.cfg.Engine.Counts(q)}.Encode()
}

// DescribeTaskQueue shows a whole queue; who routes asks its partitions.
func (h *Handler) DescribeTaskQueue(ctx context.Context, r *matchingpb.DescribeTaskQueueRequest) (*matchingpb.DescribeTaskQueueResponse, error) {
	if _, err := wire.DecodeQueue("task_queue", r.GetTaskQueue()); err != nil {
		return nil, err
	}
	next, err := h.unrouted()
	if err != nil {
		return nil, err
	}
	return next.DescribeTaskQueue(ctx, r)
}

// LoadPartition loads a partition.
func (h *Handler) LoadPartition(ctx context.Context, r *matchingpb.LoadPartitionRequest) (*matchingpb.LoadPartitionResponse, error) {
	p, err := wire.DecodePartition("task_queue", r.GetTaskQueue())
	if err != nil {
		return nil, err
	}
	q, was, err := h.cfg.Engine.Load(ctx, p)
	if err != nil {
		return nil, err
	}
	return &matchingpb.LoadPartitionResponse{WasLoaded: was, Epoch: uint64(q.Describe().Epoch)}, nil
}

// UnloadPartition unloads a partition; the next call that needs it loads it
// again. It is not the caller's to break off: half of it would leave calls of
// others without an answer.
func (h *Handler) UnloadPartition(ctx context.Context, r *matchingpb.UnloadPartitionRequest) (*matchingpb.UnloadPartitionResponse, error) {
	p, err := wire.DecodePartition("task_queue", r.GetTaskQueue())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.settings().UnloadTimeout)
	defer cancel()
	was, err := h.cfg.Engine.Unload(ctx, p)
	if err != nil {
		return nil, err
	}
	return &matchingpb.UnloadPartitionResponse{WasLoaded: was}, nil
}
