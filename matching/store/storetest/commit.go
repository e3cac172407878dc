package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
)

// writer commits to one partition and to its model alike.
type writer struct {
	*subject
	m *model
}

func write(s *subject) *writer {
	w := &writer{subject: s, m: newModel()}
	w.m.epoch = s.acquire(anna, orders).Epoch
	return w
}

// does commits u under the right partition and epoch and compares all rows.
func (w *writer) does(u row.Mutation) {
	w.Helper()
	u.Partition, u.Epoch = orders, w.m.epoch
	w.commit(&u)
	w.m.apply(&u)
	w.matches(orders, w.m)
}

func commitNeedsTheEpoch(s *subject) {
	u := &row.Mutation{Partition: orders, PutTasks: rowsOf(3, 1, 1)}
	for _, epoch := range []task.Epoch{0, 1} {
		u.Epoch = epoch
		s.same("commit to a partition that nobody took", s.outcomes(u)[0], store.Outcome{Result: store.LostEpoch})
	}
	s.acquire(anna, orders)
	s.acquire(bert, orders)
	s.step()
	for _, epoch := range []task.Epoch{0, 1, 3, task.MaxEpoch} {
		u.Epoch = epoch
		s.same("commit under another epoch", s.outcomes(u)[0], store.Outcome{
			Result: store.LostEpoch, Owner: task.Ownership{Holder: bert, Epoch: 2},
		})
	}
	s.step()
	s.matches(orders, newModel())
}

// outcomesAreSeparate is law S2: of one call some mutations are stored, some lost.
func outcomesAreSeparate(s *subject) {
	call := make([]*row.Mutation, 0, 6)
	models := map[int]*model{}
	for n := range cap(call) {
		p := orders.Partition(int32(n))
		s.acquire(anna, p)
		models[n] = newModel()
		u := &row.Mutation{Partition: p, Epoch: 1, PutTasks: rowsOf(task.Priority(n%5+1), 1, uint64(n)+1)}
		if n%2 == 1 {
			s.acquire(bert, p)
		} else {
			models[n].apply(u)
		}
		call = append(call, u)
	}
	for n, o := range s.outcomes(call...) {
		want := store.Outcome{Result: store.Stored}
		if n%2 == 1 {
			want = store.Outcome{Result: store.LostEpoch, Owner: task.Ownership{Holder: bert, Epoch: 2}}
		}
		s.same("outcome", o, want)
	}
	s.step()
	for n, m := range models {
		s.matches(orders.Partition(int32(n)), m)
	}
	if got := s.outcomes(); len(got) != 0 {
		s.Errorf("commit of nothing has outcomes %v", got)
	}
	s.commit(&row.Mutation{Partition: orders, Epoch: 1}) // changes nothing, and is stored
}

// eachKindOfRow writes a row of each kind with every field set, reads it back
// and deletes it.
func eachKindOfRow(s *subject) {
	w := write(s)
	id := ids(1, 6)
	lease := aLease(id[1], 1, 1)
	bare := &task.Task{ID: id[5], Priority: 2}
	w.does(row.Mutation{
		PutTasks:     []row.Task{{Task: aTask(id[0], 1)}, {Task: aTask(id[1], 1), Folded: &lease}, {Task: bare}},
		PutScheduled: []row.Task{failed(aTask(id[2], 5), at+100)},
		PutLeases:    []row.Lease{aLease(id[0], 1, 2)},
		PutDead:      []row.DeadTask{died(aTask(id[3], 4))},
		PutRequests:  []row.Request{{RequestID: "ask\x00\xff", ID: id[0], At: at}, {RequestID: "", ID: id[4], At: at}},
		Meta:         &row.Meta{MayHold: true, Acks: [task.Priorities]task.ID{1, 2, 3, 4, 5}, Backlog: 77},
	})
	w.does(row.Mutation{
		DeleteTasks:     []row.TaskKey{{Priority: 1, ID: id[0]}, {Priority: 1, ID: id[1]}, {Priority: 2, ID: id[5]}},
		DeleteScheduled: []row.DueKey{{Due: at + 100, ID: id[2]}},
		DeleteLeases:    []task.ID{id[0]},
		DeleteDead:      []task.ID{id[3]},
		DeleteRequests:  []string{"ask\x00\xff", ""},
	})
	taken := s.acquire(bert, orders)
	s.same("metadata", taken.Meta, row.Meta{MayHold: true, Acks: [task.Priorities]task.ID{1, 2, 3, 4, 5}, Backlog: 77})
}

// rowsWrittenOverAndOver puts rows of every kind but task several times, then
// deletes them: no old value may come back.
func rowsWrittenOverAndOver(s *subject) {
	w := write(s)
	id := ids(1, 1)[0]
	w.does(row.Mutation{PutTasks: []row.Task{aRow(id, 3)}})
	const times = 3
	for i := uint32(1); i <= times; i++ {
		t := aTask(ids(2, 2)[0], 3)
		t.Attempts = i
		w.does(row.Mutation{
			PutLeases:    []row.Lease{aLease(id, 3, i)},
			PutScheduled: []row.Task{{Task: t, Due: at}},
			PutDead:      []row.DeadTask{{Task: aTask(ids(3, 3)[0], 1), At: at + task.Micros(i)}},
			PutRequests:  []row.Request{{RequestID: "ask", ID: task.ID(i), At: at}},
			Meta:         &row.Meta{MayHold: true, Acks: [task.Priorities]task.ID{task.ID(i)}},
		})
	}
	w.does(row.Mutation{
		DeleteLeases:    []task.ID{id},
		DeleteScheduled: []row.DueKey{{Due: at, ID: ids(2, 2)[0]}},
		DeleteDead:      ids(3, 3),
		DeleteRequests:  []string{"ask"},
	})
	w.does(row.Mutation{DeleteTasks: []row.TaskKey{{Priority: 3, ID: id}}})
	w.does(row.Mutation{PutLeases: []row.Lease{aLease(id, 3, 9)}}) // and once more after the delete
	w.does(row.Mutation{DeleteLeases: []task.ID{id}})
}

// oldValuesStayGone writes a value that comes to rest, then within one step a
// newer value and its delete. A delete that vanishes together with the newer
// value would bring the older one back.
func oldValuesStayGone(s *subject) {
	w := write(s)
	id := ids(1, 3)
	w.does(row.Mutation{PutTasks: []row.Task{aRow(id[0], 3)}})
	put := row.Mutation{
		PutLeases:    []row.Lease{aLease(id[0], 3, 1)},
		PutScheduled: []row.Task{{Task: aTask(id[1], 3), Due: at}},
		PutDead:      []row.DeadTask{died(aTask(id[2], 3))},
		PutRequests:  []row.Request{{RequestID: "ask", ID: id[0], At: at}},
	}
	w.does(put)
	for _, u := range []row.Mutation{put, {
		DeleteLeases:    []task.ID{id[0]},
		DeleteScheduled: []row.DueKey{{Due: at, ID: id[1]}},
		DeleteDead:      []task.ID{id[2]},
		DeleteRequests:  []string{"ask"},
	}} {
		u.Partition, u.Epoch = orders, 1
		s.same("outcome", s.outcomes(&u)[0], store.Outcome{Result: store.Stored})
		w.m.apply(&u)
	}
	w.step()
	w.matches(orders, w.m)
}

// aTaskMovesThroughItsLife is one task that is leased, fails twice, dies and is
// redriven, each move one mutation.
func aTaskMovesThroughItsLife(s *subject) {
	w := write(s)
	t := aTask(ids(1, 1)[0], 2)
	lease := aLease(t.ID, 2, 1)
	w.does(row.Mutation{PutTasks: []row.Task{{Task: t, Folded: &lease}}})
	w.does(row.Mutation{PutLeases: []row.Lease{aLease(t.ID, 2, 2)}})
	first := failed(t, at+10)
	w.does(row.Mutation{
		DeleteTasks: []row.TaskKey{{Priority: 2, ID: t.ID}}, DeleteLeases: []task.ID{t.ID}, PutScheduled: []row.Task{first},
	})
	leased := aLease(t.ID, 2, 3)
	leased.Due = first.Due
	w.does(row.Mutation{PutLeases: []row.Lease{leased}})
	second := failed(first.Task, at+5) // due before the row that it replaces
	w.does(row.Mutation{
		DeleteScheduled: []row.DueKey{{Due: first.Due, ID: t.ID}}, DeleteLeases: []task.ID{t.ID}, PutScheduled: []row.Task{second},
	})
	w.does(row.Mutation{
		DeleteScheduled: []row.DueKey{{Due: second.Due, ID: t.ID}}, PutDead: []row.DeadTask{died(second.Task)},
	})
	again := failed(t, at+20)
	w.does(row.Mutation{DeleteDead: []task.ID{t.ID}, PutScheduled: []row.Task{again}})
	w.does(row.Mutation{DeleteScheduled: []row.DueKey{{Due: again.Due, ID: t.ID}}})
}

func deletesOfNothing(s *subject) {
	w := write(s)
	id := ids(1, 9)
	nothing := row.Mutation{
		DeleteRanges:    []row.Range{{Priority: 3, From: id[7], To: id[8]}, {Priority: 4, From: id[0], To: id[8]}},
		DeleteTasks:     []row.TaskKey{{Priority: 1, ID: id[0]}, {Priority: 3, ID: id[5]}}, // another priority, no such id
		DeleteScheduled: []row.DueKey{{Due: at + 1, ID: id[1]}, {Due: at, ID: id[0]}},      // another due time, no such id
		DeleteLeases:    []task.ID{id[3]},
		DeleteDead:      []task.ID{id[0]},
		DeleteRequests:  []string{"nobody asked"},
	}
	w.does(nothing)
	w.does(row.Mutation{
		PutTasks:     []row.Task{aRow(id[0], 3)},
		PutScheduled: []row.Task{failed(aTask(id[1], 3), at)},
		PutLeases:    []row.Lease{aLease(id[0], 3, 1)},
		PutDead:      []row.DeadTask{died(aTask(id[2], 3))},
		PutRequests:  []row.Request{{RequestID: "nobody", ID: id[0], At: at}},
	})
	w.does(nothing)
	w.does(nothing) // deletes of what deletes of nothing left behind
	w.does(row.Mutation{DeleteTasks: []row.TaskKey{{Priority: 3, ID: id[0]}}})
	w.does(row.Mutation{DeleteTasks: []row.TaskKey{{Priority: 3, ID: id[0]}}})
}

func ranges(s *subject) {
	w := write(s)
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		first := uint64(p) * 100 // ids are unique in the partition
		w.does(row.Mutation{PutTasks: rowsOf(p, first, first+9)})
	}
	at := func(seq uint64) task.ID { return task.MakeID(1, seq) }
	w.does(row.Mutation{DeleteRanges: []row.Range{{Priority: 3, From: at(302), To: at(304)}}})
	w.does(row.Mutation{DeleteRanges: []row.Range{ // one row, a row and nothing, overlapping ranges
		{Priority: 1, From: at(105), To: at(105)},
		{Priority: 2, From: at(209), To: at(1000)},
		{Priority: 4, From: at(400), To: at(404)},
		{Priority: 4, From: at(403), To: at(406)},
	}})
	w.does(row.Mutation{DeleteTasks: []row.TaskKey{{Priority: 3, ID: at(303)}}}) // single rows in and beside a range
	w.does(row.Mutation{
		DeleteTasks:  []row.TaskKey{{Priority: 3, ID: at(305)}},
		DeleteRanges: []row.Range{{Priority: 3, From: at(300), To: at(301)}},
		PutTasks:     rowsOf(3, 310, 312),
	})
	w.does(row.Mutation{PutTasks: rowsOf(2, 1001, 1002)}) // beyond a range
	w.does(row.Mutation{DeleteRanges: []row.Range{{Priority: 5, From: 0, To: ^task.ID(0)}}})
	w.does(row.Mutation{PutTasks: []row.Task{aRow(^task.ID(0), 5), aRow(1, 1)}}) // the highest and the lowest id
	w.does(row.Mutation{DeleteRanges: []row.Range{{Priority: 5, From: ^task.ID(0), To: ^task.ID(0)}}})
}

// commitsAreNotKept changes what was committed once the call returned.
func commitsAreNotKept(s *subject) {
	w := write(s)
	id := ids(1, 1)[0]
	lease := aLease(id, 3, 1)
	u := row.Mutation{PutTasks: []row.Task{{Task: aTask(id, 3), Folded: &lease}}, PutLeases: []row.Lease{aLease(id, 3, 2)}}
	want := row.Mutation{PutTasks: slices.Clone(u.PutTasks), PutLeases: slices.Clone(u.PutLeases)}
	kept := lease
	want.PutTasks[0].Folded = &kept
	u.Partition, u.Epoch = orders, 1
	w.commit(&u)
	w.m.apply(&want)
	lease.Identity, lease.Delivery = "changed", 77
	u.PutLeases[0].Identity = "changed"
	u.PutTasks[0] = row.Task{}
	w.matches(orders, w.m)

	read := w.get(orders, id)[0] // nor does changing what was read change the store
	read.Task.Folded.Identity, read.Lease.Identity = "changed", "changed"
	page := w.scan(orders, row.Scan{Kind: row.Tasks, Priority: 3, Items: 1})
	page.Tasks[0].Folded.Identity = "changed"
	w.matches(orders, w.m)
}

func cancelledCalls(s *subject) {
	w := write(s)
	reason := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	u := &row.Mutation{Partition: orders, Epoch: 1, PutTasks: rowsOf(3, 1, 1)}
	if o := s.Store.Commit(ctx, []*row.Mutation{u})[0]; o.Result != store.NotStored || !errors.Is(o.Err, reason) {
		s.Errorf("commit for a caller that left = %v, %v, want not stored", o.Result, o.Err)
	}
	if _, err := s.Store.Scan(ctx, orders, row.Scan{Kind: row.Dead, Items: 1}); !errors.Is(err, reason) {
		s.Errorf("scan for a caller that left: error %v", err)
	}
	s.step()
	w.matches(orders, w.m)
}
