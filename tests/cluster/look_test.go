package cluster

import (
	"testing"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// TestFreshClientSeesEveryPartition: a client that has never heard of a queue learns
// with the first answer how many partitions it has, and asks the others too.
func TestFreshClientSeesEveryPartition(t *testing.T) {
	node := startNode(t, 4)
	added, err := bareStub(t, node).AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: wire.EncodePartition(queue.Partition(3)), Payload: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() *client.Client { return newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}}) }
	d, err := fresh().DescribeTaskQueue(t.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: wire.EncodeQueue(queue), IncludePartitions: true})
	if err != nil || len(d.GetPartitions()) != 4 || d.GetStats().GetReady() != 1 || len(d.GetMissing()) != 0 {
		t.Errorf("DescribeTaskQueue = %v, %v: want 4 partitions and 1 ready task", d, err)
	}
	got, err := fresh().GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: wire.EncodeQueue(queue), Id: added.GetId()})
	if err != nil || string(got.GetTask().GetPayload()) != "x" {
		t.Errorf("GetTask = %v, %v", got, err)
	}
}

// TestUnknownQueueThroughTheClient is not found, whatever the partition.
func TestUnknownQueueThroughTheClient(t *testing.T) {
	node := startNode(t, 4)
	c := newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}})
	mistyped := queue
	mistyped.Name = "mistyped"
	if d, err := c.DescribeTaskQueue(t.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: wire.EncodeQueue(mistyped)}); task.ReasonOf(wire.FromStatus(err)) != task.NotFound {
		t.Errorf("DescribeTaskQueue = %v, %v", d, err)
	}
	if p, err := c.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: wire.EncodeQueue(mistyped)}); task.ReasonOf(wire.FromStatus(err)) != task.NotFound {
		t.Errorf("PeekTasks = %v, %v", p, err)
	}
}
