package server

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
)

const (
	ready     = matchingpb.TaskState_TASK_STATE_READY
	scheduled = matchingpb.TaskState_TASK_STATE_SCHEDULED
	leased    = matchingpb.TaskState_TASK_STATE_LEASED
	dead      = matchingpb.TaskState_TASK_STATE_DEAD
)

// fill gives queue q 3 ready, 2 scheduled, 1 leased and 1 dead task; payloads
// say which.
func (n *node) fill() {
	n.t.Helper()
	n.add("q", "dead")
	token := n.poll("q", 1).GetTasks()[0].GetToken()
	if _, err := n.FailTask(n.t.Context(), &matchingpb.FailTaskRequest{Token: token, Failure: &matchingpb.Failure{Message: "broken", NonRetryable: true}}); err != nil {
		n.t.Fatal(err)
	}
	n.add("q", "leased")
	if got := n.poll("q", 1).GetTasks(); string(got[0].GetPayload()) != "leased" {
		n.t.Fatalf("got %v", got)
	}
	for i, priority := range []int32{5, 3, 1} {
		n.addWith(fmt.Sprint("ready ", i), &matchingpb.TaskOptions{Priority: priority})
	}
	for _, hours := range []int{2, 1} {
		delay := durationpb.New(time.Duration(hours) * time.Hour)
		n.addWith(fmt.Sprint("due in ", hours), &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_Delay{Delay: delay}})
	}
}

func (n *node) addWith(payload string, o *matchingpb.TaskOptions) {
	n.t.Helper()
	if _, err := n.AddTask(n.t.Context(), &matchingpb.AddTaskRequest{TaskQueue: root("q"), Payload: []byte(payload), Options: o}); err != nil {
		n.t.Fatal(err)
	}
}

// TestPeek walks through a queue in pages of every size: each page size shows
// the same tasks, in the order of hand-out, and takes no lease.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.fill()
		for _, tc := range []struct {
			states []matchingpb.TaskState
			want   []string
		}{
			{nil, []string{"ready 2", "leased", "ready 1", "ready 0", "due in 1", "due in 2"}},
			{[]matchingpb.TaskState{ready}, []string{"ready 2", "ready 1", "ready 0"}},
			{[]matchingpb.TaskState{scheduled}, []string{"due in 1", "due in 2"}},
			{[]matchingpb.TaskState{leased}, []string{"leased"}},
			{[]matchingpb.TaskState{dead}, []string{"dead"}},
			{[]matchingpb.TaskState{dead, ready}, []string{"ready 2", "ready 1", "ready 0", "dead"}},
		} {
			for size := int32(1); size < 8; size++ {
				if got := n.peekAll(tc.states, size); !slices.Equal(got, tc.want) {
					t.Errorf("states %v in pages of %d: %q, want %q", tc.states, size, got, tc.want)
				}
			}
		}
		for name, r := range map[string]*matchingpb.PeekTasksRequest{
			"page token": {TaskQueue: root("q"), PageToken: "?"},
			"page size":  {TaskQueue: root("q"), PageSize: -1},
			"state":      {TaskQueue: root("q"), States: []matchingpb.TaskState{9}},
		} {
			if _, err := n.PeekTasks(t.Context(), r); reason(err) != "INVALID" {
				t.Errorf("a bad %s: %v, want INVALID", name, err)
			}
		}
	})
}

// TestLeaseIsShown: who has a task, for how long, and what is left of it.
func TestLeaseIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		id := n.add("q", "x")
		n.poll("q", 1)
		time.Sleep(10 * time.Second)
		got, err := n.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: root("q"), Id: id})
		lease := got.GetTask().GetLease()
		if err != nil || lease.GetIdentity() != "tester" || lease.GetDelivery() != 1 || lease.GetEpoch() != 1 ||
			lease.GetLeaseDuration().AsDuration() != 30*time.Second || lease.GetRemaining().AsDuration() != 20*time.Second {
			t.Errorf("GetTask = %v, %v", got, err)
		}
	})
}

func (n *node) peekAll(states []matchingpb.TaskState, size int32) (payloads []string) {
	n.t.Helper()
	r := &matchingpb.PeekTasksRequest{TaskQueue: root("q"), States: states, PageSize: size, IncludePayload: true}
	for {
		page, err := n.PeekTasks(n.t.Context(), r)
		if err != nil {
			n.t.Fatal(err)
		}
		if len(page.GetTasks()) > int(size) {
			n.t.Errorf("a page of %d has %d tasks", size, len(page.GetTasks()))
		}
		for _, d := range page.GetTasks() {
			payloads = append(payloads, string(d.GetPayload()))
			if len(states) > 0 && !slices.Contains(states, d.GetState()) {
				n.t.Errorf("%q is %v", d.GetPayload(), d.GetState())
			}
		}
		if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
			return payloads
		}
	}
}

func (n *node) describe(onlyIfLoaded bool) *matchingpb.PartitionDescription {
	n.t.Helper()
	got, err := n.DescribePartition(n.t.Context(), &matchingpb.DescribePartitionRequest{TaskQueue: root("q"), OnlyIfLoaded: onlyIfLoaded})
	if err != nil {
		n.t.Fatal(err)
	}
	return got.GetPartition()
}

func TestDescribePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		began := time.Now()
		n.fill()
		time.Sleep(time.Second)
		d := n.describe(false)
		s := d.GetStats()
		if s.GetReady() != 3 || s.GetScheduled() != 2 || s.GetLeased() != 1 || s.GetDead() != 1 || s.GetEstimated() {
			t.Errorf("stats %v, want 3 ready, 2 scheduled, 1 leased, 1 dead, exactly", s)
		}
		if !d.GetLoaded() || d.GetDrained() || d.GetEpoch() != 1 || d.GetHolder().GetRunId() != "run-1" || d.GetCounts().GetRead() != 1 {
			t.Errorf("described as %v", d)
		}
		// 7 tasks were added and 2 handed out within the last second.
		if s.GetAddRate() != 7 || s.GetDispatchRate() != 2 || !d.GetLoadedAt().AsTime().Equal(began.UTC()) {
			t.Errorf("%v adds and %v hand-outs a second since %v", s.GetAddRate(), s.GetDispatchRate(), d.GetLoadedAt().AsTime())
		}
		if !s.GetOldestReadyAt().AsTime().Equal(began.UTC()) {
			t.Errorf("oldest ready task is of %v, want %v", s.GetOldestReadyAt().AsTime(), began.UTC())
		}
		if p := d.GetPollers(); len(p) != 1 || p[0].GetIdentity() != "tester" || p[0].GetOpenPolls() != 0 {
			t.Errorf("pollers %v, want the one that polled", p)
		}
	})
}

// TestDescribeLevels looks at the same partition by priority.
func TestDescribeLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.fill()
		time.Sleep(time.Second)
		d := n.describe(false)
		checkLevels(t, d)
		checkPriorities(t, d.GetStats())
	})
}

// checkLevels checks how far the priorities of a filled queue were read.
func checkLevels(t *testing.T, d *matchingpb.PartitionDescription) {
	t.Helper()
	id := func(seq uint64) uint64 { return uint64(task.MakeID(1, seq)) }
	if d.GetLastId() != id(7) {
		t.Errorf("last id %d, want %d", d.GetLastId(), id(7))
	}
	l := d.GetLevels()
	if len(l) != 5 || l[2].GetPriority() != 3 || l[2].GetReadLevel() != id(4) || l[2].GetLoaded() != 1 || l[3].GetLoaded() != 0 {
		t.Errorf("levels %v, want 5, priority 3 read up to %d with 1 ready task", l, id(4))
	}
}

// checkPriorities checks the figures by priority of a queue that was filled within
// the last second.
func checkPriorities(t *testing.T, s *matchingpb.QueueStats) {
	t.Helper()
	shown := make([]string, 0, 3)
	for _, p := range s.GetByPriority() {
		shown = append(shown, fmt.Sprintf("%d: %d ready, %v added, %v handed out", p.GetPriority(), p.GetReady(), p.GetAddRate(), p.GetDispatchRate()))
		if !p.GetOldestReadyAt().AsTime().Equal(s.GetOldestReadyAt().AsTime()) {
			t.Errorf("the oldest task of priority %d is of %v", p.GetPriority(), p.GetOldestReadyAt().AsTime())
		}
	}
	want := []string{"1: 1 ready, 1 added, 0 handed out", "3: 1 ready, 5 added, 2 handed out", "5: 1 ready, 1 added, 0 handed out"}
	if !slices.Equal(shown, want) {
		t.Errorf("by priority %q, want %q", shown, want)
	}
}

// TestUnloadAndLoad: an unloaded partition is still known, and each load takes a
// new epoch.
func TestUnloadAndLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.fill()
		unloaded, err := n.UnloadPartition(t.Context(), &matchingpb.UnloadPartitionRequest{TaskQueue: root("q")})
		if err != nil || !unloaded.GetWasLoaded() {
			t.Errorf("UnloadPartition = %v, %v", unloaded, err)
		}
		if d := n.describe(true); d.GetLoaded() || d.GetDrained() || d.GetEpoch() != 1 || d.GetHolder().GetNode() != "node-1" {
			t.Errorf("after the unload: %v", d)
		}
		for _, was := range []bool{false, true} {
			loaded, err := n.LoadPartition(t.Context(), &matchingpb.LoadPartitionRequest{TaskQueue: root("q")})
			if err != nil || loaded.GetWasLoaded() != was || loaded.GetEpoch() != 2 {
				t.Errorf("LoadPartition = %v, %v, want epoch 2 and was loaded: %v", loaded, err, was)
			}
		}
	})
}

func TestListTaskQueues(t *testing.T) {
	n := start(t)
	defer n.stop()
	want := make([]string, 7)
	for i := range want {
		want[i] = fmt.Sprint("queue-", i)
		n.add(want[i], "x")
	}
	for size := int32(1); size < 9; size++ {
		if got := n.listAll(size); !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q, want %q", size, got, want)
		}
	}
	for name, r := range map[string]*matchingpb.ListTaskQueuesRequest{
		"page token": {PageToken: "?"}, "page size": {PageSize: -1}, "type": {Type: 9},
	} {
		if _, err := n.ListTaskQueues(t.Context(), r); reason(err) != "INVALID" {
			t.Errorf("a bad %s: %v, want INVALID", name, err)
		}
	}
}

// listAll returns the names of all queues, one page after the other; each queue
// holds one task.
func (n *node) listAll(size int32) (names []string) {
	n.t.Helper()
	r := &matchingpb.ListTaskQueuesRequest{Namespace: "default", NamePrefix: "queue-", PageSize: size, IncludeStats: true}
	for {
		page, err := n.ListTaskQueues(n.t.Context(), r)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, q := range page.GetTaskQueues() {
			names = append(names, q.GetTaskQueue().GetName())
			if q.GetPartitions() != 1 || q.GetStats().GetReady() != 1 || q.GetTaskQueue().Partition != nil {
				n.t.Errorf("listed as %v", q)
			}
		}
		if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
			return names
		}
	}
}

// TestStoreThatCannotBeRead: calls that need to read say that the store is to
// blame.
func TestStoreThatCannotBeRead(t *testing.T) {
	var broken atomic.Bool
	n := start(t, func(p *parts) {
		p.store.Read = func(memory.Read) error {
			if broken.Load() {
				return errors.New("bad sector")
			}
			return nil
		}
	})
	defer n.stop()
	n.fill()
	broken.Store(true)
	_, peek := n.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: root("q")})
	_, get := n.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: root("q"), Id: 1<<40 + 999})
	for name, err := range map[string]error{"PeekTasks": peek, "GetTask": get} {
		if reason(err) != "STORE_UNAVAILABLE" {
			t.Errorf("%s: %v, want STORE_UNAVAILABLE", name, err)
		}
	}
	if d := n.describe(false); d.GetStats().GetReady() != 3 {
		t.Errorf("a description needs no reading, but: %v", d)
	}
}

func FuzzPageTokens(f *testing.F) {
	f.Add(peekPlace{section: 3}.token())
	f.Add("CgJucxIBcRgC")
	f.Fuzz(func(t *testing.T, token string) {
		if place, err := parsePeekPlace(token); err == nil {
			if again, err := parsePeekPlace(place.token()); err != nil || again != place {
				t.Errorf("%q reads as %+v, then as %+v, %v", token, place, again, err)
			}
		}
		if q, err := parseQueueToken(token); err == nil {
			text, err := queueToken(q)
			if again, parseErr := parseQueueToken(text); err != nil || parseErr != nil || again != q {
				t.Errorf("%q reads as %v, then as %v, %v, %v", token, q, again, err, parseErr)
			}
		}
	})
}
