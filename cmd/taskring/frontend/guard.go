package frontend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// guard stands before the routing handler: it refuses what is for nodes, hides
// how partitions lie on nodes, and counts calls.
type guard struct {
	calls metric.Int64Counter
	polls *polls
}

func newGuard(meter metric.Meter, p *polls) (*guard, error) {
	calls, err := meter.Int64Counter("taskring.frontend.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Calls answered by the frontend, by method and gRPC code."))
	if err != nil {
		return nil, fmt.Errorf("taskring.frontend.calls: %w", err)
	}
	return &guard{calls: calls, polls: p}, nil
}

// unary is the interceptor of all calls.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	reply, err := g.serve(ctx, req, next)
	err = wire.ToStatus(public(wire.FromStatus(err)))
	g.calls.Add(ctx, 1, metric.WithAttributes(
		attribute.String("method", info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]),
		attribute.String("code", status.Code(err).String()),
	))
	if err != nil {
		return nil, err
	}
	hide(reply)
	return reply, nil
}

func (g *guard) serve(ctx context.Context, req any, next grpc.UnaryHandler) (any, error) {
	if err := wholeQueues(req); err != nil {
		return nil, err
	}
	if poll, ok := req.(*matchingpb.PollTaskRequest); ok {
		return g.polls.serve(ctx, poll, next)
	}
	return next(ctx, req)
}

// about is a request that names a task queue or a partition.
type about interface {
	// GetTaskQueue returns what it names.
	GetTaskQueue() *matchingpb.TaskQueuePartition
}

// wholeQueues refuses a request that picks a partition (F1).
func wholeQueues(req any) error {
	var f wire.Fields
	switch req := req.(type) {
	case *matchingpb.DescribePartitionRequest, *matchingpb.LoadPartitionRequest, *matchingpb.UnloadPartitionRequest:
	case *matchingpb.AddTasksRequest:
		for i, b := range req.GetBatches() {
			wholeQueue(&f, fmt.Sprintf("batches[%d].task_queue", i), b.GetTaskQueue())
		}
	case about:
		wholeQueue(&f, "task_queue", req.GetTaskQueue())
	}
	return f.Err()
}

func wholeQueue(f *wire.Fields, field string, q *matchingpb.TaskQueuePartition) {
	if q != nil && q.Partition != nil {
		f.Addf(field+".partition", "is %d, leave it unset: this is a frontend, which picks partitions itself; "+
			"a client that routes has to be given the addresses of the nodes", q.GetPartition())
	}
}

// public turns what only those who route can use into "not now" (F2).
func public(err error) error {
	if e, ok := errors.AsType[*task.Error](err); ok && isRouting(e.Reason) {
		return task.Errorf(task.NotReady, "the partition is moving: %s", e.Message)
	}
	return err
}

func isRouting(reason task.Reason) bool { return reason == task.NotOwner || reason == task.StaleCounts }

// hide is public for what a reply holds: errors of items, and a poll whose
// partition moved: its caller polls the queue, and does so again.
func hide(reply any) {
	switch reply := reply.(type) {
	case *matchingpb.PollTaskResponse:
		if reply.GetEmptyReason() == matchingpb.EmptyReason_EMPTY_REASON_MOVED {
			reply.EmptyReason, reply.MovedTo = matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT, nil
		}
	case proto.Message:
		eachMessage(reply.ProtoReflect(), func(result protoreflect.Message) {
			hideItem(result)
			eachMessage(result, hideItem)
		})
	}
}

// eachMessage calls visit for each message that a field of m holds.
func eachMessage(m protoreflect.Message, visit func(protoreflect.Message)) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				visit(value.List().Get(i).Message())
			}
		default:
			visit(value.Message())
		}
		return true
	})
}

// hideItem makes the error of an item public; other messages stay as they are.
func hideItem(m protoreflect.Message) {
	item, ok := m.Interface().(*matchingpb.ItemError)
	if !ok {
		return
	}
	if err := wire.ErrorOfItem(item); isRouting(task.ReasonOf(err)) {
		told := wire.ItemErrorOf(int(item.GetIndex()), public(err))
		proto.Reset(item)
		proto.Merge(item, told)
	}
}
