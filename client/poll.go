package client

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/client/balance"
	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// openPolls remembers where polls that are out went, so that they can be
// cancelled by id alone.
type openPolls struct {
	prefix string // of ids that the client makes
	next   atomic.Uint64

	mu   sync.Mutex
	byID map[string]partition.ID
}

func (p *openPolls) newID() string { return p.prefix + strconv.FormatUint(p.next.Add(1), 36) }

func (p *openPolls) put(id string, at partition.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[string]partition.ID{}
	}
	p.byID[id] = at
}

func (p *openPolls) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byID, id)
}

func (p *openPolls) find(id string) (partition.ID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.byID[id]
	return at, ok
}

// polling is one poll on its way. All that it needs is in this one object.
type polling struct {
	trip  trip
	sent  sent
	token balance.Token
	// counts that the partition was picked by, as a node reported them.
	counts PartitionCounts

	req    matchingpb.PollTaskRequest
	target matchingpb.TaskQueuePartition
	number int32
}

// PollTask waits for tasks. Without a partition it goes to a read partition:
// under a backlog by that, else to the one with the fewest polls of this client.
// A poll whose partition moves follows it; one that broke off is repeated under
// its id, so that grants which were on their way come again. When there is no time
// left to try again it ends empty, as it would have at a node.
func (c *Client) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest, opts ...grpc.CallOption) (*matchingpb.PollTaskResponse, error) {
	target, err := wire.DecodeTarget("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	ctx, span := c.span(ctx, "PollTask", target.Queue)
	ctx, cancel := bounded(ctx, c.settings().LongPollTimeout)
	defer cancel()
	p := c.newPolling(target, in) //nolint:contextcheck // picking a partition is no call
	p.sent.options = opts
	defer p.token.Release()
	defer c.polls.drop(p.req.GetPollId())
	out, err := p.travel(ctx)
	span.end(err)
	return out, answer(err)
}

// newPolling returns a poll that has its first partition.
func (c *Client) newPolling(target wire.Target, in *matchingpb.PollTaskRequest) *polling {
	p := &polling{}
	p.trip = trip{client: c, kind: retry.Poll, id: target.Partition()}
	p.name(in)
	if !target.IsPartition {
		p.trip.picker = p
	}
	q := p.trip.id.Queue
	if target.IsPartition {
		p.token = c.balancer.Hold(p.trip.id)
	} else {
		p.counts = c.counts.get(q)
		p.token = c.balancer.PickReadPartition(q, c.countsOr(q, p.counts))
		c.metrics.pick("read")
		p.trip.id.Number = p.token.Partition
	}
	p.aim()
	return p
}

// name copies a request, with what it lacks of names.
func (p *polling) name(in *matchingpb.PollTaskRequest) {
	p.req.MaxTasks, p.req.PollId, p.req.Identity, p.req.WorkerInstanceKey = in.GetMaxTasks(), in.GetPollId(), in.GetIdentity(), in.GetWorkerInstanceKey()
	p.req.LeaseDuration, p.req.Wait, p.req.Format = in.GetLeaseDuration(), in.GetWait(), in.GetFormat()
	p.req.MinPriority, p.req.MaxQueueRate, p.req.MaxBytes, p.req.Forwarded = in.GetMinPriority(), in.MaxQueueRate, in.GetMaxBytes(), in.GetForwarded()
	if p.req.GetPollId() == "" {
		p.req.PollId = p.trip.client.polls.newID()
	}
	if p.req.GetIdentity() == "" {
		p.req.Identity = p.trip.client.options.Identity
	}
}

// aim names the partition in the request.
func (p *polling) aim() {
	id := p.trip.id
	p.number = id.Number
	p.target.Namespace, p.target.Name, p.target.Type = id.Namespace, id.Name, matchingpb.TaskType(id.Type)
	p.target.Partition = &p.number
	p.req.TaskQueue = &p.target
}

// pick implements [picker]: it moves the poll elsewhere.
func (p *polling) pick(t *trip) {
	c, q := t.client, t.id.Queue
	p.counts = c.counts.get(q)
	c.balancer.MoveRead(&p.token, q, c.countsOr(q, p.counts))
	c.metrics.pick("read")
	t.id.Number = p.token.Partition
	p.aim()
}

// countsOr returns what a node reported, if valid, else the settings.
func (c *Client) countsOr(q partition.Queue, reported PartitionCounts) partition.Counts {
	if reported.Valid() {
		return reported.Counts
	}
	return c.sources.countsOf(q)
}

func (p *polling) travel(ctx context.Context) (*matchingpb.PollTaskResponse, error) {
	t := &p.trip
	for {
		t.client.polls.put(p.req.GetPollId(), t.id)
		out, err := p.once(ctx)
		if err == nil && !moved(out) {
			return out, nil
		}
		if err == nil {
			err = movedError(out)
		}
		failed := t.again(ctx, err)
		switch {
		case failed == nil:
		case moved(out):
			return out, nil // no time left to follow
		case t.late(ctx, err):
			return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT}, nil
		default:
			return nil, failed
		}
	}
}

// late reports whether a poll was given up only because its deadline is near: by
// then a node would have ended it empty.
func (t *trip) late(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) > pollMargin {
		return false
	}
	switch f := failureOf(err); f.Reason {
	case task.NotReady, task.PartitionClosing, task.NotOwner:
		return true
	default:
		return f.NotSent
	}
}

// pollMargin is how long before its deadline a poll ends empty.
const pollMargin = time.Second

func (p *polling) once(ctx context.Context) (*matchingpb.PollTaskResponse, error) {
	n, err := p.trip.node(ctx)
	if err != nil {
		return nil, err
	}
	if p.trip.picker != nil && p.counts.Valid() {
		ctx = p.counts.AppendToOutgoing(ctx)
	}
	return n.poll(ctx, &p.trip, &p.req, &p.sent)
}

// pollOnce makes one try of a worker's poll.
func (c *Client) pollOnce(ctx context.Context, t *trip, in *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	n, err := t.node(ctx)
	if err != nil {
		return nil, err
	}
	return n.poll(ctx, t, in, &sent{})
}

func (n *node) poll(ctx context.Context, t *trip, in *matchingpb.PollTaskRequest, s *sent) (*matchingpb.PollTaskResponse, error) {
	out, err := of(matchingpb.MatchingService_PollTask_FullMethodName, matchingpb.MatchingServiceServer.PollTask).call(ctx, n, in, s)
	switch {
	case err == nil && out.GetCounts() != nil:
		n.client.learnIfSet(t.id.Queue, out.GetCounts())
	case answered(err):
		n.client.learnFrom(t.id.Queue, s.trailer)
	}
	return out, err
}

// moved reports whether a poll came back empty because its partition went
// elsewhere.
func moved(out *matchingpb.PollTaskResponse) bool {
	return out.GetEmptyReason() == matchingpb.EmptyReason_EMPTY_REASON_MOVED
}

// movedError says the same as an error, for the trip to follow.
func movedError(out *matchingpb.PollTaskResponse) error {
	e := task.Errorf(task.NotOwner, "the partition moved during the poll")
	if m := out.GetMovedTo(); m != nil {
		owner := wire.DecodeOwnership(m)
		e.Owner = &owner
	}
	return e
}
