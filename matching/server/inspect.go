package server

import (
	"context"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

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
	looked, err := h.look(ctx, p, func(q *queue.Queue) (err error) {
		got, err = q.Get(ctx, task.ID(r.GetId()))
		return err
	})
	if err == nil && !looked {
		err = task.Errorf(task.NotFound, "partition %v has no task %d: it never held any", p, r.GetId())
	}
	if err != nil {
		return nil, err
	}
	return &matchingpb.GetTaskResponse{Task: describe(p, got).Encode(true)}, nil
}

// look runs f on a partition for somebody who only looks, loading it if need be. A
// partition that never held a task is not loaded for that: false. One that does
// not exist is NotFound.
func (h *Handler) look(ctx context.Context, p partition.ID, f func(*queue.Queue) error) (looked bool, err error) {
	if err := h.tellCounts(ctx, p.Queue); err != nil {
		return false, err
	}
	_, known, err := h.cfg.Engine.Look(ctx, p)
	if err != nil {
		return false, err
	}
	if _, loaded := h.cfg.Engine.Loaded(p); !loaded && !known {
		return false, nil
	}
	return true, h.on(ctx, p, engine.Settle, f)
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

// DescribePartition shows one partition. It is loaded for that when it was ever
// added to, unless the request says not to.
func (h *Handler) DescribePartition(ctx context.Context, r *matchingpb.DescribePartitionRequest) (*matchingpb.DescribePartitionResponse, error) {
	p, err := wire.DecodePartition("task_queue", r.GetTaskQueue())
	if err != nil {
		return nil, err
	}
	if err := h.tellCounts(ctx, p.Queue); err != nil {
		return nil, err
	}
	listed, known, err := h.cfg.Engine.Look(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &matchingpb.DescribePartitionResponse{TaskQueue: wire.EncodePartition(p), Partition: h.describeUnloaded(p, listed)}
	if _, loaded := h.cfg.Engine.Loaded(p); !loaded && (!known || r.GetOnlyIfLoaded()) {
		return out, nil
	}
	err = h.on(ctx, p, engine.Settle, func(q *queue.Queue) error {
		out.Partition = h.describeLoaded(q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (h *Handler) describeUnloaded(p partition.ID, listed store.Listed) *matchingpb.PartitionDescription {
	return &matchingpb.PartitionDescription{
		Partition: p.Number,
		Holder:    wire.EncodeHolder(listed.Holder),
		Epoch:     uint64(listed.Epoch),
		Counts:    h.counts(p.Queue),
		Drained:   !listed.Meta.MayHold,
	}
}

func (h *Handler) describeLoaded(q *queue.Queue) *matchingpb.PartitionDescription {
	p, s := q.Partition(), q.Describe()
	rates := h.cfg.Engine.Rates(q, s)
	out := &matchingpb.PartitionDescription{
		Partition: p.Number,
		Loaded:    true,
		Holder:    wire.EncodeHolder(h.cfg.Engine.Holder()),
		Epoch:     uint64(s.Epoch),
		LoadedAt:  wire.EncodeTime(task.At(rates.LoadedAt)),
		Stats:     statsOf(&s, rates),
		LastId:    uint64(s.Bound),
		Counts:    h.counts(p.Queue),
		Drained:   s.Empty && s.Dead == 0,
	}
	for i, of := range s.Priorities {
		out.Levels = append(out.Levels, &matchingpb.LevelDescription{
			Priority: int32(i) + 1, ReadLevel: uint64(of.Level.Read), AckLevel: uint64(of.Level.Ack), Loaded: of.Ready,
		})
	}
	for _, w := range s.Pollers {
		out.Pollers = append(out.Pollers, &matchingpb.Poller{
			Identity: w.Identity, LastSeenAt: wire.EncodeTime(task.At(w.LastSeen)), OpenPolls: int32(w.Open),
		})
	}
	return out
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
