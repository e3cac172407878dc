package client

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/matching/matchingpb"
)

// wrapped is a client with something around each of its unary calls. Streams are
// those of the client itself.
type wrapped struct {
	inner
	around around
}

// inner is embedded for what is not wrapped.
type inner = matchingpb.MatchingServiceClient

// around makes a call, once or several times; request is what is sent.
type around func(ctx context.Context, method string, request any, call try) error

// try makes a call once, with options beyond the caller's.
type try func(ctx context.Context, more ...grpc.CallOption) error

// wrappedCall is one method of a wrapped client, with the options of one call.
type wrappedCall[Req, Resp any] struct {
	around  around
	method  string
	call    func(context.Context, *Req, ...grpc.CallOption) (*Resp, error)
	options []grpc.CallOption
}

func (w wrappedCall[Req, Resp]) do(ctx context.Context, in *Req) (out *Resp, err error) {
	err = w.around(ctx, w.method, in, func(ctx context.Context, more ...grpc.CallOption) (err error) {
		out, err = w.call(ctx, in, append(slices.Clip(w.options), more...)...)
		return err
	})
	return out, err
}

func wrap[Req, Resp any](w *wrapped, method string, call func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), options []grpc.CallOption) wrappedCall[Req, Resp] {
	return wrappedCall[Req, Resp]{around: w.around, method: method, call: call, options: options}
}

// AddTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) AddTask(ctx context.Context, in *matchingpb.AddTaskRequest, opts ...grpc.CallOption) (*matchingpb.AddTaskResponse, error) {
	return wrap(w, "AddTask", w.inner.AddTask, opts).do(ctx, in)
}

// AddTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) AddTasks(ctx context.Context, in *matchingpb.AddTasksRequest, opts ...grpc.CallOption) (*matchingpb.AddTasksResponse, error) {
	return wrap(w, "AddTasks", w.inner.AddTasks, opts).do(ctx, in)
}

// PollTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest, opts ...grpc.CallOption) (*matchingpb.PollTaskResponse, error) {
	return wrap(w, "PollTask", w.inner.PollTask, opts).do(ctx, in)
}

// CompleteTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) CompleteTask(ctx context.Context, in *matchingpb.CompleteTaskRequest, opts ...grpc.CallOption) (*matchingpb.CompleteTaskResponse, error) {
	return wrap(w, "CompleteTask", w.inner.CompleteTask, opts).do(ctx, in)
}

// CompleteTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) CompleteTasks(ctx context.Context, in *matchingpb.CompleteTasksRequest, opts ...grpc.CallOption) (*matchingpb.CompleteTasksResponse, error) {
	return wrap(w, "CompleteTasks", w.inner.CompleteTasks, opts).do(ctx, in)
}

// FailTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) FailTask(ctx context.Context, in *matchingpb.FailTaskRequest, opts ...grpc.CallOption) (*matchingpb.FailTaskResponse, error) {
	return wrap(w, "FailTask", w.inner.FailTask, opts).do(ctx, in)
}

// FailTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) FailTasks(ctx context.Context, in *matchingpb.FailTasksRequest, opts ...grpc.CallOption) (*matchingpb.FailTasksResponse, error) {
	return wrap(w, "FailTasks", w.inner.FailTasks, opts).do(ctx, in)
}

// ReleaseTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) ReleaseTask(ctx context.Context, in *matchingpb.ReleaseTaskRequest, opts ...grpc.CallOption) (*matchingpb.ReleaseTaskResponse, error) {
	return wrap(w, "ReleaseTask", w.inner.ReleaseTask, opts).do(ctx, in)
}

// ReleaseTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) ReleaseTasks(ctx context.Context, in *matchingpb.ReleaseTasksRequest, opts ...grpc.CallOption) (*matchingpb.ReleaseTasksResponse, error) {
	return wrap(w, "ReleaseTasks", w.inner.ReleaseTasks, opts).do(ctx, in)
}

// HeartbeatTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) HeartbeatTask(ctx context.Context, in *matchingpb.HeartbeatTaskRequest, opts ...grpc.CallOption) (*matchingpb.HeartbeatTaskResponse, error) {
	return wrap(w, "HeartbeatTask", w.inner.HeartbeatTask, opts).do(ctx, in)
}

// HeartbeatTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) HeartbeatTasks(ctx context.Context, in *matchingpb.HeartbeatTasksRequest, opts ...grpc.CallOption) (*matchingpb.HeartbeatTasksResponse, error) {
	return wrap(w, "HeartbeatTasks", w.inner.HeartbeatTasks, opts).do(ctx, in)
}

// GetTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) GetTask(ctx context.Context, in *matchingpb.GetTaskRequest, opts ...grpc.CallOption) (*matchingpb.GetTaskResponse, error) {
	return wrap(w, "GetTask", w.inner.GetTask, opts).do(ctx, in)
}

// CancelTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) CancelTask(ctx context.Context, in *matchingpb.CancelTaskRequest, opts ...grpc.CallOption) (*matchingpb.CancelTaskResponse, error) {
	return wrap(w, "CancelTask", w.inner.CancelTask, opts).do(ctx, in)
}

// DispatchTask implements matchingpb.MatchingServiceClient.
func (w *wrapped) DispatchTask(ctx context.Context, in *matchingpb.DispatchTaskRequest, opts ...grpc.CallOption) (*matchingpb.DispatchTaskResponse, error) {
	return wrap(w, "DispatchTask", w.inner.DispatchTask, opts).do(ctx, in)
}

// RespondDispatch implements matchingpb.MatchingServiceClient.
func (w *wrapped) RespondDispatch(ctx context.Context, in *matchingpb.RespondDispatchRequest, opts ...grpc.CallOption) (*matchingpb.RespondDispatchResponse, error) {
	return wrap(w, "RespondDispatch", w.inner.RespondDispatch, opts).do(ctx, in)
}

// CancelPoll implements matchingpb.MatchingServiceClient.
func (w *wrapped) CancelPoll(ctx context.Context, in *matchingpb.CancelPollRequest, opts ...grpc.CallOption) (*matchingpb.CancelPollResponse, error) {
	return wrap(w, "CancelPoll", w.inner.CancelPoll, opts).do(ctx, in)
}

// ShutdownWorker implements matchingpb.MatchingServiceClient.
func (w *wrapped) ShutdownWorker(ctx context.Context, in *matchingpb.ShutdownWorkerRequest, opts ...grpc.CallOption) (*matchingpb.ShutdownWorkerResponse, error) {
	return wrap(w, "ShutdownWorker", w.inner.ShutdownWorker, opts).do(ctx, in)
}

// DescribeTaskQueue implements matchingpb.MatchingServiceClient.
func (w *wrapped) DescribeTaskQueue(ctx context.Context, in *matchingpb.DescribeTaskQueueRequest, opts ...grpc.CallOption) (*matchingpb.DescribeTaskQueueResponse, error) {
	return wrap(w, "DescribeTaskQueue", w.inner.DescribeTaskQueue, opts).do(ctx, in)
}

// DescribePartition implements matchingpb.MatchingServiceClient.
func (w *wrapped) DescribePartition(ctx context.Context, in *matchingpb.DescribePartitionRequest, opts ...grpc.CallOption) (*matchingpb.DescribePartitionResponse, error) {
	return wrap(w, "DescribePartition", w.inner.DescribePartition, opts).do(ctx, in)
}

// ListTaskQueues implements matchingpb.MatchingServiceClient.
func (w *wrapped) ListTaskQueues(ctx context.Context, in *matchingpb.ListTaskQueuesRequest, opts ...grpc.CallOption) (*matchingpb.ListTaskQueuesResponse, error) {
	return wrap(w, "ListTaskQueues", w.inner.ListTaskQueues, opts).do(ctx, in)
}

// UpdateTaskQueue implements matchingpb.MatchingServiceClient.
func (w *wrapped) UpdateTaskQueue(ctx context.Context, in *matchingpb.UpdateTaskQueueRequest, opts ...grpc.CallOption) (*matchingpb.UpdateTaskQueueResponse, error) {
	return wrap(w, "UpdateTaskQueue", w.inner.UpdateTaskQueue, opts).do(ctx, in)
}

// DeleteTaskQueue implements matchingpb.MatchingServiceClient.
func (w *wrapped) DeleteTaskQueue(ctx context.Context, in *matchingpb.DeleteTaskQueueRequest, opts ...grpc.CallOption) (*matchingpb.DeleteTaskQueueResponse, error) {
	return wrap(w, "DeleteTaskQueue", w.inner.DeleteTaskQueue, opts).do(ctx, in)
}

// PeekTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) PeekTasks(ctx context.Context, in *matchingpb.PeekTasksRequest, opts ...grpc.CallOption) (*matchingpb.PeekTasksResponse, error) {
	return wrap(w, "PeekTasks", w.inner.PeekTasks, opts).do(ctx, in)
}

// PurgeTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) PurgeTasks(ctx context.Context, in *matchingpb.PurgeTasksRequest, opts ...grpc.CallOption) (*matchingpb.PurgeTasksResponse, error) {
	return wrap(w, "PurgeTasks", w.inner.PurgeTasks, opts).do(ctx, in)
}

// ListDeadTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) ListDeadTasks(ctx context.Context, in *matchingpb.ListDeadTasksRequest, opts ...grpc.CallOption) (*matchingpb.ListDeadTasksResponse, error) {
	return wrap(w, "ListDeadTasks", w.inner.ListDeadTasks, opts).do(ctx, in)
}

// RedriveTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) RedriveTasks(ctx context.Context, in *matchingpb.RedriveTasksRequest, opts ...grpc.CallOption) (*matchingpb.RedriveTasksResponse, error) {
	return wrap(w, "RedriveTasks", w.inner.RedriveTasks, opts).do(ctx, in)
}

// LoadPartition implements matchingpb.MatchingServiceClient.
func (w *wrapped) LoadPartition(ctx context.Context, in *matchingpb.LoadPartitionRequest, opts ...grpc.CallOption) (*matchingpb.LoadPartitionResponse, error) {
	return wrap(w, "LoadPartition", w.inner.LoadPartition, opts).do(ctx, in)
}

// UnloadPartition implements matchingpb.MatchingServiceClient.
func (w *wrapped) UnloadPartition(ctx context.Context, in *matchingpb.UnloadPartitionRequest, opts ...grpc.CallOption) (*matchingpb.UnloadPartitionResponse, error) {
	return wrap(w, "UnloadPartition", w.inner.UnloadPartition, opts).do(ctx, in)
}

// ImportTasks implements matchingpb.MatchingServiceClient.
func (w *wrapped) ImportTasks(ctx context.Context, in *matchingpb.ImportTasksRequest, opts ...grpc.CallOption) (*matchingpb.ImportTasksResponse, error) {
	return wrap(w, "ImportTasks", w.inner.ImportTasks, opts).do(ctx, in)
}

// DescribeNode implements matchingpb.MatchingServiceClient.
func (w *wrapped) DescribeNode(ctx context.Context, in *matchingpb.DescribeNodeRequest, opts ...grpc.CallOption) (*matchingpb.DescribeNodeResponse, error) {
	return wrap(w, "DescribeNode", w.inner.DescribeNode, opts).do(ctx, in)
}

// GetSettings implements matchingpb.MatchingServiceClient.
func (w *wrapped) GetSettings(ctx context.Context, in *matchingpb.GetSettingsRequest, opts ...grpc.CallOption) (*matchingpb.GetSettingsResponse, error) {
	return wrap(w, "GetSettings", w.inner.GetSettings, opts).do(ctx, in)
}

// ExplainSetting implements matchingpb.MatchingServiceClient.
func (w *wrapped) ExplainSetting(ctx context.Context, in *matchingpb.ExplainSettingRequest, opts ...grpc.CallOption) (*matchingpb.ExplainSettingResponse, error) {
	return wrap(w, "ExplainSetting", w.inner.ExplainSetting, opts).do(ctx, in)
}

// HandOver implements matchingpb.MatchingServiceClient.
func (w *wrapped) HandOver(ctx context.Context, in *matchingpb.HandOverRequest, opts ...grpc.CallOption) (*matchingpb.HandOverResponse, error) {
	return wrap(w, "HandOver", w.inner.HandOver, opts).do(ctx, in)
}
