package client

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// addPart is what an AddTasks has for one partition.
type addPart = part[*matchingpb.AddBatch, *matchingpb.AddResult]

// AddTasks adds many tasks, each with its own outcome. The items of a batch
// without a partition are dealt out over the write partitions in turn; when
// they went to more than one, the result's partition is -1.
//
// Batches that fail as a whole are tried again as a lone add is, items that fail
// are not.
func (c *Client) AddTasks(ctx context.Context, in *matchingpb.AddTasksRequest, opts ...grpc.CallOption) (*matchingpb.AddTasksResponse, error) {
	s := c.settings()
	ctx, span := c.span(ctx, "AddTasks", partition.Queue{})
	defer span.end(nil) // each item has its own outcome
	ctx, cancel := bounded(ctx, s.Timeout)
	defer cancel()
	out := &matchingpb.AddTasksResponse{Seq: in.GetSeq(), Results: make([]*matchingpb.AddResult, len(in.GetBatches()))}
	var parts []*addPart
	splits := make([]*addSplit, len(in.GetBatches()))
	for i, b := range in.GetBatches() {
		splits[i] = c.splitAdds(b, s)
		parts = append(parts, splits[i].parts...)
	}
	deliver(ctx, c, partSender[*matchingpb.AddBatch, *matchingpb.AddResult]{
		send: func(ctx context.Context, n *node, batches []*matchingpb.AddBatch) ([]*matchingpb.AddResult, error) {
			answer, err := addTasks().call(ctx, n, &matchingpb.AddTasksRequest{Batches: batches}, &sent{options: opts})
			return answer.GetResults(), err
		},
		whole: (*matchingpb.AddResult).GetError,
	}, parts)
	for i, split := range splits {
		out.Results[i] = split.result(c)
	}
	return out, nil
}

// addSplit is one batch of the caller's, in parts.
type addSplit struct {
	items   int
	refused error                   // of the whole batch
	errors  []*matchingpb.ItemError // of items that were not sent
	parts   []*addPart
}

// splitAdds sorts the items of a batch by the partition they go to.
func (c *Client) splitAdds(b *matchingpb.AddBatch, s *Settings) *addSplit {
	split := &addSplit{items: len(b.GetPayloads())}
	target, err := wire.DecodeTarget("task_queue", b.GetTaskQueue())
	if err != nil {
		split.refused = err
		return split
	}
	d := dealer{client: c, target: target, split: split, common: b.GetCommon(), parts: map[addKey]*addPart{}}
	if !target.IsPartition {
		d.counts = c.countsOf(target.Queue)
		d.even = c.balancer.Even(target.Queue, d.counts)
		d.next = rand.Int32N(max(d.counts.Write, 1))
	}
	exceptions := b.GetExceptions()
	for i, payload := range b.GetPayloads() {
		item := dealt{index: i, payload: payload, options: b.GetCommon()}
		if len(exceptions) > 0 && int(exceptions[0].GetIndex()) <= i {
			item.options, item.exception = exceptions[0].GetOptions(), true
			exceptions = exceptions[1:]
		}
		var f wire.Fields
		if checkPayload(&f, "payload", len(payload), s); !f.OK() {
			split.errors = append(split.errors, itemError(i, f.Err()))
			continue
		}
		d.deal(item)
	}
	return split
}

// dealer deals the items of a batch out to parts.
type dealer struct {
	client *Client
	target wire.Target
	common *matchingpb.TaskOptions
	split  *addSplit
	counts partition.Counts // zero when the caller named the partition
	even   bool             // deal in turn
	next   int32
	parts  map[addKey]*addPart
}

// addKey tells parts apart. An item with a request id is one by itself: when
// the counts turn out to be stale it moves by its own hash.
type addKey struct {
	number    int32
	requestID string
}

// dealt is one item.
type dealt struct {
	index     int
	payload   []byte
	options   *matchingpb.TaskOptions
	exception bool // options are its own
}

func (d *dealer) deal(item dealt) {
	number, estimated := d.pick(item)
	p := d.part(addKey{number, item.options.GetRequestId()})
	if item.exception {
		p.batch.Exceptions = append(p.batch.Exceptions, &matchingpb.ItemOptions{Index: uint32(len(p.at)), Options: item.options})
	}
	if d.counts.Managed {
		p.batch.EstimatedTasks += estimated
	}
	p.batch.Payloads = append(p.batch.Payloads, item.payload)
	p.at = append(p.at, item.index)
}

// pick picks the partition: the next one, by backlogs, or by request id; and says
// how many tasks the item stands for.
func (d *dealer) pick(item dealt) (number int32, estimated int64) {
	if d.target.IsPartition {
		return d.target.Number, 0
	}
	if id := item.options.GetRequestId(); id != "" {
		return d.client.balancer.PickRequest(d.counts, id)
	}
	if !d.even {
		return d.client.balancer.PickWritePartition(d.target.Queue, d.counts)
	}
	number = d.next
	d.next = (d.next + 1) % max(d.counts.Write, 1)
	if number == 0 {
		estimated = int64(max(d.counts.Write, 1))
	}
	return number, estimated
}

func (d *dealer) part(key addKey) *addPart {
	if p, ok := d.parts[key]; ok {
		return p
	}
	id := d.target.Queue.Partition(key.number)
	p := &addPart{batch: &matchingpb.AddBatch{TaskQueue: wire.EncodePartition(id), Common: d.common}}
	p.trip = &trip{client: d.client, kind: retry.Add, id: id}
	if key.requestID != "" {
		p.trip.kind = retry.Repeatable
	}
	if !d.target.IsPartition {
		p.batch.Counts = d.client.reported(id.Queue)
		p.trip.picker = pickFunc(func(t *trip) {
			t.id.Number, _ = d.client.pickWrite(id.Queue, d.client.counts.get(id.Queue).Counts, key.requestID)
			p.batch.TaskQueue = wire.EncodePartition(t.id)
			p.batch.Counts = d.client.reported(id.Queue)
		})
	}
	d.parts[key] = p
	d.split.parts = append(d.split.parts, p)
	return p
}

// reported returns the counts that a node reported, as clients send them.
func (c *Client) reported(q partition.Queue) *matchingpb.PartitionCounts {
	counts := c.counts.get(q)
	counts.BacklogCap, counts.BacklogCodes = 0, ""
	return counts.Encode()
}

// result puts the parts of a batch together again.
func (s *addSplit) result(c *Client) *matchingpb.AddResult {
	if s.refused != nil {
		return &matchingpb.AddResult{Error: itemError(0, s.refused)}
	}
	out := &matchingpb.AddResult{Ids: make([]uint64, s.items), Errors: s.errors}
	for i, p := range s.parts {
		switch number := p.trip.id.Number; {
		case i == 0:
			out.Partition = number
		case number != out.GetPartition():
			out.Partition = -1
		}
		if counts := p.result.GetCounts(); counts != nil {
			c.learnIfSet(p.trip.id.Queue, counts)
			out.Counts = counts
		}
		out.Errors = place(out.GetErrors(), p.at, p.err, p.result.GetErrors())
		out.Duplicates = placeIndexes(out.GetDuplicates(), p.at, p.result.GetDuplicates())
		for j, id := range p.result.GetIds() {
			if p.err == nil && j < len(p.at) {
				out.Ids[p.at[j]] = id
			}
		}
	}
	byIndex(out.GetErrors())
	slices.SortFunc(out.GetDuplicates(), cmp.Compare[uint32])
	return out
}
