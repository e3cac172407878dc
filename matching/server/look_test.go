package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// looks asks about a partition in every way, and returns the errors by method.
func (n *node) looks(p *matchingpb.TaskQueuePartition) map[string]error {
	n.t.Helper()
	errs := map[string]error{}
	for _, only := range []bool{false, true} {
		_, errs[fmt.Sprint("DescribePartition, only if loaded: ", only)] = n.DescribePartition(n.t.Context(),
			&matchingpb.DescribePartitionRequest{TaskQueue: p, OnlyIfLoaded: only})
	}
	_, errs["PeekTasks"] = n.PeekTasks(n.t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: p})
	_, errs["GetTask"] = n.GetTask(n.t.Context(), &matchingpb.GetTaskRequest{TaskQueue: p, Id: 1<<40 + 1})
	return errs
}

// TestLookingAtNothing: what was mistyped is not found, by its name, and leaves no
// trace: nothing is loaded and nothing is written.
func TestLookingAtNothing(t *testing.T) {
	n := start(t, func(p *parts) { counts(p, 2, 2) })
	defer n.stop()
	n.add("mail", "x")
	for _, tc := range []struct {
		at   *matchingpb.TaskQueuePartition
		says string
	}{
		{root("mial"), `no task queue "mial" of type activity in namespace "default"`},
		{part("mial", 9), `no task queue "mial"`},
		{part("mail", 2), `"mail" of type activity in namespace "default" has partitions 0 to 1`},
	} {
		for method, err := range n.looks(tc.at) {
			if reason(err) != "NOT_FOUND" || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s of %v: %v, want NOT_FOUND with %q", method, tc.at, err, tc.says)
			}
		}
	}
	if _, err := n.LoadPartition(t.Context(), &matchingpb.LoadPartitionRequest{TaskQueue: part("mail", 2)}); reason(err) != "NOT_FOUND" {
		t.Errorf("LoadPartition of a partition that does not exist: %v", err)
	}
	if got := n.engine.Partitions(); len(got) != 1 || got[0] != partitionOf("mail") {
		t.Errorf("looking has loaded %v", got)
	}
	q := partitionOf("mial").Queue
	if acquired, err := n.store.Acquire(t.Context(), n.engine.Holder(), []partition.ID{q.Partition(0)}); err != nil || acquired[0].Epoch != 1 {
		t.Errorf("looking has taken partition 0 before: %+v, %v", acquired, err)
	}
}

// TestLookingAtUnusedPartition: a partition of a queue that never held a task is
// there, and empty, without being loaded.
func TestLookingAtUnusedPartition(t *testing.T) {
	n := start(t, func(p *parts) { counts(p, 2, 2) })
	defer n.stop()
	n.add("mail", "x")
	unused := part("mail", 1)
	got, err := n.DescribePartition(t.Context(), &matchingpb.DescribePartitionRequest{TaskQueue: unused})
	if d := got.GetPartition(); err != nil || d.GetLoaded() || !d.GetDrained() || d.GetPartition() != 1 || d.GetCounts().GetRead() != 2 {
		t.Errorf("DescribePartition = %v, %v", got, err)
	}
	if page, err := n.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: unused}); err != nil || len(page.GetTasks()) != 0 {
		t.Errorf("PeekTasks = %v, %v", page, err)
	}
	if _, err := n.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: unused, Id: 1<<40 + 1}); reason(err) != "NOT_FOUND" {
		t.Errorf("GetTask: %v", err)
	}
	if got := n.engine.Partitions(); len(got) != 1 {
		t.Errorf("looking has loaded %v", got)
	}
}

// TestLookingAtPolledQueue: a queue that is polled is there before its first task.
func TestLookingAtPolledQueue(t *testing.T) {
	n := start(t)
	defer n.stop()
	if _, err := n.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: root("mail"), Identity: "w", Wait: durationpb.New(0)}); err != nil {
		t.Fatal(err)
	}
	got, err := n.DescribePartition(t.Context(), &matchingpb.DescribePartitionRequest{TaskQueue: root("mail")})
	if d := got.GetPartition(); err != nil || !d.GetLoaded() || !d.GetDrained() || len(d.GetPollers()) != 1 {
		t.Errorf("DescribePartition = %v, %v", got, err)
	}
}

// TestRequestIDsInBatches are refused item by item, so that no producer counts on
// them.
func TestRequestIDsInBatches(t *testing.T) {
	n := start(t)
	defer n.stop()
	got, err := n.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{{
		TaskQueue: root("q"), Payloads: [][]byte{{1}, {2}, {3}, {4}},
		Exceptions: []*matchingpb.ItemOptions{
			{Index: 0, Options: &matchingpb.TaskOptions{Priority: 9}},
			{Index: 1, Options: &matchingpb.TaskOptions{RequestId: "r"}},
			{Index: 3, Options: &matchingpb.TaskOptions{Priority: 9}},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := got.GetResults()[0]
	reasons := make([]string, 0, len(r.GetErrors()))
	for _, e := range r.GetErrors() {
		reasons = append(reasons, fmt.Sprint(e.GetIndex(), " ", e.GetReason()))
	}
	if want := "[0 INVALID 1 UNIMPLEMENTED 3 INVALID]"; fmt.Sprint(reasons) != want || r.GetIds()[2] == 0 || r.GetIds()[1] != 0 {
		t.Errorf("refused %v, want %s; ids %v", reasons, want, r.GetIds())
	}
}

// TestBacklogHint counts what is left that could be handed out: not what is on its
// way, with a worker, or not due.
func TestBacklogHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.fill() // 3 of it are ready
		for want := int64(2); want >= 0; want-- {
			if got := n.poll("q", 1); len(got.GetTasks()) != 1 || got.GetBacklogHint() != want {
				t.Errorf("%d tasks and a hint of %d, want 1 and %d", len(got.GetTasks()), got.GetBacklogHint(), want)
			}
		}
	})
}

// TestListShowsAllFigures: the list says of a queue what its description does.
func TestListShowsAllFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.fill()
		time.Sleep(time.Second)
		page, err := n.ListTaskQueues(t.Context(), &matchingpb.ListTaskQueuesRequest{IncludeStats: true})
		if err != nil || len(page.GetTaskQueues()) != 1 {
			t.Fatalf("ListTaskQueues = %v, %v", page, err)
		}
		got, want := page.GetTaskQueues()[0].GetStats(), n.describe(false).GetStats()
		want.ByPriority = nil // lists leave them out
		if got.String() != want.String() || got.GetDead() != 1 || got.GetAddRate() != 7 || got.GetDispatchRate() != 2 {
			t.Errorf("listed with %v, described with %v", got, want)
		}
	})
}

// TestDeadLettersAreCounted while a partition is loaded, and anew with each load;
// beyond a bound the count is an estimate.
func TestDeadLettersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		bury := func(count int) (last []byte) {
			t.Helper()
			batch := &matchingpb.AddBatch{TaskQueue: root("q"), Payloads: make([][]byte, count)}
			if _, err := n.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{batch}}); err != nil {
				t.Fatal(err)
			}
			got := n.poll("q", int32(count)).GetTasks()
			for _, g := range got {
				last = g.GetToken()
				if _, err := n.FailTask(t.Context(), &matchingpb.FailTaskRequest{Token: last, Failure: &matchingpb.Failure{NonRetryable: true}}); err != nil {
					t.Fatal(err)
				}
			}
			return last
		}
		reload := func() {
			t.Helper()
			if _, err := n.UnloadPartition(t.Context(), &matchingpb.UnloadPartitionRequest{TaskQueue: root("q")}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(dead int64, estimated bool) {
			t.Helper()
			if s := n.describe(false).GetStats(); s.GetDead() != dead || s.GetEstimated() != estimated {
				t.Errorf("%d dead letters, estimated %v; want %d, %v", s.GetDead(), s.GetEstimated(), dead, estimated)
			}
		}
		last := bury(3)
		want(3, false)
		// A worker that thinks better of it finishes the task from among the dead.
		if _, err := n.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: last}); err != nil {
			t.Fatal(err)
		}
		want(2, false)
		reload()
		want(2, false)
		bury(1000)
		want(1002, false)
		reload()
		want(1000, true)
		bury(1)
		want(1001, true)
	})
}

// TestLabels: results are words in lower case.
func TestLabels(t *testing.T) {
	for want, got := range map[string]string{
		"timeout": emptyLabel(queue.Timeout), "worker_shutdown": emptyLabel(queue.WorkerShutdown), "cancelled": emptyLabel(queue.Cancelled),
		"store_unavailable": reasonLabel(task.StoreUnavailable), "caller_left": reasonLabel(context.Canceled),
	} {
		if got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}
