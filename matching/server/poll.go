package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// PollTask waits for tasks. An empty answer is no error and says why it is empty.
func (h *Handler) PollTask(ctx context.Context, r *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	poll, err := wire.Decoder{Limits: h.settings().Limits}.Poll(r)
	if err != nil {
		return nil, err
	}
	if !poll.Target.IsPartition {
		return h.pollElsewhere(ctx, r)
	}
	p := poll.Target.Partition()
	s := h.perQueue(p.Queue)
	if err := h.sendCounts(ctx, p, engine.Read); err != nil {
		return nil, err
	}
	var q *queue.Queue
	var got queue.PollResult
	waiting, cancel := h.untilPollsEnd(ctx)
	defer cancel()
	wait, began := waitOf(ctx, poll, s), time.Now()
	if waiting.Err() == nil {
		err = h.on(waiting, p, engine.Read, func(loaded *queue.Queue) error {
			q = loaded
			got = q.Poll(waiting, queue.PollRequest{
				ID: poll.ID, Identity: poll.Identity, Max: poll.MaxTasks, LeaseDuration: poll.Lease,
				MinPriority: poll.MinPriority, MaxBytes: bytesOf(poll, s), Wait: wait - time.Since(began),
			})
			return nil
		})
	}
	switch ending := h.polling.Err() != nil; {
	case ending && len(got.Grants) == 0:
		got.Empty = queue.Shutdown
	case err != nil:
		h.metrics.polled(ctx, p.Queue, reasonLabel(err))
		return nil, err
	}
	if len(got.Grants) > 0 && !h.deliverable(ctx, q, got.Grants) {
		got = queue.PollResult{Empty: queue.Cancelled}
	}
	return h.pollResponse(ctx, p, poll, got), nil
}

// pollElsewhere has a poll routed. It ends with this node's polls, whatever the
// router would try next.
func (h *Handler) pollElsewhere(ctx context.Context, r *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	next, err := h.unrouted()
	if err != nil {
		return nil, err
	}
	waiting, cancel := h.untilPollsEnd(ctx)
	defer cancel()
	got, err := next.PollTask(waiting, r)
	if err != nil && h.polling.Err() != nil {
		return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN}, nil
	}
	return got, err
}

// waitOf returns how long a poll waits: what it asks for, and less than the
// call's deadline by the margin, or by a quarter of it when that is shorter.
func waitOf(ctx context.Context, p wire.Poll, s PerQueue) time.Duration {
	wait := s.PollWait
	if p.HasWait {
		wait = p.Wait
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(s.PollMargin, left/4))
	}
	return max(wait, 0)
}

// bytesOf returns how much a poll may bring home: what it asks for, and not more
// than the setting. With its default the answer stays within the 4 MiB that gRPC
// clients take: an answer that is refused there holds up its tasks for a lease.
func bytesOf(p wire.Poll, s PerQueue) int {
	if p.MaxBytes == 0 {
		return s.PollBytes
	}
	return min(p.MaxBytes, s.PollBytes)
}

// deliverable reports whether grants can still be sent to their caller, and
// releases them when they cannot, now or once gRPC says so.
func (h *Handler) deliverable(ctx context.Context, q *queue.Queue, granted []queue.Granted) bool {
	release := func() {
		grants := make([]task.Grant, len(granted))
		for i, g := range granted {
			grants[i] = g.Grant
		}
		h.metrics.undelivered(ctx, len(grants))
		q.Release(grants) // not waited for: nobody hears of the outcome
	}
	if ctx.Err() != nil {
		release()
		return false
	}
	onUndelivered(ctx, release)
	return true
}

func (h *Handler) pollResponse(ctx context.Context, p partition.ID, poll wire.Poll, got queue.PollResult) *matchingpb.PollTaskResponse {
	out := &matchingpb.PollTaskResponse{
		EmptyReason: emptyReason(got.Empty),
		Counts:      wire.PartitionCounts{Counts: h.cfg.Engine.Counts(p.Queue)}.Encode(),
		BacklogHint: got.Ready,
	}
	if got.Owner != nil {
		out.MovedTo = wire.EncodeOwnership(*got.Owner)
	}
	if len(got.Grants) == 0 {
		h.metrics.polled(ctx, p.Queue, emptyLabel(got.Empty))
		return out
	}
	granted := make([]wire.Granted, len(got.Grants))
	for i, g := range got.Grants {
		granted[i] = wire.Granted{
			Store: h.cfg.Engine.StoreID(), Partition: p, Grant: g.Grant,
			Attempt: g.Attempt, Lease: g.Duration, Task: g.Task,
		}
	}
	if poll.Columns {
		out.Batches = wire.EncodeColumns(granted)
	} else {
		out.Tasks = wire.EncodeTokens(granted)
	}
	h.metrics.dispatched(ctx, p.Queue, got.Grants)
	return out
}

func emptyReason(r queue.EmptyReason) matchingpb.EmptyReason {
	switch r {
	case queue.Timeout:
		return matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT
	case queue.Moved:
		return matchingpb.EmptyReason_EMPTY_REASON_MOVED
	case queue.Shutdown:
		return matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN
	case queue.WorkerShutdown:
		return matchingpb.EmptyReason_EMPTY_REASON_WORKER_SHUTDOWN
	case queue.Cancelled:
		return matchingpb.EmptyReason_EMPTY_REASON_CANCELLED
	default:
		return matchingpb.EmptyReason_EMPTY_REASON_UNSPECIFIED
	}
}

// CancelPoll ends a poll that waits.
func (h *Handler) CancelPoll(ctx context.Context, r *matchingpb.CancelPollRequest) (*matchingpb.CancelPollResponse, error) {
	var f wire.Fields
	target := f.Target("task_queue", r.GetTaskQueue())
	if r.GetPollId() == "" {
		f.Addf("poll_id", "is missing: only polls with an id can be cancelled")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if !target.IsPartition {
		next, err := h.unrouted()
		if err != nil {
			return nil, err
		}
		return next.CancelPoll(ctx, r)
	}
	q, ok := h.cfg.Engine.Loaded(target.Partition())
	return &matchingpb.CancelPollResponse{Found: ok && q.CancelPoll(r.GetPollId())}, nil
}

// reasonLabel is the reason of an error as a metric's label.
func reasonLabel(err error) string {
	if errors.Is(err, context.Canceled) {
		return "caller_left"
	}
	return strings.ToLower(task.ReasonOf(err).String())
}

// emptyLabel is why a poll came back empty as a metric's label.
func emptyLabel(r queue.EmptyReason) string { return strings.ReplaceAll(r.String(), " ", "_") }
