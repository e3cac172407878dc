package server

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// reason returns the reason of a call's error, "" for none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return task.ReasonOf(wire.FromStatus(err)).String()
}

func counts(p *parts, read, write int32) {
	p.engine.PerQueue = func(partition.Queue) engine.PerQueue {
		return engine.PerQueue{Counts: partition.Counts{Read: read, Write: write}}
	}
}

// TestBatches drives tasks of two partitions through every batched method, in
// columns and by tokens.
func TestBatches(t *testing.T) {
	n := start(t, func(p *parts) { counts(p, 2, 2) })
	defer n.stop()
	ctx := t.Context()
	for number := range int32(2) { // so that no batch is answered NOT_READY
		if _, err := n.LoadPartition(ctx, &matchingpb.LoadPartitionRequest{TaskQueue: part("q", number)}); err != nil {
			t.Fatal(err)
		}
	}
	payloads := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}
	added, err := n.AddTasks(ctx, &matchingpb.AddTasksRequest{Seq: 7, Batches: []*matchingpb.AddBatch{
		{TaskQueue: part("q", 0), Payloads: payloads, Exceptions: []*matchingpb.ItemOptions{{Index: 2, Options: &matchingpb.TaskOptions{Priority: 9}}}},
		{TaskQueue: part("q", 1), Payloads: payloads},
		{TaskQueue: part("q", 5), Payloads: payloads},
	}})
	if err != nil || added.GetSeq() != 7 || len(added.GetResults()) != 3 {
		t.Fatalf("AddTasks = %v, %v", added, err)
	}
	first, second, third := added.GetResults()[0], added.GetResults()[1], added.GetResults()[2]
	if len(first.GetErrors()) != 1 || first.GetErrors()[0].GetIndex() != 2 || first.GetErrors()[0].GetReason() != "INVALID" || first.GetIds()[2] != 0 || first.GetIds()[3] == 0 {
		t.Errorf("a bad item: %v", first)
	}
	if len(second.GetErrors()) != 0 || slices.Contains(second.GetIds(), 0) || second.GetPartition() != 1 {
		t.Errorf("a good batch: %v", second)
	}
	if third.GetError().GetReason() != "STALE_PARTITION_COUNTS" || third.GetCounts().GetRead() != 2 {
		t.Errorf("a partition that does not exist: %v", third)
	}

	columns := n.grants(part("q", 1), 4)
	if got := columns.GetIds(); !slices.Equal(got, second.GetIds()) {
		t.Fatalf("granted %v, want %v in order", got, second.GetIds())
	}
	beat, err := n.HeartbeatTasks(ctx, &matchingpb.HeartbeatTasksRequest{Batches: []*matchingpb.GrantRefs{refs(columns, 0, 1, 2, 3)}})
	if err != nil || beat.GetResults()[0].GetLeaseDuration().AsDuration() != 30*time.Second || len(beat.GetResults()[0].GetErrors()) != 0 {
		t.Errorf("HeartbeatTasks = %v, %v", beat, err)
	}
	failed, err := n.FailTasks(ctx, &matchingpb.FailTasksRequest{Batches: []*matchingpb.FailBatch{{
		Grants: refs(columns, 0, 1), Common: &matchingpb.Failure{Message: "again", RetryAfter: durationpb.New(time.Hour)},
		Exceptions: []*matchingpb.ItemFailure{{Index: 1, Failure: &matchingpb.Failure{Message: "never", NonRetryable: true}}},
	}}})
	if err != nil || len(failed.GetResults()[0].GetErrors()) != 0 || !slices.Equal(failed.GetResults()[0].GetDead(), []uint32{1}) ||
		failed.GetResults()[0].GetNextAttemptUs()[0] == 0 || failed.GetResults()[0].GetNextAttemptUs()[1] != 0 {
		t.Errorf("FailTasks = %v, %v", failed, err)
	}
	released, err := n.ReleaseTasks(ctx, &matchingpb.ReleaseTasksRequest{Batches: []*matchingpb.GrantRefs{refs(columns, 2)}})
	if err != nil || len(released.GetResults()[0].GetErrors()) != 0 {
		t.Errorf("ReleaseTasks = %v, %v", released, err)
	}
	n.completeMixed(columns)
}

// completeMixed completes one grant in columns, one that was released, one that
// is repeated, and by tokens those of another partition and garbage.
func (n *node) completeMixed(columns *matchingpb.GrantBatch) {
	n.t.Helper()
	got, err := n.PollTask(n.t.Context(), &matchingpb.PollTaskRequest{TaskQueue: part("q", 0), MaxTasks: 3})
	if err != nil || len(got.GetTasks()) != 3 {
		n.t.Fatalf("PollTask = %v, %v", got, err)
	}
	done, err := n.CompleteTasks(n.t.Context(), &matchingpb.CompleteTasksRequest{
		Seq:     9,
		Batches: []*matchingpb.GrantRefs{refs(columns, 3), refs(columns, 2)},
		Tokens:  [][]byte{got.GetTasks()[0].GetToken(), []byte("garbage"), got.GetTasks()[1].GetToken()},
	})
	if err != nil || done.GetSeq() != 9 {
		n.t.Fatalf("CompleteTasks = %v, %v", done, err)
	}
	for i, r := range done.GetResults() {
		if r.GetError() != nil || len(r.GetErrors()) != 0 {
			n.t.Errorf("batch %d: %v", i, r)
		}
	}
	if errs := done.GetTokens().GetErrors(); len(errs) != 1 || errs[0].GetIndex() != 1 || errs[0].GetReason() != "INVALID" {
		n.t.Errorf("tokens: %v, want the second one refused", done.GetTokens())
	}
	again, err := n.CompleteTasks(n.t.Context(), &matchingpb.CompleteTasksRequest{Batches: []*matchingpb.GrantRefs{refs(columns, 3)}})
	if err != nil || !slices.Equal(again.GetResults()[0].GetAlreadyFinished(), []uint32{0}) {
		n.t.Errorf("completed again: %v, %v, want already finished", again, err)
	}
}

// grants polls for exactly so many tasks, in columns.
func (n *node) grants(p *matchingpb.TaskQueuePartition, most int32) *matchingpb.GrantBatch {
	n.t.Helper()
	got, err := n.PollTask(n.t.Context(), &matchingpb.PollTaskRequest{TaskQueue: p, MaxTasks: most, Format: matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS})
	if err != nil || len(got.GetBatches()) != 1 || len(got.GetBatches()[0].GetIds()) != int(most) {
		n.t.Fatalf("PollTask = %v, %v, want %d tasks", got, err, most)
	}
	return got.GetBatches()[0]
}

// refs picks grants of a batch.
func refs(b *matchingpb.GrantBatch, items ...int) *matchingpb.GrantRefs {
	r := &matchingpb.GrantRefs{StoreId: b.GetStoreId(), Partition: b.GetPartition(), Epoch: b.GetEpoch()}
	for _, i := range items {
		r.Ids, r.Deliveries = append(r.Ids, b.GetIds()[i]), append(r.Deliveries, b.GetDeliveries()[i])
	}
	return r
}

func TestSingleCalls(t *testing.T) {
	n := start(t)
	defer n.stop()
	id := n.add("q", "x")
	token := n.poll("q", 1).GetTasks()[0].GetToken()
	if got, err := n.HeartbeatTask(t.Context(), &matchingpb.HeartbeatTaskRequest{Token: token}); err != nil || got.GetLeaseDuration().AsDuration() != 30*time.Second {
		t.Errorf("HeartbeatTask = %v, %v", got, err)
	}
	if _, err := n.ReleaseTask(t.Context(), &matchingpb.ReleaseTaskRequest{Token: token}); err != nil {
		t.Errorf("ReleaseTask: %v", err)
	}
	if _, err := n.HeartbeatTask(t.Context(), &matchingpb.HeartbeatTaskRequest{Token: token}); reason(err) != "LEASE_LOST" {
		t.Errorf("heartbeat after release: %v, want LEASE_LOST", err)
	}
	second := n.poll("q", 1).GetTasks()[0]
	if second.GetDelivery() != 2 || second.GetAttempt() != 1 {
		t.Errorf("delivery %d, attempt %d; want 2 and 1: a release counts no attempt", second.GetDelivery(), second.GetAttempt())
	}
	failed, err := n.FailTask(t.Context(), &matchingpb.FailTaskRequest{Token: second.GetToken(), Failure: &matchingpb.Failure{Message: "broken", NonRetryable: true}})
	if err != nil || !failed.GetDead() {
		t.Errorf("FailTask = %v, %v, want dead", failed, err)
	}
	got, err := n.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: root("q"), Id: id})
	if err != nil || got.GetTask().GetState() != matchingpb.TaskState_TASK_STATE_DEAD || !strings.Contains(got.GetTask().GetDeadReason(), "broken") ||
		string(got.GetTask().GetPayload()) != "x" || got.GetTask().GetDeliveries() != 2 {
		t.Errorf("GetTask = %v, %v", got, err)
	}
	if _, err := n.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: second.GetToken()}); err != nil {
		t.Errorf("completing the dead task: %v", err)
	}
	if _, err := n.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: root("q"), Id: id}); reason(err) != "NOT_FOUND" {
		t.Errorf("GetTask after completion: %v, want NOT_FOUND", err)
	}
}

// TestRefusals has one row per way in which a call is refused before it reaches
// a partition.
func TestRefusals(t *testing.T) {
	var broken error
	n := start(t, func(p *parts) {
		p.handler.Healthy = func() error { return broken }
		p.handler.Settings = func() Settings { return Settings{RequestBytes: 3 << 20} }
	})
	defer n.stop()
	other := start(t)
	other.add("q", "x")
	foreign := other.poll("q", 1).GetTasks()[0].GetToken()
	other.stop()

	ctx := t.Context()
	add := func(r *matchingpb.AddTaskRequest) error { _, err := n.AddTask(ctx, r); return err }
	complete := func(token []byte) error {
		_, err := n.CompleteTask(ctx, &matchingpb.CompleteTaskRequest{Token: token})
		return err
	}
	unset := &matchingpb.TaskQueuePartition{Namespace: "default", Name: "q"}
	dispatch := root("q")
	dispatch.Type = matchingpb.TaskType_TASK_TYPE_DISPATCH
	for name, tc := range map[string]struct {
		err    error
		reason string
		says   []string
	}{
		"payload over the limit": {add(&matchingpb.AddTaskRequest{TaskQueue: root("q"), Payload: make([]byte, 1<<20+1)}), "INVALID", []string{"1048577", "1048576", "matching.maxPayloadBytes"}},
		"request over the limit": {add(&matchingpb.AddTaskRequest{TaskQueue: root("q"), Payload: make([]byte, 4<<20)}), "INVALID", []string{"4194", "3145728", "matching.maxRequestBytes"}},
		"every bad field":        {add(&matchingpb.AddTaskRequest{TaskQueue: &matchingpb.TaskQueuePartition{}, Options: &matchingpb.TaskOptions{Priority: 6}}), "INVALID", []string{"namespace", "name", "priority"}},
		"nobody routes":          {add(&matchingpb.AddTaskRequest{TaskQueue: unset}), "INVALID", []string{"partition"}},
		"a request id":           {add(&matchingpb.AddTaskRequest{TaskQueue: root("q"), Options: &matchingpb.TaskOptions{RequestId: "r"}}), "UNIMPLEMENTED", []string{"options.request_id"}},
		"adding to dispatch":     {add(&matchingpb.AddTaskRequest{TaskQueue: dispatch}), "INVALID", []string{"task_queue.type", "DispatchTask"}},
		"polling dispatch": {func() error {
			_, err := n.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: dispatch})
			return err
		}(), "INVALID", []string{"task_queue.type", "DispatchTask"}},
		"garbage for a token": {complete([]byte("garbage")), "INVALID", []string{"token"}},
		"a token of another":  {complete(foreign), "INVALID", []string{"another store"}},
		"no such partition":   {add(&matchingpb.AddTaskRequest{TaskQueue: part("q", 3)}), "STALE_PARTITION_COUNTS", []string{"0 to 0"}},
		"a later version's": {func() error {
			_, err := n.CancelTask(ctx, &matchingpb.CancelTaskRequest{TaskQueue: root("q"), Id: 1})
			return err
		}(), "UNIMPLEMENTED", []string{"CancelTask is not built yet"}},
		"a later version's stream": {func() error {
			stream, err := n.StreamAdd(ctx)
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}(), "UNIMPLEMENTED", []string{"StreamAdd is not built yet"}},
		"a store that takes no writes": {func() error {
			broken = errors.New("the disk hangs")
			defer func() { broken = nil }()
			return add(&matchingpb.AddTaskRequest{TaskQueue: root("q")})
		}(), "STORE_UNAVAILABLE", []string{"the disk hangs"}},
	} {
		if got := reason(tc.err); got != tc.reason || wire.Guessed(wire.FromStatus(tc.err)) {
			t.Errorf("%s: %v, want %s from the server", name, tc.err, tc.reason)
			continue
		}
		for _, want := range tc.says {
			if !strings.Contains(tc.err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, tc.err, want)
			}
		}
	}
}

// TestCountsTravel: each reply carries the counts in force, also an error, and a
// caller with counts that are far off is told.
func TestCountsTravel(t *testing.T) {
	n := start(t, func(p *parts) { counts(p, 4, 4) })
	defer n.stop()
	call := func(read, write int32, number int32) (wire.PartitionCounts, error) {
		trailer := metadata.MD{}
		sent := wire.PartitionCounts{}
		sent.Read, sent.Write = read, write
		_, err := n.AddTask(sent.AppendToOutgoing(t.Context()), &matchingpb.AddTaskRequest{TaskQueue: part("q", number)}, grpc.Trailer(&trailer))
		got, parseErr := wire.ParsePartitionCountsFromTrailer(trailer)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		return got, err
	}
	for _, tc := range []struct {
		read, write, number int32
		reason              string
	}{
		{0, 0, 0, ""}, {4, 4, 3, ""}, {5, 5, 0, ""}, {6, 6, 0, ""}, {3, 3, 0, ""},
		{7, 7, 0, "STALE_PARTITION_COUNTS"}, {2, 2, 0, "STALE_PARTITION_COUNTS"}, {1, 1, 0, "STALE_PARTITION_COUNTS"},
		{4, 4, 4, "STALE_PARTITION_COUNTS"}, {math.MaxInt32, 1<<30 + 5, 0, "STALE_PARTITION_COUNTS"},
	} {
		got, err := call(tc.read, tc.write, tc.number)
		if reason(err) != tc.reason || got.Read != 4 || got.Write != 4 {
			t.Errorf("a caller with %d/%d at partition %d: %v, trailer %+v", tc.read, tc.write, tc.number, err, got)
		}
	}
}

// router answers what names no partition, and counts.
type router struct {
	matchingpb.UnimplementedMatchingServiceServer
	batches int
	fail    error
}

func (r *router) AddTask(context.Context, *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	return &matchingpb.AddTaskResponse{Id: 77}, r.fail
}

func (r *router) AddTasks(_ context.Context, q *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	r.batches += len(q.GetBatches())
	out := &matchingpb.AddTasksResponse{}
	for range q.GetBatches() {
		out.Results = append(out.Results, &matchingpb.AddResult{Ids: []uint64{78}})
	}
	return out, r.fail
}

func TestUnrouted(t *testing.T) {
	r := &router{}
	n := start(t, func(p *parts) { p.handler.Unrouted = r })
	defer n.stop()
	unset := &matchingpb.TaskQueuePartition{Namespace: "default", Name: "q"}
	if got, err := n.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: unset}); err != nil || got.GetId() != 77 {
		t.Errorf("AddTask = %v, %v, want the router's answer", got, err)
	}
	n.add("q", "loaded by now")
	mixed := &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{
		{TaskQueue: unset, Payloads: [][]byte{nil}}, {TaskQueue: root("q"), Payloads: [][]byte{nil}}, {TaskQueue: unset, Payloads: [][]byte{nil}},
	}}
	got, err := n.AddTasks(t.Context(), mixed)
	if err != nil || r.batches != 2 || got.GetResults()[0].GetIds()[0] != 78 || got.GetResults()[2].GetIds()[0] != 78 ||
		got.GetResults()[1].GetIds()[0] < 1<<task.SeqBits {
		t.Errorf("AddTasks = %v, %v; the router saw %d batches, want 2", got, err, r.batches)
	}
	r.fail = task.Errorf(task.StoreUnavailable, "elsewhere")
	got, err = n.AddTasks(t.Context(), mixed)
	if err != nil || got.GetResults()[0].GetError().GetReason() != "STORE_UNAVAILABLE" || got.GetResults()[1].GetError() != nil {
		t.Errorf("AddTasks with a router that fails = %v, %v", got, err)
	}
	if _, err := n.DescribeTaskQueue(t.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: unset}); reason(err) != "UNIMPLEMENTED" {
		t.Errorf("DescribeTaskQueue: %v, want what the router says", err)
	}
}

// TestNotReady: the items of a batch do not wait for a partition that loads,
// while a single call and a lone batch do.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(p *parts) { counts(p, 3, 3) })
		defer n.stop()
		n.add("q", "loads partition 0")
		batch := func(number int32) *matchingpb.AddBatch {
			return &matchingpb.AddBatch{TaskQueue: part("q", number), Payloads: [][]byte{[]byte("x")}}
		}
		got, err := n.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{batch(0), batch(1)}})
		if err != nil || got.GetResults()[0].GetError() != nil || got.GetResults()[1].GetError().GetReason() != "NOT_READY" {
			t.Errorf("two batches: %v, %v; want the second NOT_READY", got, err)
		}
		got, err = n.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{batch(2)}})
		if err != nil || got.GetResults()[0].GetError() != nil {
			t.Errorf("a lone batch: %v, %v; want it to wait", got, err)
		}
	})
}
