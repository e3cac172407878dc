package client

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// adding is one add on its way to a partition. All that a lone add needs is in
// this one object.
type adding struct {
	trip trip
	sent sent
	// in is the caller's request, req what is sent: in itself, or own.
	in, req *matchingpb.AddTaskRequest
	// counts that the partition was picked by, as a node reported them; zero
	// when none did or the caller named the partition.
	counts    PartitionCounts
	estimated int64 // tasks over all partitions that it stands for

	own    matchingpb.AddTaskRequest
	target matchingpb.TaskQueuePartition
	number int32
}

// AddTask adds a task. Without a partition it goes to a write partition, at
// random, or by its request id. Concurrent adds to one node travel together;
// options of the call keep it apart.
//
// After OUTCOME_UNKNOWN the task may or may not be there; with a request id the
// client repeats the add by itself.
func (c *Client) AddTask(ctx context.Context, in *matchingpb.AddTaskRequest, opts ...grpc.CallOption) (*matchingpb.AddTaskResponse, error) {
	s := c.settings()
	target, err := checkAdd(in, s)
	if err != nil {
		return nil, answer(err)
	}
	ctx, span := c.span(ctx, "AddTask", target.Queue)
	a := c.newAdding(target, c.traced(ctx, in)) //nolint:contextcheck // picking a partition is no call
	a.sent.options = opts
	out, err := a.travel(capped(ctx, s.Timeout), s)
	span.end(err)
	return out, answer(err)
}

func (a *adding) travel(ctx context.Context, s *Settings) (*matchingpb.AddTaskResponse, error) {
	for {
		n, err := a.trip.node(ctx)
		if err == nil {
			var out *matchingpb.AddTaskResponse
			out, err = n.add(ctx, a, s)
			if err == nil {
				return out, nil
			}
		}
		if err = a.trip.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// checkAdd refuses what surely is wrong before it is sent.
func checkAdd(in *matchingpb.AddTaskRequest, s *Settings) (wire.Target, error) {
	var f wire.Fields
	target := f.Target("task_queue", in.GetTaskQueue())
	checkPayload(&f, "payload", len(in.GetPayload()), s)
	return target, f.Err()
}

func checkPayload(f *wire.Fields, field string, size int, s *Settings) {
	if size > s.MaxPayloadBytes {
		f.Addf(field, "is %d bytes long, the limit is %d (%s)", size, s.MaxPayloadBytes, wire.SettingPayloadBytes)
	}
}

// newAdding returns an add that has its first partition.
func (c *Client) newAdding(target wire.Target, in *matchingpb.AddTaskRequest) *adding {
	a := &adding{in: in, req: in}
	a.trip = trip{client: c, kind: retry.Add, id: target.Partition()}
	if in.GetOptions().GetRequestId() != "" {
		a.trip.kind = retry.Repeatable
	}
	if !target.IsPartition {
		a.trip.picker = a
		a.pick(&a.trip)
	}
	return a
}

// pick implements [picker]: it names the partition in a request of the add's own.
func (a *adding) pick(t *trip) {
	c := t.client
	a.counts = c.counts.get(t.id.Queue)
	t.id.Number, a.estimated = c.pickWrite(t.id.Queue, a.counts.Counts, a.in.GetOptions().GetRequestId())
	c.metrics.pick("write")
	a.number = t.id.Number
	a.target.Namespace, a.target.Name, a.target.Type = t.id.Namespace, t.id.Name, matchingpb.TaskType(t.id.Type)
	a.target.Partition = &a.number
	a.own.TaskQueue, a.own.Payload, a.own.Options, a.own.Forwarded = &a.target, a.in.GetPayload(), a.in.GetOptions(), a.in.GetForwarded()
	a.req = &a.own
}

// pickWrite picks by what a node reported, else by the settings.
func (c *Client) pickWrite(q partition.Queue, counts partition.Counts, requestID string) (number int32, estimated int64) {
	if !counts.Valid() {
		counts = c.sources.countsOf(q)
	}
	if requestID != "" {
		return c.balancer.PickRequest(counts, requestID)
	}
	return c.balancer.PickWritePartition(q, counts)
}

// add makes one try, joined with others if it may be.
func (n *node) add(ctx context.Context, a *adding, s *Settings) (*matchingpb.AddTaskResponse, error) {
	if !n.joins(len(a.sent.options), s) {
		return n.addAlone(ctx, a)
	}
	l := n.enter(ctx)
	defer n.leave(l)
	return l.adds.do(ctx, a, len(a.req.GetPayload())+perItem)
}

// perItem is what an item of a batch weighs beyond its payload, in bytes, about.
const perItem = 32

func (n *node) addAlone(ctx context.Context, a *adding) (*matchingpb.AddTaskResponse, error) {
	if a.counts.Valid() {
		ctx = a.counts.AppendToOutgoing(ctx)
	}
	if a.counts.Managed {
		ctx = wire.AppendEstimatedTasks(ctx, a.estimated)
	}
	out, err := of(matchingpb.MatchingService_AddTask_FullMethodName, matchingpb.MatchingServiceServer.AddTask).call(ctx, n, a.req, &a.sent)
	if answered(err) {
		n.client.learnFrom(a.trip.id.Queue, a.sent.trailer)
	}
	return out, err
}

// addWaiter is an add in a batch.
type addWaiter = waiter[*adding, *matchingpb.AddTaskResponse]

// addGroup is the part of a batch that goes to one partition.
type addGroup struct {
	id      partition.ID
	batch   *matchingpb.AddBatch
	waiters []*addWaiter
}

// addTogether makes one AddTasks of many adds.
func (n *node) addTogether(ctx context.Context, batch []*addWaiter) {
	groups := groupAdds(batch)
	in := &matchingpb.AddTasksRequest{Batches: make([]*matchingpb.AddBatch, len(groups))}
	for i, g := range groups {
		in.Batches[i] = g.batch
	}
	n.client.metrics.joint(ctx, "AddTasks", len(batch))
	out, err := addTasks().call(ctx, n, in, &sent{})
	if err == nil && len(out.GetResults()) != len(groups) {
		err = task.Errorf(task.OutcomeUnknown, "%s answered %d batches of adds with %d results", n.address, len(groups), len(out.GetResults()))
	}
	for i, g := range groups {
		if err != nil {
			g.fail(err)
			continue
		}
		n.client.learnIfSet(g.id.Queue, out.GetResults()[i].GetCounts())
		g.settle(out.GetResults()[i])
	}
}

func addTasks() method[matchingpb.AddTasksRequest, matchingpb.AddTasksResponse] {
	return of(matchingpb.MatchingService_AddTasks_FullMethodName, matchingpb.MatchingServiceServer.AddTasks)
}

// groupAdds sorts adds by partition, in the order of their arrival.
func groupAdds(batch []*addWaiter) []*addGroup {
	var groups []*addGroup
	byID := make(map[partition.ID]*addGroup, 4)
	for _, w := range batch {
		g, ok := byID[w.item.trip.id]
		if !ok {
			g = newAddGroup(w)
			byID[w.item.trip.id] = g
			groups = append(groups, g)
		}
		g.add(w)
	}
	return groups
}

func newAddGroup(w *addWaiter) *addGroup {
	b := &matchingpb.AddBatch{TaskQueue: w.item.req.GetTaskQueue(), Counts: w.item.counts.Encode()}
	if b.GetCounts() != nil {
		b.Counts.BacklogCap, b.Counts.BacklogCodes = 0, nil
	}
	// A request id names one task; as an option of all it would be refused.
	if o := w.item.req.GetOptions(); o.GetRequestId() == "" {
		b.Common = o
	}
	return &addGroup{id: w.item.trip.id, batch: b}
}

func (g *addGroup) add(w *addWaiter) {
	g.batch.Payloads = append(g.batch.Payloads, w.item.req.GetPayload())
	if w.item.counts.Managed {
		g.batch.EstimatedTasks += w.item.estimated
	}
	if o := w.item.req.GetOptions(); !sameOptions(o, g.batch.GetCommon()) {
		g.batch.Exceptions = append(g.batch.Exceptions, &matchingpb.ItemOptions{Index: uint32(len(g.waiters)), Options: o})
	}
	g.waiters = append(g.waiters, w)
}

// sameOptions compares what most tasks have by hand: proto.Equal takes as long as
// all else that is done for an item.
func sameOptions(a, b *matchingpb.TaskOptions) bool {
	switch {
	case a == b:
		return true
	case isPlain(a) && isPlain(b):
		return a.GetPriority() == b.GetPriority() && a.GetDurability() == b.GetDurability() && a.GetMaxAttempts() == b.GetMaxAttempts() &&
			a.GetRequestId() == b.GetRequestId() && a.GetFairnessKey() == b.GetFairnessKey() && a.GetFairnessWeight() == b.GetFairnessWeight()
	default:
		return proto.Equal(a, b)
	}
}

// isPlain reports whether options have nothing but numbers and texts.
func isPlain(o *matchingpb.TaskOptions) bool {
	return len(o.GetHeaders()) == 0 && o.GetStart() == nil && o.GetExpiry() == nil && o.GetRetryPolicy() == nil && o.GetLeaseDuration() == nil &&
		len(o.ProtoReflect().GetUnknown()) == 0
}

func (g *addGroup) fail(err error) {
	for _, w := range g.waiters {
		w.settle(nil, err)
	}
}

// settle gives each caller what became of its item.
func (g *addGroup) settle(r *matchingpb.AddResult) {
	if err := wire.ErrorOfItem(r.GetError()); err != nil {
		g.fail(err)
		return
	}
	if len(r.GetIds()) != len(g.waiters) {
		g.fail(task.Errorf(task.OutcomeUnknown, "%d adds were answered with %d ids", len(g.waiters), len(r.GetIds())))
		return
	}
	failed, duplicates := r.GetErrors(), r.GetDuplicates()
	for i, w := range g.waiters {
		if len(failed) > 0 && int(failed[0].GetIndex()) == i {
			w.settle(nil, wire.ErrorOfItem(failed[0]))
			failed = failed[1:]
			continue
		}
		out := &matchingpb.AddTaskResponse{Id: r.GetIds()[i], Partition: g.id.Number}
		if len(duplicates) > 0 && int(duplicates[0]) == i {
			out.Duplicate = true
			duplicates = duplicates[1:]
		}
		w.settle(out, nil)
	}
}
