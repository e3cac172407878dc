package frontend

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

var orders = partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}

// ask passes a request through a guard to a handler that answers with reply and err.
func ask(t *testing.T, req, reply any, err error) (any, error) {
	t.Helper()
	g, failed := newGuard(noop.NewMeterProvider().Meter(""), &polls{})
	if failed != nil {
		t.Fatal(failed)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/taskring.matching.v1.MatchingService/Method"}
	return g.unary(t.Context(), req, info, func(context.Context, any) (any, error) { return reply, err })
}

// TestPartitionsAreRefused is F1.
func TestPartitionsAreRefused(t *testing.T) {
	root, whole := wire.EncodePartition(orders.Partition(0)), wire.EncodeQueue(orders)
	for _, c := range []struct {
		req     proto.Message
		refused string
	}{
		{&matchingpb.AddTaskRequest{TaskQueue: whole}, ""},
		{&matchingpb.AddTaskRequest{TaskQueue: root}, "task_queue.partition"},
		{&matchingpb.AddTaskRequest{}, ""}, // the handler says what is missing
		{&matchingpb.PollTaskRequest{TaskQueue: root}, "task_queue.partition"},
		{&matchingpb.GetTaskRequest{TaskQueue: root}, "task_queue.partition"},
		{&matchingpb.PeekTasksRequest{TaskQueue: root}, "task_queue.partition"},
		{&matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{{TaskQueue: whole}, {TaskQueue: root}}}, "batches[1].task_queue.partition"},
		{&matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{{TaskQueue: whole}}}, ""},
		{&matchingpb.DescribePartitionRequest{TaskQueue: root}, ""},
		{&matchingpb.LoadPartitionRequest{TaskQueue: root}, ""},
		{&matchingpb.UnloadPartitionRequest{TaskQueue: root}, ""},
		{&matchingpb.CompleteTasksRequest{Batches: []*matchingpb.GrantRefs{{Partition: root}}}, ""},
		{&matchingpb.CompleteTaskRequest{Token: []byte("x")}, ""},
	} {
		_, err := ask(t, c.req, &matchingpb.AddTaskResponse{}, nil)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%T %v: %v", c.req, c.req, err)
		case c.refused != "" && (status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%T %v: %v, want a refusal of %s", c.req, c.req, err, c.refused)
		}
	}
}

// moving are the errors that only those who route can use.
func moving() []*task.Error {
	return []*task.Error{
		{Reason: task.NotOwner, Message: "gone", Owner: &task.Ownership{Holder: task.Holder{Node: "n2", Address: "10.0.0.2:1"}, Epoch: 7}},
		{Reason: task.StaleCounts, Message: "too far off", Stale: &task.Stale{Why: task.CountsTooDifferent, Counts: partition.Counts{Read: 4, Write: 4}}},
	}
}

// TestRoutingErrorsAreHidden is F2, for whole calls.
func TestRoutingErrorsAreHidden(t *testing.T) {
	for _, e := range moving() {
		_, err := ask(t, &matchingpb.AddTaskRequest{}, nil, wire.ToStatus(e))
		if got := wire.FromStatus(err); task.ReasonOf(got) != task.NotReady || status.Code(err) != codes.Unavailable || !strings.Contains(got.Error(), e.Message) {
			t.Errorf("%v comes through as %v", e, err)
		}
	}
	for _, reason := range []task.Reason{task.Invalid, task.NotFound, task.LeaseLost, task.Quota, task.OutcomeUnknown} {
		_, err := ask(t, &matchingpb.AddTaskRequest{}, nil, wire.ToStatus(task.Errorf(reason, "as it is")))
		if got := task.ReasonOf(wire.FromStatus(err)); got != reason {
			t.Errorf("%v comes through as %v", reason, got)
		}
	}
	_, err := ask(t, &matchingpb.CancelTaskRequest{}, nil, status.Error(codes.Unimplemented, "method CancelTask not implemented"))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is not served comes through as %v", err)
	}
}

// TestRoutingErrorsOfItemsAreHidden is F2 for every reply with errors of items, as
// the generated code has them.
func TestRoutingErrorsOfItemsAreHidden(t *testing.T) {
	errs := func() []*matchingpb.ItemError {
		return []*matchingpb.ItemError{
			wire.ItemErrorOf(3, moving()[0]), wire.ItemErrorOf(5, moving()[1]), wire.ItemErrorOf(7, task.Errorf(task.LeaseLost, "lost")),
		}
	}
	whole := func() *matchingpb.ItemError { return wire.ItemErrorOf(0, moving()[1]) }
	for _, reply := range []proto.Message{
		&matchingpb.AddTasksResponse{Results: []*matchingpb.AddResult{{Errors: errs()}, {Error: whole()}}},
		&matchingpb.CompleteTasksResponse{Results: []*matchingpb.CompleteResult{{Errors: errs()}}, Tokens: &matchingpb.CompleteResult{Errors: errs(), Error: whole()}},
		&matchingpb.FailTasksResponse{Results: []*matchingpb.FailResult{{Error: whole()}}, ByToken: &matchingpb.FailResult{Errors: errs()}},
		&matchingpb.ReleaseTasksResponse{Results: []*matchingpb.ReleaseResult{{Error: whole()}}, Tokens: &matchingpb.ReleaseResult{Errors: errs()}},
		&matchingpb.HeartbeatTasksResponse{Results: []*matchingpb.HeartbeatResult{{Error: whole()}}, Tokens: &matchingpb.HeartbeatResult{Errors: errs()}},
		&matchingpb.DescribeTaskQueueResponse{Missing: errs()},
	} {
		out, err := ask(t, &matchingpb.AddTasksRequest{}, reply, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := textOf(out.(proto.Message))
		for _, word := range []string{"NOT_OWNER", "STALE_PARTITION_COUNTS", "10.0.0.2"} {
			if strings.Contains(got, word) {
				t.Errorf("%T passes %s on: %s", reply, word, got)
			}
		}
		for word, times := range map[string]int{"NOT_READY": 2, "LEASE_LOST": 1} {
			if strings.Count(got, word) < times {
				t.Errorf("%T lacks %s: %s", reply, word, got)
			}
		}
	}
}

// textOf returns all that a message holds, for people.
func textOf(m proto.Message) string {
	return m.ProtoReflect().Interface().(interface{ String() string }).String()
}

// TestMovedPollsStay: where its partition went is not the caller's business.
func TestMovedPollsStay(t *testing.T) {
	out, err := ask(t, &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(orders)}, &matchingpb.PollTaskResponse{
		EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_MOVED, MovedTo: wire.EncodeOwnership(*moving()[0].Owner),
	}, nil)
	reply := out.(*matchingpb.PollTaskResponse)
	if err != nil || reply.GetMovedTo() != nil || reply.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT {
		t.Errorf("%v, %v", reply, err)
	}
}
