package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// story is a random one: calls drawn one by one, done to the store and to one
// model per partition.
type story struct {
	*subject
	models map[partition.ID]*model
	nextID uint64
}

// randomStories tells random stories of a few partitions with names that are
// easily mixed up, and compares all rows after each call.
func randomStories(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{
			subject: &subject{TB: rt, Harness: open(t)},
			models:  map[partition.ID]*model{},
			nextID:  1,
		}
		defer s.close()
		for _, p := range s.partitions() {
			s.models[p] = newModel()
		}
		actions := map[string]func(*rapid.T){
			"":        s.check,
			"acquire": s.drawAcquire,
			"commit":  s.drawCommit,
			"more":    s.drawCommit, // commits are to be the most frequent
			"most":    s.drawCommit,
			"scan":    s.drawScan,
		}
		if s.Flush != nil {
			actions["flush"] = func(*rapid.T) { s.flush() }
		}
		if s.Compact != nil {
			actions["compact"] = func(*rapid.T) { s.compact() }
		}
		if s.Reopen != nil {
			actions["reopen"] = func(*rapid.T) { s.reopen() }
		}
		rt.Repeat(actions)
	})
}

func (s *story) partitions() []partition.ID {
	q := partition.Queue{Namespace: "a", Name: "b", Type: partition.Activity}
	longer := partition.Queue{Namespace: "a", Name: "b\x00", Type: partition.Activity}
	return []partition.ID{q.Partition(0), q.Partition(1), longer.Partition(0)}
}

// check compares all rows of all partitions and the catalogue.
func (s *story) check(*rapid.T) {
	var want []store.Listed
	for _, p := range s.partitions() { // in catalogue order
		m := s.models[p]
		s.matches(p, m)
		if m.meta.Listed {
			want = append(want, store.Listed{Partition: p, Epoch: m.epoch, Holder: m.holder, Meta: m.meta})
		}
	}
	if got := s.list(partition.ID{}, 10); len(got)+len(want) > 0 {
		s.same("catalogue", got, want)
	}
}

func (s *story) drawAcquire(t *rapid.T) {
	ps := rapid.SliceOfNDistinct(rapid.SampledFrom(s.partitions()), 1, 3, rapid.ID[partition.ID]).Draw(t, "partitions")
	holder := rapid.SampledFrom([]task.Holder{anna, bert}).Draw(t, "holder")
	taken, err := s.Store.Acquire(context.Background(), holder, ps)
	if err != nil || len(taken) != len(ps) {
		t.Fatalf("acquire of %v = %v, %v", ps, taken, err)
	}
	for i, p := range ps {
		m := s.models[p]
		want := store.Acquired{Meta: m.meta, Previous: task.Ownership{Holder: m.holder, Epoch: m.epoch}}
		want.Epoch = m.acquire(holder)
		s.same("take of "+p.String(), taken[i], want)
	}
}

func (s *story) drawCommit(t *rapid.T) {
	ps := rapid.SliceOfNDistinct(rapid.SampledFrom(s.partitions()), 1, 3, rapid.ID[partition.ID]).Draw(t, "partitions")
	call := make([]*row.Mutation, 0, len(ps))
	for _, p := range ps {
		u := s.drawMutation(t, s.models[p])
		u.Partition, u.Epoch = p, s.models[p].epoch
		if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
			u.Epoch--
		}
		call = append(call, u)
	}
	for i, o := range s.outcomes(call...) {
		m := s.models[ps[i]]
		want := store.Outcome{Result: store.Stored}
		if m.epoch == 0 || call[i].Epoch != m.epoch {
			want = store.Outcome{Result: store.LostEpoch, Owner: task.Ownership{Holder: m.holder, Epoch: m.epoch}}
		} else {
			m.apply(call[i])
		}
		s.same(fmt.Sprintf("outcome of %+v", call[i]), o, want)
	}
}

// drawMutation draws a mutation that keeps the laws of package row: task rows
// get ids never used before, rows move, and what is deleted is mostly there.
func (s *story) drawMutation(t *rapid.T, m *model) *row.Mutation {
	u := &row.Mutation{}
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if some("add") {
		for range rapid.IntRange(1, 4).Draw(t, "adds") {
			u.PutTasks = append(u.PutTasks, s.drawTask(t))
		}
	}
	if k, ok := pick(t, m.tasks, compareTaskKeys); ok && some("settle a task") {
		u.DeleteTasks = append(u.DeleteTasks, k)
		u.DeleteLeases = append(u.DeleteLeases, k.ID)
		if some("fail it") {
			u.PutScheduled = append(u.PutScheduled, failed(m.tasks[k].Task, s.drawDue(t)))
		}
	} else if ok && some("lease a task") {
		u.PutLeases = append(u.PutLeases, aLease(k.ID, k.Priority, rapid.Uint32Range(1, 5).Draw(t, "delivery")))
	}
	if k, ok := pick(t, m.scheduled, compareDueKeys); ok && some("settle a scheduled task") {
		u.DeleteScheduled = append(u.DeleteScheduled, k)
		if some("bury it") {
			u.PutDead = append(u.PutDead, died(m.scheduled[k].Task))
		} else if due := s.drawDue(t); due != k.Due {
			u.PutScheduled = append(u.PutScheduled, failed(m.scheduled[k].Task, due))
		}
	}
	if k, ok := pick(t, m.dead, compareIDs); ok && some("forget a dead task") {
		u.DeleteDead = append(u.DeleteDead, k)
	}
	if some("delete a range") {
		u.DeleteRanges = append(u.DeleteRanges, s.drawRange(t))
		u.PutTasks = nil // a range may cover them, and rows come above what ranges deleted
	}
	s.drawRest(t, u)
	return u
}

// drawRest draws what has nothing to do with tasks, and deletes of nothing.
func (s *story) drawRest(t *rapid.T, u *row.Mutation) {
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	name := rapid.SampledFrom([]string{"", "\x00", "a", "a\x00"})
	if asked := name.Draw(t, "request"); some("ask") {
		u.PutRequests = append(u.PutRequests, row.Request{RequestID: asked, ID: task.ID(s.nextID), At: s.drawDue(t)})
	} else if some("forget a request") {
		u.DeleteRequests = append(u.DeleteRequests, asked)
	}
	if some("meta") {
		u.Meta = &row.Meta{
			Released: some("released"), MayHold: some("may hold"), Listed: some("listed"),
			Acks: [task.Priorities]task.ID{4: task.ID(s.nextID)},
		}
	}
	if some("delete nothing") {
		nothing := task.MakeID(1, 1<<30)
		u.DeleteTasks = append(u.DeleteTasks, row.TaskKey{Priority: 3, ID: nothing})
		u.DeleteScheduled = append(u.DeleteScheduled, row.DueKey{Due: at, ID: nothing})
		u.DeleteDead = append(u.DeleteDead, nothing)
	}
}

func (s *story) drawTask(t *rapid.T) row.Task {
	id := task.MakeID(1, s.nextID)
	s.nextID++
	r := aRow(id, task.Priority(rapid.IntRange(1, task.Priorities).Draw(t, "priority")))
	r.Task.Payload = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "payload")
	if rapid.Bool().Draw(t, "folded") {
		l := aLease(id, r.Task.Priority, 1)
		r.Folded = &l
	}
	return r
}

func (s *story) drawDue(t *rapid.T) task.Micros {
	return at + task.Micros(rapid.IntRange(0, 5).Draw(t, "due"))
}

func (s *story) drawRange(t *rapid.T) row.Range {
	bound := rapid.Uint64Range(0, s.nextID-1)
	from, to := bound.Draw(t, "from"), bound.Draw(t, "to")
	return row.Range{
		Priority: task.Priority(rapid.IntRange(1, task.Priorities).Draw(t, "priority")),
		From:     task.MakeID(1, min(from, to)),
		To:       task.MakeID(1, max(from, to)),
	}
}

// drawScan compares one page under limits and bounds of all kinds.
func (s *story) drawScan(t *rapid.T) {
	p := rapid.SampledFrom(s.partitions()).Draw(t, "partition")
	id := rapid.Uint64Range(0, s.nextID)
	scan := row.Scan{
		Kind:     rapid.SampledFrom([]row.Kind{row.Tasks, row.Scheduled, row.Leases, row.Dead}).Draw(t, "kind"),
		Priority: task.Priority(rapid.IntRange(1, task.Priorities).Draw(t, "priority")),
		After:    row.Position{ID: task.MakeID(1, id.Draw(t, "after"))},
		Items:    rapid.IntRange(1, 5).Draw(t, "items"),
		Bytes:    rapid.SampledFrom([]int{0, 1, 700, 1500}).Draw(t, "bytes"),
	}
	if scan.Kind == row.Scheduled {
		scan.After.Due, scan.Until = s.drawDue(t)-1, s.drawDue(t)
	}
	if scan.Kind == row.Tasks && rapid.Bool().Draw(t, "bound") {
		scan.Through = task.MakeID(1, id.Draw(t, "through"))
	}
	s.same(fmt.Sprintf("scan %+v", scan), s.scan(p, scan), s.models[p].scan(scan))
}

// pick draws one of the keys, if there is one.
func pick[K comparable, V any](t *rapid.T, from map[K]V, order func(a, b K) int) (K, bool) {
	if len(from) == 0 {
		var none K
		return none, false
	}
	return rapid.SampledFrom(slices.SortedFunc(maps.Keys(from), order)).Draw(t, "row"), true
}
