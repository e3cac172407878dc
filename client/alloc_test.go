//go:build !race

package client

import (
	"context"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// TestDecisionDoesNotAllocate: counts, partition and node of a call.
func TestDecisionDoesNotAllocate(t *testing.T) {
	c := newRouting(t)
	if n := testing.AllocsPerRun(1000, func() {
		id := testQueue.Partition(0)
		id.Number, _ = c.pickWrite(id.Queue, c.counts.get(id.Queue).Counts, "")
		if _, err := c.Route(id); err != nil {
			t.Fatal(err)
		}
		token := c.balancer.PickReadPartition(id.Queue, c.countsOf(id.Queue))
		token.Release()
	}); n != 0 {
		t.Errorf("deciding where a call goes takes %v allocations", n)
	}
}

// TestCallAllocatesLittle: beside the bare stub's call, over the same connection
// and with a deadline, as calls should have.
func TestCallAllocatesLittle(t *testing.T) {
	c, stub := newEcho(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	measure := func(of matchingpb.MatchingServiceClient, q *matchingpb.TaskQueuePartition) (add, poll float64) {
		add = testing.AllocsPerRun(500, func() {
			if _, err := of.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: q}); err != nil {
				t.Fatal(err)
			}
		})
		poll = testing.AllocsPerRun(500, func() {
			if _, err := of.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: q, PollId: "p", Identity: "i"}); err != nil {
				t.Fatal(err)
			}
		})
		return add, poll
	}
	plainAdd, plainPoll := measure(stub, wire.EncodePartition(testQueue.Partition(0)))
	add, poll := measure(c, wire.EncodeQueue(testQueue))
	t.Logf("a lone add takes %v allocations, the stub's %v; a poll %v and %v", add, plainAdd, poll, plainPoll)
	if add-plainAdd > 4 || poll-plainPoll > 4 {
		t.Errorf("a lone add takes %v allocations more than the stub's, a poll %v, want 4 at most", add-plainAdd, poll-plainPoll)
	}
}
