package client

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// spread returns a world of 3 nodes and 6 partitions.
func spread(tb testing.TB) *world {
	tb.Helper()
	return newWorld(tb, 3, Options{Queues: numbered(6)})
}

// addPayloads adds by AddTasks without a partition, and checks that each item
// is where its result says.
func addPayloads(tb testing.TB, c *Client, payloads ...string) *matchingpb.AddResult {
	tb.Helper()
	b := &matchingpb.AddBatch{TaskQueue: wire.EncodeQueue(testQueue)}
	for _, p := range payloads {
		b.Payloads = append(b.Payloads, []byte(p))
	}
	out, err := c.AddTasks(tb.Context(), &matchingpb.AddTasksRequest{Seq: 9, Batches: []*matchingpb.AddBatch{b}})
	if err != nil || out.GetSeq() != 9 || len(out.GetResults()) != 1 {
		tb.Fatalf("AddTasks: %v, %v", out, err)
	}
	return out.GetResults()[0]
}

func TestAddTasksIsDealtOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		r := addPayloads(t, w.client, names("p", 60)...)
		if r.GetPartition() != -1 || len(r.GetErrors()) != 0 {
			t.Errorf("result %v", r)
		}
		calls := 0
		for _, n := range w.nodes {
			calls += n.count("AddTasks")
			for id, tasks := range n.tasks {
				if at, _ := w.client.Route(id); at != n.address {
					t.Errorf("%v is at %s, the ring says %s", id, n.address, at)
				}
				checkDealt(t, r, id, tasks)
			}
		}
		if calls > 3 {
			t.Errorf("%d calls to 3 nodes", calls)
		}
	})
}

// checkDealt holds what a node stored in a partition to what the caller was told.
func checkDealt(t *testing.T, r *matchingpb.AddResult, id partition.ID, tasks []*fakeTask) {
	t.Helper()
	if len(tasks) != 10 {
		t.Errorf("%v got %d of 60 tasks, want 10", id, len(tasks))
	}
	for _, f := range tasks {
		i, err := strconv.Atoi(strings.TrimPrefix(string(f.payload), "p"))
		if err != nil || r.GetIds()[i] != uint64(f.id) {
			t.Errorf("item %s got id %d, the node has it as %d", f.payload, r.GetIds()[i], f.id)
		}
	}
}

func TestAddTasksRetriesParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		for _, n := range w.nodes {
			n.before = once("AddBatch", 1, task.Errorf(task.NotReady, "loading"))
			n.refuse = func(payload string) error {
				if payload == "p5" {
					return task.Errorf(task.Paused, "not p5")
				}
				return nil
			}
		}
		r := addPayloads(t, w.client, names("p", 12)...)
		if len(r.GetErrors()) != 1 || r.GetErrors()[0].GetIndex() != 5 || r.GetErrors()[0].GetReason() != "PAUSED" {
			t.Errorf("errors %v, want only item 5", r.GetErrors())
		}
		for i, id := range r.GetIds() {
			if (id == 0) != (i == 5) {
				t.Errorf("item %d has id %d", i, id)
			}
		}
	})
}

func TestAddTasksRefusesABadQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		out, err := w.client.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{
			{TaskQueue: &matchingpb.TaskQueuePartition{Namespace: "ns"}, Payloads: [][]byte{nil}},
			{TaskQueue: wire.EncodePartition(testQueue.Partition(2)), Payloads: [][]byte{[]byte("x")}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if e := out.GetResults()[0].GetError(); codes.Code(e.GetCode()) != codes.InvalidArgument {
			t.Errorf("the first batch was answered with %v", out.GetResults()[0])
		}
		if r := out.GetResults()[1]; r.GetPartition() != 2 || len(r.GetIds()) != 1 {
			t.Errorf("the second batch was answered with %v", r)
		}
	})
}

// grantsOf polls every partition empty.
func grantsOf(tb testing.TB, w *world) []*matchingpb.TaskGrant {
	tb.Helper()
	var all []*matchingpb.TaskGrant
	for n := range int32(6) {
		out, err := w.client.PollTask(tb.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodePartition(testQueue.Partition(n)), MaxTasks: 100})
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, out.GetTasks()...)
	}
	return all
}

func TestTokensGoToTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		addPayloads(t, w.client, names("p", 36)...)
		grants := grantsOf(t, w)
		tokens := make([][]byte, 1, 13)
		tokens[0] = []byte("garbage")
		for i := range 12 {
			tokens = append(tokens, grants[i*3].GetToken())
		}
		done, err := w.client.CompleteTasks(t.Context(), &matchingpb.CompleteTasksRequest{Tokens: tokens})
		if err != nil || len(done.GetTokens().GetErrors()) != 1 || done.GetTokens().GetErrors()[0].GetIndex() != 0 {
			t.Fatalf("CompleteTasks: %v, %v, want only token 0 refused", done, err)
		}
		again, err := w.client.CompleteTasks(t.Context(), &matchingpb.CompleteTasksRequest{Tokens: tokens})
		if err != nil || len(again.GetTokens().GetAlreadyFinished()) != 12 {
			t.Fatalf("CompleteTasks again: %v, %v", again, err)
		}
		if !slices.Contains(again.GetTokens().GetAlreadyFinished(), 12) {
			t.Errorf("already finished %v", again.GetTokens().GetAlreadyFinished())
		}
	})
}

func TestFailuresAndReleasesGoToTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		addPayloads(t, w.client, names("p", 36)...)
		grants := grantsOf(t, w)
		beats, err := w.client.HeartbeatTasks(t.Context(), &matchingpb.HeartbeatTasksRequest{Tokens: [][]byte{grants[1].GetToken(), grants[20].GetToken()}})
		if err != nil || beats.GetTokens().GetLeaseDuration().AsDuration() != w.nodes["n0"].lease || len(beats.GetTokens().GetErrors()) != 0 {
			t.Errorf("HeartbeatTasks: %v, %v", beats, err)
		}
		fails := &matchingpb.FailTasksRequest{ByToken: []*matchingpb.FailTaskRequest{
			{Token: grants[1].GetToken(), Failure: &matchingpb.Failure{Message: "one"}},
			{Token: []byte("garbage")},
			{Token: grants[2].GetToken(), Failure: &matchingpb.Failure{Message: "two"}},
			{Token: grants[20].GetToken(), Failure: &matchingpb.Failure{Message: "three"}},
		}}
		failed, err := w.client.FailTasks(t.Context(), fails)
		if err != nil || !slices.Equal(failed.GetByToken().GetDead(), []uint32{0, 2, 3}) || len(failed.GetByToken().GetErrors()) != 1 {
			t.Errorf("FailTasks: %v, %v", failed, err)
		}
		var said []string
		for _, n := range w.nodes {
			for _, f := range n.failures {
				said = append(said, f.GetMessage())
			}
		}
		slices.Sort(said)
		if !slices.Equal(said, []string{"one", "three", "two"}) {
			t.Errorf("failures %v", said)
		}
		released, err := w.client.ReleaseTasks(t.Context(), &matchingpb.ReleaseTasksRequest{Tokens: [][]byte{grants[4].GetToken(), grants[1].GetToken()}})
		if err != nil || len(released.GetTokens().GetErrors()) != 1 || released.GetTokens().GetErrors()[0].GetReason() != "LEASE_LOST" {
			t.Errorf("ReleaseTasks: %v, %v", released, err)
		}
		total := map[string]int{}
		for _, n := range w.nodes {
			for state, k := range n.states() {
				total[state] += k
			}
		}
		if total["dead"] != 3 || total["ready"] != 1 || total["leased"] != 32 {
			t.Errorf("states %v", total)
		}
	})
}

func TestFrontendAsksAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spread(t)
		f := NewFrontend(w.client)
		r := addPayloads(t, w.client, names("p", 12)...)
		q := wire.EncodeQueue(testQueue)
		got, err := f.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: q, Id: r.GetIds()[7]})
		if err != nil || len(got.GetTask().GetPayload()) == 0 {
			t.Errorf("GetTask: %v, %v", got, err)
		}
		if _, err := f.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: q, Id: 1 << 50}); status.Code(err) != codes.NotFound {
			t.Errorf("GetTask of nothing: %v", err)
		}
		d, err := f.DescribeTaskQueue(t.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: q, IncludePartitions: true, IncludePollers: true})
		if err != nil || d.GetStats().GetReady() != 12 || len(d.GetPartitions()) != 6 || d.GetCounts().GetRead() != 6 ||
			d.GetStats().GetByPriority()[0].GetReady() != 12 || len(d.GetPollers()) != 1 || d.GetPollers()[0].GetOpenPolls() != 6 {
			t.Errorf("DescribeTaskQueue: %v, %v", d, err)
		}
		seen, token := map[uint64]bool{}, ""
		for range 20 {
			page, err := f.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: q, PageToken: token, PageSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page.GetTasks() {
				seen[p.GetId()<<3|uint64(p.GetPartition().GetPartition())] = true
			}
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		if len(seen) != 12 || token != "" {
			t.Errorf("peeking page by page showed %d tasks, want 12", len(seen))
		}
		if _, err := f.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: q, PageToken: "nonsense"}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a bad page token was answered with %v", err)
		}
		w.cut("n1")
		d, err = f.DescribeTaskQueue(t.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: q})
		if err != nil || len(d.GetMissing()) == 0 || d.GetStats().GetReady() == 12 {
			t.Errorf("DescribeTaskQueue without a node: %v, %v", d, err)
		}
		list, err := f.ListTaskQueues(t.Context(), &matchingpb.ListTaskQueuesRequest{})
		if err != nil || len(list.GetTaskQueues()) != 1 {
			t.Errorf("ListTaskQueues: %v, %v", list, err)
		}
	})
}

func TestFrontendHidesTheLayout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		e := task.Errorf(task.StaleCounts, "too many")
		e.Stale = &task.Stale{Why: task.DrainingPartition, Counts: counts(1, 1).Counts}
		w.nodes["n0"].before = once("AddBatch", 99, e)
		r := addPayloads(t, w.client, "a", "b")
		if len(r.GetErrors()) != 2 || r.GetErrors()[0].GetReason() != "NOT_READY" {
			t.Errorf("result %v, want NOT_READY for both", r)
		}
	})
}
