package client

import (
	"context"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// What follows is how the fake node shows what it has.

func (f *fakeNode) GetTask(ctx context.Context, in *matchingpb.GetTaskRequest) (*matchingpb.GetTaskResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "GetTask", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks[id] {
		if uint64(t.id) == in.GetId() {
			return &matchingpb.GetTaskResponse{Task: &matchingpb.TaskDescription{Id: in.GetId(), Partition: in.GetTaskQueue(), Payload: t.payload}}, nil
		}
	}
	return nil, wire.ToStatus(task.Errorf(task.NotFound, "task %d", in.GetId()))
}

func (f *fakeNode) DescribePartition(ctx context.Context, in *matchingpb.DescribePartitionRequest) (*matchingpb.DescribePartitionResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "DescribePartition", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &matchingpb.PartitionDescription{Partition: id.Number, Loaded: true, Stats: &matchingpb.QueueStats{}, Counts: f.counts.Encode()}
	for _, t := range f.tasks[id] {
		if t.state == "ready" {
			p.Stats.Ready++
		}
	}
	if p.GetStats().GetReady() > 0 {
		p.Stats.ByPriority = []*matchingpb.PriorityStats{{Priority: 3, Ready: p.GetStats().GetReady()}}
	}
	p.Pollers = []*matchingpb.Poller{{Identity: "someone", OpenPolls: 1}}
	return &matchingpb.DescribePartitionResponse{TaskQueue: in.GetTaskQueue(), Partition: p}, nil
}

func (f *fakeNode) PeekTasks(ctx context.Context, in *matchingpb.PeekTasksRequest) (*matchingpb.PeekTasksResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "PeekTasks", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := len(in.GetPageToken()) // as many tasks as the token is long were shown
	out := &matchingpb.PeekTasksResponse{}
	if list := f.tasks[id]; at < len(list) {
		out.Tasks = []*matchingpb.TaskDescription{{Id: uint64(list[at].id), Partition: in.GetTaskQueue()}}
		if at+1 < len(list) {
			out.NextPageToken = in.GetPageToken() + "x"
		}
	}
	return out, nil
}

func (f *fakeNode) ListTaskQueues(ctx context.Context, _ *matchingpb.ListTaskQueuesRequest) (*matchingpb.ListTaskQueuesResponse, error) {
	if err := f.begin(ctx, "ListTaskQueues", partition.ID{}); err != nil {
		return nil, err
	}
	return &matchingpb.ListTaskQueuesResponse{TaskQueues: []*matchingpb.TaskQueueSummary{{TaskQueue: wire.EncodeQueue(testQueue)}}}, nil
}
