package client

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

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

// PollTask waits for tasks. Without a partition it goes to the read partition
// with the fewest polls of this client. A poll whose partition moves follows
// it; one that broke off is repeated under its id, so that grants which were on
// their way come again.
func (c *Client) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest, opts ...grpc.CallOption) (*matchingpb.PollTaskResponse, error) {
	target, err := wire.DecodeTarget("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, answer(err)
	}
	ctx, cancel := bounded(ctx, c.settings().LongPollTimeout)
	defer cancel()
	in = c.identified(in)
	t := &trip{client: c, kind: retry.Repeatable, id: target.Partition()}
	var token *balance.Token
	if !target.IsPartition {
		t.pick = func(t *trip) { token = c.moveRead(t, token) }
		t.pick(t)
	} else {
		token = c.balancer.Hold(t.id)
	}
	defer func() { token.Release() }()
	defer c.polls.drop(in.GetPollId())
	for {
		c.polls.put(in.GetPollId(), t.id)
		in.TaskQueue = wire.EncodePartition(t.id)
		out, err := c.pollOnce(ctx, t, in, opts)
		if err == nil && !moved(out) {
			return out, nil
		}
		if err == nil {
			err = movedError(out)
		}
		if err = t.again(ctx, err); err == nil {
			continue
		}
		if moved(out) {
			return out, nil // no time left to follow
		}
		return nil, answer(err)
	}
}

// identified returns a copy of a poll with what it lacks of names.
func (c *Client) identified(in *matchingpb.PollTaskRequest) *matchingpb.PollTaskRequest {
	in = proto.CloneOf(in)
	if in.GetPollId() == "" {
		in.PollId = c.polls.newID()
	}
	if in.GetIdentity() == "" {
		in.Identity = c.options.Identity
	}
	return in
}

// moveRead picks the read partition of a poll; one that was tried before is
// still counted while the next one is picked, which makes the pick avoid it.
func (c *Client) moveRead(t *trip, before *balance.Token) *balance.Token {
	next := c.balancer.PickRead(t.id.Queue, c.countsOf(t.id.Queue))
	if before != nil {
		before.Release()
	}
	t.id.Number = next.Partition
	return next
}

// pollOnce makes one try.
func (c *Client) pollOnce(ctx context.Context, t *trip, in *matchingpb.PollTaskRequest, opts []grpc.CallOption) (*matchingpb.PollTaskResponse, error) {
	n, err := t.node()
	if err != nil {
		return nil, err
	}
	if t.pick != nil {
		if counts := c.counts.get(t.id.Queue); counts.Valid() {
			ctx = counts.AppendToOutgoing(ctx)
		}
	}
	out, err := of("PollTask", matchingpb.MatchingServiceClient.PollTask, matchingpb.MatchingServiceServer.PollTask).call(ctx, n, in, &sent{options: opts})
	if err == nil {
		c.learnIfSet(t.id.Queue, out.GetCounts())
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
