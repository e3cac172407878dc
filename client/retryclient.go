package client

import (
	"context"
	"math/rand/v2"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// NewRetryableClient returns a client that makes failed calls again by the rules
// of [Client], for clients that do not do so themselves, such as the generated one
// of a connection to a frontend. It neither routes nor picks partitions: what
// another node or other counts would have to answer comes back as the error that
// it is. Streams are not retried.
func NewRetryableClient(of matchingpb.MatchingServiceClient) matchingpb.MatchingServiceClient {
	budget, ratio := &retry.Budget{}, SettingsIn(nil).RetryBudget
	return &wrapped{of, func(ctx context.Context, method string, request any, call try) error {
		budget.Deposit(ratio)
		var tries retry.Tries
		kind := kindOf(method, request)
		for {
			var trailer metadata.MD
			err := call(ctx, grpc.Trailer(&trailer))
			if err == nil {
				return nil
			}
			f := failureOf(pushedBack(wire.FromStatus(err), trailer))
			d := retry.Decide(kind, f, &tries, rand.Float64)
			if d.Action == retry.Stop || d.Action == retry.Recount || d.Action == retry.Reroute ||
				ctx.Err() != nil || (retry.Budgeted(f) && !budget.Withdraw()) || pause(ctx, d.After, err) != nil {
				return err
			}
		}
	}}
}

// kindOf tells what a repetition of a call may do.
func kindOf(method string, request any) retry.Kind {
	switch method {
	case "PollTask":
		return retry.Poll
	case "AddTask":
		if in, ok := request.(*matchingpb.AddTaskRequest); ok && in.GetOptions().GetRequestId() != "" {
			return retry.Repeatable
		}
		return retry.Add
	case "CompleteTask", "CompleteTasks", "HeartbeatTask", "HeartbeatTasks", "CancelTask", "CancelPoll",
		"GetTask", "DescribeTaskQueue", "DescribePartition", "ListTaskQueues", "PeekTasks", "ListDeadTasks",
		"LoadPartition", "UnloadPartition", "DescribeNode", "GetSettings", "ExplainSetting":
		return retry.Repeatable
	default:
		return retry.Once
	}
}
