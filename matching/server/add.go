package server

import (
	"context"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// AddTask adds a task and answers when it is durable, or finished.
func (h *Handler) AddTask(ctx context.Context, r *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	target, t, err := h.decoder().AddTask(r)
	if err == nil {
		err = served(t)
	}
	if err != nil {
		return nil, err
	}
	if !target.IsPartition {
		next, err := h.unrouted()
		if err != nil {
			return nil, err
		}
		return next.AddTask(ctx, r)
	}
	p := target.Partition()
	if err := h.sendCounts(ctx, p, engine.Add); err != nil {
		return nil, err
	}
	if err := h.takesAdds(); err != nil {
		return nil, err
	}
	var added queue.Result
	err = h.on(ctx, p, engine.Add, func(q *queue.Queue) error {
		added = q.Add([]*task.Task{t}).Wait(ctx)[0]
		return added.Err
	})
	h.metrics.added(ctx, p.Queue, err)
	if err != nil {
		return nil, err
	}
	return &matchingpb.AddTaskResponse{Id: uint64(added.ID), Partition: p.Number}, nil
}

// AddTasks adds batches of tasks; each item has its own outcome.
func (h *Handler) AddTasks(ctx context.Context, r *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	d, refused := h.decoder(), h.takesAdds()
	out := &matchingpb.AddTasksResponse{Seq: r.GetSeq(), Results: make([]*matchingpb.AddResult, len(r.GetBatches()))}
	var started []*addBatch
	var elsewhere []int // batches that name no partition
	for i, b := range r.GetBatches() {
		batch, err := d.AddBatch(b)
		if err == nil {
			refuseUnserved(&batch)
		}
		switch {
		case err != nil:
			out.Results[i] = &matchingpb.AddResult{Error: wire.ItemErrorOf(0, err)}
		case !batch.Target.IsPartition:
			elsewhere = append(elsewhere, i)
		case refused != nil:
			out.Results[i] = h.addRefused(ctx, batch, refused)
		default:
			a := h.startAdd(ctx, batch, len(r.GetBatches()) == 1)
			a.at = i
			started = append(started, a)
		}
	}
	h.addElsewhere(ctx, r, elsewhere, out)
	for _, a := range started {
		out.Results[a.at] = h.finishAdd(ctx, a)
	}
	return out, nil
}

// served refuses a task that asks for what this version does not do: a producer
// who repeats adds and counts on a request id would otherwise add them twice.
func served(t *task.Task) error {
	if t.RequestID == "" {
		return nil
	}
	return task.Errorf(task.Unimplemented, "options.request_id is not served yet: leave it empty, and expect a repeated add to add a second task")
}

// refuseUnserved refuses the items of a batch that served does.
func refuseUnserved(b *wire.AddBatch) {
	var refused []*matchingpb.ItemError
	for i, t := range b.Tasks {
		if t == nil {
			continue
		}
		if err := served(t); err != nil {
			b.Tasks[i], refused = nil, append(refused, wire.ItemErrorOf(i, err))
		}
	}
	b.Refused = mergeErrors(b.Refused, refused)
}

// addBatch is a batch that was started.
type addBatch struct {
	wire.AddBatch
	at    int   // position in the request
	items []int // positions in the batch of the tasks that were handed to the queue
	call  *queue.Call
	err   error // why the batch was not handed over
}

// startAdd hands the good tasks of a batch to their partition.
func (h *Handler) startAdd(ctx context.Context, b wire.AddBatch, only bool) *addBatch {
	a := &addBatch{AddBatch: b}
	p := b.Target.Partition()
	if a.err = h.cfg.Engine.CheckCaller(p, engine.Add, b.Counts.Counts); a.err != nil {
		return a
	}
	q, err := h.batchQueue(ctx, p, engine.Add, only)
	if err != nil {
		a.err = err
		return a
	}
	tasks := b.Tasks
	if len(b.Refused) > 0 {
		tasks = make([]*task.Task, 0, len(b.Tasks))
		for i, t := range b.Tasks {
			if t != nil {
				tasks, a.items = append(tasks, t), append(a.items, i)
			}
		}
	}
	a.call = q.Add(tasks)
	return a
}

// finishAdd waits for a batch that was started.
func (h *Handler) finishAdd(ctx context.Context, a *addBatch) *matchingpb.AddResult {
	if a.err != nil {
		return h.addRefused(ctx, a.AddBatch, a.err)
	}
	p := a.Target.Partition()
	out := &matchingpb.AddResult{
		Ids:    make([]uint64, len(a.Tasks)),
		Counts: wire.PartitionCounts{Counts: h.cfg.Engine.Counts(p.Queue)}.Encode(), Partition: p.Number,
	}
	ok := 0
	var errs []*matchingpb.ItemError
	for j, r := range a.call.Wait(ctx) {
		i := j
		if a.items != nil {
			i = a.items[j]
		}
		if r.Err != nil {
			errs = append(errs, wire.ItemErrorOf(i, r.Err))
			h.metrics.added(ctx, p.Queue, r.Err)
			continue
		}
		out.Ids[i] = uint64(r.ID)
		ok++
	}
	out.Errors = mergeErrors(a.Refused, errs)
	h.metrics.addedMany(ctx, p.Queue, ok)
	return out
}

// addRefused answers a batch of which no item was tried.
func (h *Handler) addRefused(ctx context.Context, b wire.AddBatch, err error) *matchingpb.AddResult {
	p := b.Target.Partition()
	h.metrics.added(ctx, p.Queue, err)
	return &matchingpb.AddResult{
		Error:     wire.ItemErrorOf(0, err),
		Counts:    wire.PartitionCounts{Counts: h.cfg.Engine.Counts(p.Queue)}.Encode(),
		Partition: p.Number,
	}
}

// addElsewhere has the batches that name no partition routed, in one call.
func (h *Handler) addElsewhere(ctx context.Context, r *matchingpb.AddTasksRequest, at []int, out *matchingpb.AddTasksResponse) {
	if len(at) == 0 {
		return
	}
	next, err := h.unrouted()
	var routed *matchingpb.AddTasksResponse
	if err == nil {
		ask := &matchingpb.AddTasksRequest{Seq: r.GetSeq()}
		for _, i := range at {
			ask.Batches = append(ask.Batches, r.GetBatches()[i])
		}
		routed, err = next.AddTasks(ctx, ask)
	}
	if err == nil && len(routed.GetResults()) != len(at) {
		err = task.Errorf(task.Internal, "the router answered %d of %d batches", len(routed.GetResults()), len(at))
	}
	for j, i := range at {
		if err != nil {
			out.Results[i] = &matchingpb.AddResult{Error: wire.ItemErrorOf(0, wire.FromStatus(err))}
			continue
		}
		out.Results[i] = routed.GetResults()[j]
	}
}

// mergeErrors merges two lists that ascend by index.
func mergeErrors(a, b []*matchingpb.ItemError) []*matchingpb.ItemError {
	if len(a) == 0 {
		return b
	}
	merged := make([]*matchingpb.ItemError, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].GetIndex() < b[0].GetIndex() {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
