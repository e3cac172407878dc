package client

import (
	"context"

	"github.com/taskring/taskring/matching/matchingpb"
)

// Frontend serves the service by routing: what it is asked it asks the nodes
// that own the partitions. It is a node's handler for requests that name no
// partition, and the whole of a server without partitions of its own.
//
// Its errors never tell how partitions lie on nodes. Credentials and other
// metadata of its callers are not passed on: the nodes trust the frontend.
// Methods that it lacks are answered UNIMPLEMENTED.
type Frontend struct {
	matchingpb.UnimplementedMatchingServiceServer

	client *Client
}

var _ matchingpb.MatchingServiceServer = (*Frontend)(nil)

// NewFrontend returns a Frontend over a client, which the caller stops.
func NewFrontend(c *Client) *Frontend { return &Frontend{client: c} }

// AddTask routes an add to a write partition.
func (f *Frontend) AddTask(ctx context.Context, in *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	return f.client.AddTask(ctx, in)
}

// AddTasks deals batches out over the write partitions.
func (f *Frontend) AddTasks(ctx context.Context, in *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	return f.client.AddTasks(ctx, in)
}

// PollTask polls the read partition with the fewest polls of this frontend.
func (f *Frontend) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	return f.client.PollTask(ctx, in)
}

// CompleteTask takes a completion to the owner.
func (f *Frontend) CompleteTask(ctx context.Context, in *matchingpb.CompleteTaskRequest) (*matchingpb.CompleteTaskResponse, error) {
	return f.client.CompleteTask(ctx, in)
}

// CompleteTasks takes completions to their owners.
func (f *Frontend) CompleteTasks(ctx context.Context, in *matchingpb.CompleteTasksRequest) (*matchingpb.CompleteTasksResponse, error) {
	return f.client.CompleteTasks(ctx, in)
}

// FailTask takes a failure to the owner.
func (f *Frontend) FailTask(ctx context.Context, in *matchingpb.FailTaskRequest) (*matchingpb.FailTaskResponse, error) {
	return f.client.FailTask(ctx, in)
}

// FailTasks takes failures to their owners.
func (f *Frontend) FailTasks(ctx context.Context, in *matchingpb.FailTasksRequest) (*matchingpb.FailTasksResponse, error) {
	return f.client.FailTasks(ctx, in)
}

// ReleaseTask takes a release to the owner.
func (f *Frontend) ReleaseTask(ctx context.Context, in *matchingpb.ReleaseTaskRequest) (*matchingpb.ReleaseTaskResponse, error) {
	return f.client.ReleaseTask(ctx, in)
}

// ReleaseTasks takes releases to their owners.
func (f *Frontend) ReleaseTasks(ctx context.Context, in *matchingpb.ReleaseTasksRequest) (*matchingpb.ReleaseTasksResponse, error) {
	return f.client.ReleaseTasks(ctx, in)
}

// HeartbeatTask takes a heartbeat to the owner.
func (f *Frontend) HeartbeatTask(ctx context.Context, in *matchingpb.HeartbeatTaskRequest) (*matchingpb.HeartbeatTaskResponse, error) {
	return f.client.HeartbeatTask(ctx, in)
}

// HeartbeatTasks takes heartbeats to their owners.
func (f *Frontend) HeartbeatTasks(ctx context.Context, in *matchingpb.HeartbeatTasksRequest) (*matchingpb.HeartbeatTasksResponse, error) {
	return f.client.HeartbeatTasks(ctx, in)
}

// GetTask looks for a task at all read partitions.
func (f *Frontend) GetTask(ctx context.Context, in *matchingpb.GetTaskRequest) (*matchingpb.GetTaskResponse, error) {
	return f.client.GetTask(ctx, in)
}

// CancelPoll ends a poll where it went.
func (f *Frontend) CancelPoll(ctx context.Context, in *matchingpb.CancelPollRequest) (*matchingpb.CancelPollResponse, error) {
	return f.client.CancelPoll(ctx, in)
}

// DescribeTaskQueue adds up the partitions.
func (f *Frontend) DescribeTaskQueue(ctx context.Context, in *matchingpb.DescribeTaskQueueRequest) (*matchingpb.DescribeTaskQueueResponse, error) {
	return f.client.DescribeTaskQueue(ctx, in)
}

// DescribePartition describes a partition at its owner.
func (f *Frontend) DescribePartition(ctx context.Context, in *matchingpb.DescribePartitionRequest) (*matchingpb.DescribePartitionResponse, error) {
	return f.client.DescribePartition(ctx, in)
}

// ListTaskQueues asks any node.
func (f *Frontend) ListTaskQueues(ctx context.Context, in *matchingpb.ListTaskQueuesRequest) (*matchingpb.ListTaskQueuesResponse, error) {
	return f.client.ListTaskQueues(ctx, in)
}

// PeekTasks goes over the partitions.
func (f *Frontend) PeekTasks(ctx context.Context, in *matchingpb.PeekTasksRequest) (*matchingpb.PeekTasksResponse, error) {
	return f.client.PeekTasks(ctx, in)
}

// LoadPartition loads a partition at its owner.
func (f *Frontend) LoadPartition(ctx context.Context, in *matchingpb.LoadPartitionRequest) (*matchingpb.LoadPartitionResponse, error) {
	return f.client.LoadPartition(ctx, in)
}

// UnloadPartition unloads a partition at its owner.
func (f *Frontend) UnloadPartition(ctx context.Context, in *matchingpb.UnloadPartitionRequest) (*matchingpb.UnloadPartitionResponse, error) {
	return f.client.UnloadPartition(ctx, in)
}
