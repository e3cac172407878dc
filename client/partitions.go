package client

import (
	"context"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// DescribePartition describes one partition.
func (c *Client) DescribePartition(ctx context.Context, in *matchingpb.DescribePartitionRequest, opts ...grpc.CallOption) (*matchingpb.DescribePartitionResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.DescribePartitionRequest, matchingpb.DescribePartitionResponse]{
		method: describePartition(), in: in, opts: opts,
	})
}

// LoadPartition loads a partition at its owner.
func (c *Client) LoadPartition(ctx context.Context, in *matchingpb.LoadPartitionRequest, opts ...grpc.CallOption) (*matchingpb.LoadPartitionResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.LoadPartitionRequest, matchingpb.LoadPartitionResponse]{
		method: of(matchingpb.MatchingService_LoadPartition_FullMethodName, matchingpb.MatchingServiceServer.LoadPartition), in: in, opts: opts,
	})
}

// UnloadPartition unloads a partition at its owner.
func (c *Client) UnloadPartition(ctx context.Context, in *matchingpb.UnloadPartitionRequest, opts ...grpc.CallOption) (*matchingpb.UnloadPartitionResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.UnloadPartitionRequest, matchingpb.UnloadPartitionResponse]{
		method: of(matchingpb.MatchingService_UnloadPartition_FullMethodName, matchingpb.MatchingServiceServer.UnloadPartition), in: in, opts: opts,
	})
}

// CancelTask ends a task whatever its state.
func (c *Client) CancelTask(ctx context.Context, in *matchingpb.CancelTaskRequest, opts ...grpc.CallOption) (*matchingpb.CancelTaskResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.CancelTaskRequest, matchingpb.CancelTaskResponse]{
		method: of(matchingpb.MatchingService_CancelTask_FullMethodName, matchingpb.MatchingServiceServer.CancelTask), in: in, opts: opts,
	})
}

// The methods below are served by no node yet. Calls that name a partition are
// routed all the same, and answered by the node that they reach; those about
// a whole queue and streams are answered here.

// ListDeadTasks lists the dead letters of a partition.
func (c *Client) ListDeadTasks(ctx context.Context, in *matchingpb.ListDeadTasksRequest, opts ...grpc.CallOption) (*matchingpb.ListDeadTasksResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.ListDeadTasksRequest, matchingpb.ListDeadTasksResponse]{
		method: of(matchingpb.MatchingService_ListDeadTasks_FullMethodName, matchingpb.MatchingServiceServer.ListDeadTasks), in: in, opts: opts,
	})
}

// PurgeTasks deletes tasks of a partition by filter.
func (c *Client) PurgeTasks(ctx context.Context, in *matchingpb.PurgeTasksRequest, opts ...grpc.CallOption) (*matchingpb.PurgeTasksResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.PurgeTasksRequest, matchingpb.PurgeTasksResponse]{
		method: of(matchingpb.MatchingService_PurgeTasks_FullMethodName, matchingpb.MatchingServiceServer.PurgeTasks), in: in, opts: opts,
	})
}

// RedriveTasks makes dead letters of a partition ready again.
func (c *Client) RedriveTasks(ctx context.Context, in *matchingpb.RedriveTasksRequest, opts ...grpc.CallOption) (*matchingpb.RedriveTasksResponse, error) {
	return named(ctx, c, in.GetTaskQueue(), partitionCall[matchingpb.RedriveTasksRequest, matchingpb.RedriveTasksResponse]{
		method: of(matchingpb.MatchingService_RedriveTasks_FullMethodName, matchingpb.MatchingServiceServer.RedriveTasks), in: in, opts: opts,
	})
}

// unserved is the answer of a method that no node serves yet.
func unserved(method string) error {
	return wire.ToStatus(task.Errorf(task.Unimplemented, "%s is not served yet", method))
}

// StreamTasks is not served yet.
func (c *Client) StreamTasks(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[matchingpb.StreamTasksRequest, matchingpb.StreamTasksResponse], error) {
	return nil, unserved("StreamTasks")
}

// StreamAdd is not served yet.
func (c *Client) StreamAdd(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[matchingpb.StreamAddRequest, matchingpb.StreamAddResponse], error) {
	return nil, unserved("StreamAdd")
}

// DispatchTask is not served yet.
func (c *Client) DispatchTask(context.Context, *matchingpb.DispatchTaskRequest, ...grpc.CallOption) (*matchingpb.DispatchTaskResponse, error) {
	return nil, unserved("DispatchTask")
}

// ShutdownWorker is not served yet.
func (c *Client) ShutdownWorker(context.Context, *matchingpb.ShutdownWorkerRequest, ...grpc.CallOption) (*matchingpb.ShutdownWorkerResponse, error) {
	return nil, unserved("ShutdownWorker")
}

// UpdateTaskQueue is not served yet.
func (c *Client) UpdateTaskQueue(context.Context, *matchingpb.UpdateTaskQueueRequest, ...grpc.CallOption) (*matchingpb.UpdateTaskQueueResponse, error) {
	return nil, unserved("UpdateTaskQueue")
}

// DeleteTaskQueue is not served yet.
func (c *Client) DeleteTaskQueue(context.Context, *matchingpb.DeleteTaskQueueRequest, ...grpc.CallOption) (*matchingpb.DeleteTaskQueueResponse, error) {
	return nil, unserved("DeleteTaskQueue")
}

// Backup is not served yet.
func (c *Client) Backup(context.Context, *matchingpb.BackupRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[matchingpb.BackupResponse], error) {
	return nil, unserved("Backup")
}

// ExportTasks is not served yet.
func (c *Client) ExportTasks(context.Context, *matchingpb.ExportTasksRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[matchingpb.ExportTasksResponse], error) {
	return nil, unserved("ExportTasks")
}

// ImportTasks is not served yet.
func (c *Client) ImportTasks(context.Context, *matchingpb.ImportTasksRequest, ...grpc.CallOption) (*matchingpb.ImportTasksResponse, error) {
	return nil, unserved("ImportTasks")
}

// HandOver is for nodes among themselves: a client never routes it.
func (c *Client) HandOver(context.Context, *matchingpb.HandOverRequest, ...grpc.CallOption) (*matchingpb.HandOverResponse, error) {
	return nil, unserved("HandOver through a client")
}

// WatchQueueStates is for nodes among themselves: a client never routes it.
func (c *Client) WatchQueueStates(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[matchingpb.WatchQueueStatesRequest, matchingpb.WatchQueueStatesResponse], error) {
	return nil, unserved("WatchQueueStates through a client")
}
