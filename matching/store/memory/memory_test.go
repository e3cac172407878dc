package memory_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/store/storetest"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		// Stores rely on no law of the rows but R2, which makes single deletes safe.
		broken := func(err error) {
			if strings.Contains(err.Error(), "law R2") {
				t.Errorf("the suite breaks a law of the rows that stores rely on: %v", err)
			}
		}
		return storetest.Harness{Store: memory.New(memory.Options{Broken: broken})}
	})
}

var (
	ctx    = context.Background()
	holder = task.Holder{Node: "anna", RunID: "1"}
	orders = partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}.Partition(0)
)

func put(seq uint64) *row.Mutation {
	id := task.MakeID(1, seq)
	return &row.Mutation{Partition: orders, Epoch: 1, PutTasks: []row.Task{{Task: &task.Task{ID: id, Priority: 3}}}}
}

func stored(t *testing.T, s *memory.Store) []task.ID {
	t.Helper()
	page, err := s.Scan(ctx, orders, row.Scan{Kind: row.Tasks, Priority: 3, Items: 100})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]task.ID, 0, len(page.Tasks))
	for _, r := range page.Tasks {
		ids = append(ids, r.Task.ID)
	}
	return ids
}

func TestCommitFaults(t *testing.T) {
	for _, tc := range []commitFault{
		{memory.Normal, store.Stored, 1, 1, 1},
		{memory.Refuse, store.NotStored, 0, 0, 0},
		{memory.ApplyNow, store.Unknown, 1, 1, 1},
		{memory.ApplyNever, store.Unknown, 0, 0, 0},
		{memory.ApplyLater, store.Unknown, 0, 1, 0},
	} {
		tc.check(t, false)
		tc.check(t, true)
	}
}

type commitFault struct {
	fault  memory.CommitFault
	result store.Result
	there  int // rows at once
	later  int // rows after what is late arrived
	fenced int // rows when the partition was acquired before that
}

// check commits one row under the fault, with or without a take before what is
// late arrives.
func (c commitFault) check(t *testing.T, fenced bool) {
	t.Helper()
	s := memory.New(memory.Options{Commit: func(ms []*row.Mutation) []memory.CommitFault {
		return slices.Repeat([]memory.CommitFault{c.fault}, len(ms))
	}})
	acquire(t, s)
	u := put(1)
	o := s.Commit(ctx, []*row.Mutation{u})[0]
	if o.Result != c.result || (o.Err == nil) != (o.Result == store.Stored) {
		t.Errorf("fault %d: outcome %v, %v, want %v", c.fault, o.Result, o.Err, c.result)
	}
	*u = row.Mutation{} // the caller goes on with its own
	if got := stored(t, s); len(got) != c.there {
		t.Errorf("fault %d: rows %v at once, want %d", c.fault, got, c.there)
	}
	want := c.later
	if fenced {
		want = c.fenced
		acquire(t, s)
	}
	s.ApplyLate(s.Late())
	if got := stored(t, s); len(got) != want || s.Late() != 0 {
		t.Errorf("fault %d, fenced %v: rows %v at last, want %d", c.fault, fenced, got, want)
	}
}

func acquire(tb testing.TB, s *memory.Store) {
	tb.Helper()
	if _, err := s.Acquire(ctx, holder, []partition.ID{orders}); err != nil {
		tb.Fatal(err)
	}
}

func TestFaultsMayDifferWithinACall(t *testing.T) {
	s := memory.New(memory.Options{Commit: func([]*row.Mutation) []memory.CommitFault {
		return []memory.CommitFault{memory.Refuse} // the second one is missing, so normal
	}})
	other := orders.Partition(1)
	if _, err := s.Acquire(ctx, holder, []partition.ID{orders, other}); err != nil {
		t.Fatal(err)
	}
	second := put(1)
	second.Partition = other
	got := s.Commit(ctx, []*row.Mutation{put(1), second})
	if got[0].Result != store.NotStored || got[1].Result != store.Stored {
		t.Errorf("outcomes %v", got)
	}
}

func TestAcquireFaults(t *testing.T) {
	cause := errors.New("no answer")
	for _, taken := range []bool{false, true} {
		fault := memory.AcquireFault{}
		s := memory.New(memory.Options{Acquire: func(task.Holder, []partition.ID) memory.AcquireFault { return fault }})
		fault = memory.AcquireFault{Err: cause, Taken: taken}
		if _, err := s.Acquire(ctx, holder, []partition.ID{orders}); !errors.Is(err, cause) {
			t.Errorf("acquire: error %v, want %v", err, cause)
		}
		fault = memory.AcquireFault{}
		got, err := s.Acquire(ctx, holder, []partition.ID{orders})
		want := task.Epoch(1)
		if taken {
			want = 2
		}
		if err != nil || got[0].Epoch != want {
			t.Errorf("taken %v: next acquire = %+v, %v, want epoch %d", taken, got, err, want)
		}
	}
}

func TestReadFaults(t *testing.T) {
	cause := errors.New("bad sector")
	var reads []memory.Read
	s := memory.New(memory.Options{Read: func(r memory.Read) error {
		reads = append(reads, r)
		return cause
	}})
	if _, err := s.Scan(ctx, orders, row.Scan{Kind: row.Dead, Items: 1}); !errors.Is(err, cause) {
		t.Errorf("scan: error %v", err)
	}
	if _, err := s.Get(ctx, orders, []task.ID{7}); !errors.Is(err, cause) {
		t.Errorf("get: error %v", err)
	}
	if _, err := s.Requests(ctx, orders, []string{"r"}); !errors.Is(err, cause) {
		t.Errorf("requests: error %v", err)
	}
	if len(reads) != 3 || reads[0].Scan == nil || reads[1].IDs == nil || reads[2].RequestIDs == nil {
		t.Errorf("the fault function saw %+v", reads)
	}
}

func TestClosed(t *testing.T) {
	s := memory.New(memory.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if o := s.Commit(ctx, []*row.Mutation{put(1)})[0]; o.Result != store.NotStored || !errors.Is(o.Err, memory.ErrClosed) {
		t.Errorf("commit to a closed store = %v, %v", o.Result, o.Err)
	}
	if _, err := s.Get(ctx, orders, []task.ID{7}); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("get from a closed store: error %v", err)
	}
}

// BenchmarkFlow is what a simulation does most: add, lease, complete.
func BenchmarkFlow(b *testing.B) {
	s := memory.New(memory.Options{Broken: func(err error) { b.Error(err) }})
	acquire(b, s)
	b.ReportAllocs()
	for seq := uint64(1); b.Loop(); seq++ {
		id := task.MakeID(1, seq)
		s.Commit(ctx, []*row.Mutation{put(seq)})
		s.Commit(ctx, []*row.Mutation{{Partition: orders, Epoch: 1, PutLeases: []row.Lease{{ID: id, Priority: 3}}}})
		s.Commit(ctx, []*row.Mutation{{
			Partition: orders, Epoch: 1, DeleteTasks: []row.TaskKey{{Priority: 3, ID: id}}, DeleteLeases: []task.ID{id},
		}})
	}
}
