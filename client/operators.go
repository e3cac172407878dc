package client

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// onePartition makes a call that names a partition, which only reads or may be
// repeated, at the node that owns it.
func onePartition[Req, Resp any](ctx context.Context, c *Client, id partition.ID, call partitionCall[Req, Resp]) (*Resp, error) {
	ctx, span := c.span(ctx, call.method.name(), id.Queue)
	ctx, cancel := bounded(ctx, c.settings().Timeout)
	defer cancel()
	t := &trip{client: c, kind: retry.Repeatable, id: id}
	out, err := visit(ctx, t, call.method, func(partition.ID) (*Req, []grpc.CallOption) { return call.in, call.opts })
	span.end(err)
	return out, err
}

// partitionCall is such a call.
type partitionCall[Req, Resp any] struct {
	method method[Req, Resp]
	in     *Req
	opts   []grpc.CallOption
}

// named is onePartition for requests that must name their partition.
func named[Req, Resp any](ctx context.Context, c *Client, q *matchingpb.TaskQueuePartition, call partitionCall[Req, Resp]) (*Resp, error) {
	id, err := wire.DecodePartition("task_queue", q)
	if err != nil {
		return nil, answer(err)
	}
	out, err := onePartition(ctx, c, id, call)
	return out, answer(err)
}

// everyPartition makes a call to every read partition of a queue at once, and
// returns answers and errors by partition. When the answers tell of more
// partitions than were known, those are asked too.
func everyPartition[Resp any](c *Client, q partition.Queue, call func(partition.ID) (*Resp, error)) (answers []*Resp, errs []error) {
	for {
		from, n := len(answers), int(c.countsOf(q).Read)
		if n <= from {
			return answers, errs
		}
		answers, errs = append(answers, make([]*Resp, n-from)...), append(errs, make([]error, n-from)...)
		each(n-from, func(i int) { answers[from+i], errs[from+i] = call(q.Partition(int32(from + i))) })
	}
}

// GetTask shows a task. Without a partition all read partitions are asked; ids
// are unique only within one, so the lowest partition that has it answers.
func (c *Client) GetTask(ctx context.Context, in *matchingpb.GetTaskRequest, opts ...grpc.CallOption) (*matchingpb.GetTaskResponse, error) {
	target, err := wire.DecodeTarget("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	get := func(id partition.ID) (*matchingpb.GetTaskResponse, error) {
		return onePartition(ctx, c, id, partitionCall[matchingpb.GetTaskRequest, matchingpb.GetTaskResponse]{
			method: of(matchingpb.MatchingService_GetTask_FullMethodName, matchingpb.MatchingServiceServer.GetTask),
			in:     &matchingpb.GetTaskRequest{TaskQueue: wire.EncodePartition(id), Id: in.GetId()},
			opts:   opts,
		})
	}
	if target.IsPartition {
		out, err := get(target.Partition())
		return out, answer(err)
	}
	answers, errs := everyPartition(c, target.Queue, get)
	return first(answers, errs)
}

// first returns the first answer. Without one, an error other than "not there"
// is the better one: the task may lie where nobody could look.
func first[Resp any](answers []*Resp, errs []error) (*Resp, error) {
	var err error
	for i, a := range answers {
		if errs[i] == nil {
			return a, nil
		}
		if err == nil || task.ReasonOf(err) == task.NotFound {
			err = errs[i]
		}
	}
	return nil, answer(err)
}

// DescribeTaskQueue adds up what the read partitions of a queue say of
// themselves. A partition that does not answer is named in missing.
func (c *Client) DescribeTaskQueue(ctx context.Context, in *matchingpb.DescribeTaskQueueRequest, opts ...grpc.CallOption) (*matchingpb.DescribeTaskQueueResponse, error) {
	q, err := wire.DecodeQueue("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	answers, errs := everyPartition(c, q, func(id partition.ID) (*matchingpb.DescribePartitionResponse, error) {
		return onePartition(ctx, c, id, partitionCall[matchingpb.DescribePartitionRequest, matchingpb.DescribePartitionResponse]{
			method: describePartition(),
			in:     &matchingpb.DescribePartitionRequest{TaskQueue: wire.EncodePartition(id)},
			opts:   opts,
		})
	})
	out := &matchingpb.DescribeTaskQueueResponse{TaskQueue: wire.EncodeQueue(q), Stats: &matchingpb.QueueStats{}}
	pollers := map[string]*matchingpb.Poller{}
	var failed error
	lost := 0
	for i, a := range answers {
		if errs[i] != nil {
			failed, lost = errs[i], lost+1
			if task.ReasonOf(errs[i]) != task.NotFound { // the node knows it as never used
				out.Missing = append(out.Missing, itemError(i, errs[i]))
			}
			continue
		}
		p := a.GetPartition()
		addStats(out.GetStats(), p.GetStats())
		addPollers(pollers, int32(i), p.GetPollers())
		out.Counts = cmp.Or(p.GetCounts(), out.GetCounts())
		if in.GetIncludePartitions() {
			out.Partitions = append(out.Partitions, p)
		}
	}
	if lost == len(answers) {
		return nil, answer(failed)
	}
	if out.GetCounts() == nil {
		out.Counts = PartitionCounts{Counts: c.countsOf(q)}.Encode()
	}
	if in.GetIncludePollers() {
		out.Pollers = sortedPollers(pollers)
	}
	return out, nil
}

func describePartition() method[matchingpb.DescribePartitionRequest, matchingpb.DescribePartitionResponse] {
	return of(matchingpb.MatchingService_DescribePartition_FullMethodName, matchingpb.MatchingServiceServer.DescribePartition)
}

// addStats adds the figures of a partition to those of its queue.
func addStats(sum, s *matchingpb.QueueStats) {
	sum.Ready += s.GetReady()
	sum.Scheduled += s.GetScheduled()
	sum.Leased += s.GetLeased()
	sum.Dead += s.GetDead()
	sum.OldestReadyAt = earlier(sum.GetOldestReadyAt(), s.GetOldestReadyAt())
	sum.NextDueAt = earlier(sum.GetNextDueAt(), s.GetNextDueAt())
	sum.AddRate += s.GetAddRate()
	sum.DispatchRate += s.GetDispatchRate()
	sum.WaitingPolls += s.GetWaitingPolls()
	sum.RateLimited = sum.GetRateLimited() || s.GetRateLimited()
	sum.Estimated = sum.GetEstimated() || s.GetEstimated()
	for _, p := range s.GetByPriority() {
		at, ok := slices.BinarySearchFunc(sum.GetByPriority(), p.GetPriority(), func(a *matchingpb.PriorityStats, priority int32) int {
			return cmp.Compare(a.GetPriority(), priority)
		})
		if !ok {
			sum.ByPriority = slices.Insert(sum.GetByPriority(), at, &matchingpb.PriorityStats{Priority: p.GetPriority()})
		}
		into := sum.GetByPriority()[at]
		into.Ready += p.GetReady()
		into.OldestReadyAt = earlier(into.GetOldestReadyAt(), p.GetOldestReadyAt())
		into.AddRate += p.GetAddRate()
		into.DispatchRate += p.GetDispatchRate()
	}
}

func earlier(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a == nil || (b != nil && b.AsTime().Before(a.AsTime())) {
		return b
	}
	return a
}

// addPollers joins the pollers of partition number i with those seen elsewhere.
func addPollers(all map[string]*matchingpb.Poller, i int32, pollers []*matchingpb.Poller) {
	for _, p := range pollers {
		key := p.GetIdentity() + "\x00" + p.GetWorkerInstanceKey()
		into, ok := all[key]
		if !ok {
			into = &matchingpb.Poller{Identity: p.GetIdentity(), WorkerInstanceKey: p.GetWorkerInstanceKey()}
			all[key] = into
		}
		into.OpenPolls += p.GetOpenPolls()
		into.Partitions = append(into.Partitions, i)
		if into.GetLastSeenAt() == nil || p.GetLastSeenAt().AsTime().After(into.GetLastSeenAt().AsTime()) {
			into.LastSeenAt = p.GetLastSeenAt()
		}
	}
}

func sortedPollers(all map[string]*matchingpb.Poller) []*matchingpb.Poller {
	out := make([]*matchingpb.Poller, 0, len(all))
	for _, p := range all {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *matchingpb.Poller) int {
		return cmp.Or(strings.Compare(a.GetIdentity(), b.GetIdentity()), strings.Compare(a.GetWorkerInstanceKey(), b.GetWorkerInstanceKey()))
	})
	return out
}

// PeekTasks shows tasks without taking a lease. Without a partition the read
// partitions come one after the other: a page may be short, or empty, where one
// ends; only an empty next_page_token ends the list.
func (c *Client) PeekTasks(ctx context.Context, in *matchingpb.PeekTasksRequest, opts ...grpc.CallOption) (*matchingpb.PeekTasksResponse, error) {
	target, err := wire.DecodeTarget("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	peek := func(id partition.ID, token string) (*matchingpb.PeekTasksResponse, error) {
		one := proto.CloneOf(in)
		one.TaskQueue, one.PageToken = wire.EncodePartition(id), token
		return onePartition(ctx, c, id, partitionCall[matchingpb.PeekTasksRequest, matchingpb.PeekTasksResponse]{
			method: of(matchingpb.MatchingService_PeekTasks_FullMethodName, matchingpb.MatchingServiceServer.PeekTasks),
			in:     one,
			opts:   opts,
		})
	}
	if target.IsPartition {
		out, err := peek(target.Partition(), in.GetPageToken())
		return out, answer(err)
	}
	at, err := parsePage(in.GetPageToken())
	if err != nil {
		return nil, answer(err)
	}
	out, err := peek(target.Queue.Partition(at.number), at.token)
	if err != nil {
		return nil, answer(err)
	}
	out.NextPageToken = at.next(out.GetNextPageToken(), c.countsOf(target.Queue).Read)
	return out, nil
}

// page is a place in a list that goes over the partitions of a queue: a
// partition and its own page token.
type page struct {
	number int32
	token  string
}

// parsePage reads "NUMBER:TOKEN"; the empty string is the beginning.
func parsePage(s string) (page, error) {
	if s == "" {
		return page{}, nil
	}
	number, token, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || n < 0 {
		var f wire.Fields
		f.Addf("page_token", "is not one that this call returned")
		return page{}, f.Err()
	}
	return page{int32(n), token}, nil
}

// next returns the token of the place behind a page of which the partition says
// where it goes on.
func (p page) next(token string, partitions int32) string {
	switch {
	case token != "":
		return strconv.Itoa(int(p.number)) + ":" + token
	case p.number+1 < partitions:
		return strconv.Itoa(int(p.number)+1) + ":"
	default:
		return ""
	}
}

// ListTaskQueues asks the nodes one after the other until one answers: each
// knows all queues of the store.
func (c *Client) ListTaskQueues(ctx context.Context, in *matchingpb.ListTaskQueuesRequest, opts ...grpc.CallOption) (*matchingpb.ListTaskQueuesResponse, error) {
	return anyNode(ctx, c, of(matchingpb.MatchingService_ListTaskQueues_FullMethodName, matchingpb.MatchingServiceServer.ListTaskQueues), in, opts)
}

// CancelPoll ends a waiting poll, where this client sent it; a poll that another
// process made is looked for at all read partitions.
func (c *Client) CancelPoll(ctx context.Context, in *matchingpb.CancelPollRequest, opts ...grpc.CallOption) (*matchingpb.CancelPollResponse, error) {
	target, err := wire.DecodeTarget("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	cancel := func(id partition.ID) (*matchingpb.CancelPollResponse, error) {
		return onePartition(ctx, c, id, partitionCall[matchingpb.CancelPollRequest, matchingpb.CancelPollResponse]{
			method: cancelPoll(),
			in:     &matchingpb.CancelPollRequest{TaskQueue: wire.EncodePartition(id), PollId: in.GetPollId()},
			opts:   opts,
		})
	}
	id, known := c.polls.find(in.GetPollId())
	if target.IsPartition || (known && id.Queue == target.Queue) {
		if target.IsPartition {
			id = target.Partition()
		}
		out, err := cancel(id)
		return out, answer(err)
	}
	answers, errs := everyPartition(c, target.Queue, cancel)
	for _, a := range answers {
		if a.GetFound() {
			return a, nil
		}
	}
	return first(answers, errs)
}

func cancelPoll() method[matchingpb.CancelPollRequest, matchingpb.CancelPollResponse] {
	return of(matchingpb.MatchingService_CancelPoll_FullMethodName, matchingpb.MatchingServiceServer.CancelPoll)
}
