package server

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// CompleteTask ends a task for good.
func (h *Handler) CompleteTask(ctx context.Context, r *matchingpb.CompleteTaskRequest) (*matchingpb.CompleteTaskResponse, error) {
	got, err := h.one(ctx, r.GetToken(), complete)
	if err != nil {
		return nil, err
	}
	return &matchingpb.CompleteTaskResponse{AlreadyFinished: got.AlreadyFinished}, nil
}

// CompleteTasks ends many tasks, each with its own outcome.
func (h *Handler) CompleteTasks(ctx context.Context, r *matchingpb.CompleteTasksRequest) (*matchingpb.CompleteTasksResponse, error) {
	byBatch, byToken := h.settleAll(ctx, r.GetBatches(), r.GetTokens(), complete)
	out := &matchingpb.CompleteTasksResponse{Seq: r.GetSeq()}
	for _, s := range byBatch {
		out.Results = append(out.Results, completeResult(s))
	}
	if byToken != nil {
		out.Tokens = completeResult(byToken)
	}
	return out, nil
}

func completeResult(s *settling) *matchingpb.CompleteResult {
	var out matchingpb.CompleteResult
	out.Errors, out.Error = s.errors()
	for i, r := range s.results {
		if r.AlreadyFinished && r.Err == nil {
			out.AlreadyFinished = append(out.AlreadyFinished, uint32(i))
		}
	}
	return &out
}

// ReleaseTask gives a task back unworked.
func (h *Handler) ReleaseTask(ctx context.Context, r *matchingpb.ReleaseTaskRequest) (*matchingpb.ReleaseTaskResponse, error) {
	if _, err := h.one(ctx, r.GetToken(), release); err != nil {
		return nil, err
	}
	return &matchingpb.ReleaseTaskResponse{}, nil
}

// ReleaseTasks gives many tasks back unworked.
func (h *Handler) ReleaseTasks(ctx context.Context, r *matchingpb.ReleaseTasksRequest) (*matchingpb.ReleaseTasksResponse, error) {
	byBatch, byToken := h.settleAll(ctx, r.GetBatches(), r.GetTokens(), release)
	out := &matchingpb.ReleaseTasksResponse{Seq: r.GetSeq()}
	for _, s := range byBatch {
		var result matchingpb.ReleaseResult
		result.Errors, result.Error = s.errors()
		out.Results = append(out.Results, &result)
	}
	if byToken != nil {
		out.Tokens = &matchingpb.ReleaseResult{}
		out.Tokens.Errors, out.Tokens.Error = byToken.errors()
	}
	return out, nil
}

// HeartbeatTask extends a lease. A cancelled task is an answer, not an error.
func (h *Handler) HeartbeatTask(ctx context.Context, r *matchingpb.HeartbeatTaskRequest) (*matchingpb.HeartbeatTaskResponse, error) {
	got, err := h.one(ctx, r.GetToken(), heartbeat)
	if errors.Is(err, task.Cancelled) {
		return &matchingpb.HeartbeatTaskResponse{Cancelled: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return &matchingpb.HeartbeatTaskResponse{LeaseDuration: durationpb.New(got.LeaseDuration)}, nil
}

// HeartbeatTasks extends many leases.
func (h *Handler) HeartbeatTasks(ctx context.Context, r *matchingpb.HeartbeatTasksRequest) (*matchingpb.HeartbeatTasksResponse, error) {
	byBatch, byToken := h.settleAll(ctx, r.GetBatches(), r.GetTokens(), heartbeat)
	out := &matchingpb.HeartbeatTasksResponse{Seq: r.GetSeq()}
	for _, s := range byBatch {
		out.Results = append(out.Results, heartbeatResult(s))
	}
	if byToken != nil {
		out.Tokens = heartbeatResult(byToken)
	}
	return out, nil
}

// heartbeatResult gives the first item's lease duration as the common one.
func heartbeatResult(s *settling) *matchingpb.HeartbeatResult {
	var out matchingpb.HeartbeatResult
	for i := range s.results {
		if errors.Is(s.results[i].Err, task.Cancelled) {
			out.Cancelled = append(out.Cancelled, uint32(i))
			s.results[i].Err = nil
			continue
		}
		lease := s.results[i].LeaseDuration
		switch {
		case s.results[i].Err != nil:
		case out.GetLeaseDuration() == nil:
			out.LeaseDuration = durationpb.New(lease)
		case out.GetLeaseDuration().AsDuration() != lease:
			out.Exceptions = append(out.Exceptions, &matchingpb.ItemLease{Index: uint32(i), LeaseDuration: durationpb.New(lease)})
		}
	}
	out.Errors, out.Error = s.errors()
	return &out
}

// FailTask gives a task back as failed.
func (h *Handler) FailTask(ctx context.Context, r *matchingpb.FailTaskRequest) (*matchingpb.FailTaskResponse, error) {
	f, err := h.decoder().Failure("failure", r.GetFailure())
	if err != nil {
		return nil, err
	}
	got, err := h.one(ctx, r.GetToken(), fail(failureOf(f)))
	if err != nil {
		return nil, err
	}
	return &matchingpb.FailTaskResponse{Dead: got.Dead, NextAttemptAt: wire.EncodeTime(got.NextAttempt)}, nil
}

// FailTasks gives many tasks back as failed.
func (h *Handler) FailTasks(ctx context.Context, r *matchingpb.FailTasksRequest) (*matchingpb.FailTasksResponse, error) {
	byBatch := make([]*settling, len(r.GetBatches()))
	for i := range byBatch {
		byBatch[i] = h.failRefs(ctx, r.GetBatches(), i)
	}
	var byToken *settling
	if len(r.GetByToken()) > 0 {
		byToken = h.failTokens(ctx, r.GetByToken())
	}
	out := &matchingpb.FailTasksResponse{Seq: r.GetSeq()}
	for _, s := range byBatch {
		out.Results = append(out.Results, failResult(ctx, s))
	}
	if byToken != nil {
		out.ByToken = failResult(ctx, byToken)
	}
	return out, nil
}

// failRefs starts batch i of a request, grants in columns: those with the common
// failure in one call, each exception in one of its own.
func (h *Handler) failRefs(ctx context.Context, batches []*matchingpb.FailBatch, i int) *settling {
	d, b, field := h.decoder(), batches[i], "batches["+strconv.Itoa(i)+"]"
	refs, err := h.readRefs(field+".grants", b.GetGrants())
	if err != nil {
		return &settling{whole: err}
	}
	common, err := d.Failure(field+".common", b.GetCommon())
	if err != nil {
		return &settling{whole: err}
	}
	q, err := h.batchQueue(ctx, refs.Partition, engine.Settle, len(batches) == 1)
	if err != nil {
		return &settling{whole: err}
	}
	grants := grantsOf(refs)
	s := &settling{results: make([]queue.Result, len(grants))}
	alone := map[int]bool{}
	for k, e := range b.GetExceptions() {
		i := int(e.GetIndex())
		if i >= len(grants) || alone[i] {
			return &settling{whole: task.Errorf(task.Invalid, "%s.exceptions[%d].index is %d, indexes must name each of the %d grants at most once", field, k, i, len(grants))}
		}
		alone[i] = true
	}
	for k, e := range b.GetExceptions() {
		i := int(e.GetIndex())
		f, err := d.Failure(field+".exceptions["+strconv.Itoa(k)+"].failure", e.GetFailure())
		if err != nil {
			s.results[i].Err = err
			continue
		}
		s.calls = append(s.calls, startedCall{call: q.Fail(grants[i:i+1], failureOf(f)), items: []int{i}})
	}
	s.calls = append(s.calls, commonFailures(q, grants, alone, failureOf(common)))
	return s
}

// commonFailures starts the call of those that stand in no exception.
func commonFailures(q *queue.Queue, grants []task.Grant, alone map[int]bool, f ledger.Failure) startedCall {
	if len(alone) == 0 {
		return startedCall{call: q.Fail(grants, f)}
	}
	c := startedCall{items: []int{}}
	var rest []task.Grant
	for i, g := range grants {
		if !alone[i] {
			rest, c.items = append(rest, g), append(c.items, i)
		}
	}
	c.call = q.Fail(rest, f)
	return c
}

// failTokens starts failures given by tokens, each in a call of its own.
func (h *Handler) failTokens(ctx context.Context, rs []*matchingpb.FailTaskRequest) *settling {
	d := h.decoder()
	if len(rs) > d.Limits.BatchItems {
		return &settling{whole: task.Errorf(task.Invalid, "by_token has %d grants, the limit is %d (%s)", len(rs), d.Limits.BatchItems, wire.SettingBatchItems)}
	}
	s := &settling{results: make([]queue.Result, len(rs))}
	for i, r := range rs {
		field := "by_token[" + strconv.Itoa(i) + "]"
		t, err := h.token(field+".token", r.GetToken())
		var f wire.Failure
		if err == nil {
			f, err = d.Failure(field+".failure", r.GetFailure())
		}
		var q *queue.Queue
		if err == nil {
			q, err = h.batchQueue(ctx, t.Partition, engine.Settle, len(rs) == 1)
		}
		if err != nil {
			s.results[i].Err = err
			continue
		}
		s.calls = append(s.calls, startedCall{call: q.Fail([]task.Grant{t.Grant}, failureOf(f)), items: []int{i}})
	}
	return s
}

func failResult(ctx context.Context, s *settling) *matchingpb.FailResult {
	s.wait(ctx)
	out := &matchingpb.FailResult{NextAttemptUs: make([]int64, len(s.results))}
	out.Errors, out.Error = s.errors()
	for i, r := range s.results {
		if r.Err == nil && r.Dead {
			out.Dead = append(out.Dead, uint32(i))
		}
		out.NextAttemptUs[i] = int64(r.NextAttempt)
	}
	return out
}
