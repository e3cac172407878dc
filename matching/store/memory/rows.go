package memory

import (
	"cmp"

	"github.com/RaduBerinde/btreemap"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// treeDegree is a plain middle: nodes of some cache lines.
const treeDegree = 16

// rows is everything stored of one partition. It has no lock of its own.
type rows struct {
	epoch  task.Epoch
	holder task.Holder
	meta   row.Meta

	tasks     [task.Priorities]*btreemap.BTreeMap[task.ID, row.Task]
	scheduled *btreemap.BTreeMap[row.DueKey, row.Task]
	due       map[task.ID]task.Micros // finds a scheduled row by its id
	leases    *btreemap.BTreeMap[task.ID, row.Lease]
	dead      *btreemap.BTreeMap[task.ID, row.DeadTask]
	requests  map[string]row.Request

	// For check only: task rows ever put, and the highest that a range deleted.
	written [task.Priorities]*btreemap.BTreeMap[task.ID, struct{}]
	ranges  []row.Range
}

func newRows() *rows {
	r := &rows{
		scheduled: btreemap.New[row.DueKey, row.Task](treeDegree, compareDue),
		due:       make(map[task.ID]task.Micros),
		leases:    btreemap.New[task.ID, row.Lease](treeDegree, cmp.Compare[task.ID]),
		dead:      btreemap.New[task.ID, row.DeadTask](treeDegree, cmp.Compare[task.ID]),
		requests:  make(map[string]row.Request),
	}
	for level := range r.tasks {
		r.tasks[level] = btreemap.New[task.ID, row.Task](treeDegree, cmp.Compare[task.ID])
		r.written[level] = btreemap.New[task.ID, struct{}](treeDegree, cmp.Compare[task.ID])
	}
	return r
}

func compareDue(a, b row.DueKey) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
}

// apply applies m in the order that [row.Mutation] promises.
func (r *rows) apply(m *row.Mutation) {
	r.applyDeletes(m)
	for _, t := range m.PutTasks {
		r.tasks[t.Task.Priority.Level()].ReplaceOrInsert(t.Task.ID, cloneRow(t))
	}
	for _, t := range m.PutScheduled {
		r.scheduled.ReplaceOrInsert(row.DueKey{Due: t.Due, ID: t.Task.ID}, cloneRow(t))
		r.due[t.Task.ID] = t.Due
	}
	for _, l := range m.PutLeases {
		r.leases.ReplaceOrInsert(l.ID, l)
	}
	for _, d := range m.PutDead {
		r.dead.ReplaceOrInsert(d.Task.ID, d)
	}
	for _, q := range m.PutRequests {
		r.requests[q.RequestID] = q
	}
	if m.Meta != nil {
		r.meta = *m.Meta
	}
}

func (r *rows) applyDeletes(m *row.Mutation) {
	for _, d := range m.DeleteRanges {
		r.deleteRange(d)
	}
	for _, k := range m.DeleteTasks {
		r.tasks[k.Priority.Level()].Delete(k.ID)
	}
	for _, k := range m.DeleteScheduled {
		r.scheduled.Delete(k)
		if r.due[k.ID] == k.Due {
			delete(r.due, k.ID)
		}
	}
	for _, id := range m.DeleteLeases {
		r.leases.Delete(id)
	}
	for _, id := range m.DeleteDead {
		r.dead.Delete(id)
	}
	for _, id := range m.DeleteRequests {
		delete(r.requests, id)
	}
}

func (r *rows) deleteRange(d row.Range) {
	tree := r.tasks[d.Priority.Level()]
	var gone []task.ID
	for id := range tree.Ascend(btreemap.GE(d.From), btreemap.LE(d.To)) {
		gone = append(gone, id)
	}
	for _, id := range gone {
		tree.Delete(id)
	}
}

func (r *rows) get(id task.ID) row.Record {
	rec := row.Record{ID: id}
	if _, lease, ok := r.leases.Get(id); ok {
		rec.Lease = &lease
	}
	for _, tree := range r.tasks {
		if _, t, ok := tree.Get(id); ok {
			rec.Found, rec.Kind, rec.Task = true, row.Tasks, cloneRow(t)
			return rec
		}
	}
	if due, ok := r.due[id]; ok {
		_, t, _ := r.scheduled.Get(row.DueKey{Due: due, ID: id})
		rec.Found, rec.Kind, rec.Task = true, row.Scheduled, cloneRow(t)
		return rec
	}
	if _, d, ok := r.dead.Get(id); ok {
		rec.Found, rec.Kind, rec.Dead = true, row.Dead, d
		rec.Task = row.Task{Task: d.Task}
	}
	return rec
}

// scan reads a page. s is valid.
func (r *rows) scan(s row.Scan) row.Page {
	var page row.Page
	size := 0
	full := func(rows, rowSize int) bool {
		size += rowSize
		page.More = s.Reached(rows, size)
		return page.More
	}
	switch s.Kind {
	case row.Tasks:
		for _, t := range r.tasks[s.Priority.Level()].Ascend(btreemap.GT(s.After.ID), throughBound(s.Through)) {
			page.Tasks = append(page.Tasks, cloneRow(t))
			if full(len(page.Tasks), t.Task.Size()) {
				break
			}
		}
	case row.Scheduled:
		after := btreemap.GT(row.DueKey{Due: s.After.Due, ID: s.After.ID})
		for _, t := range r.scheduled.Ascend(after, untilBound(s.Until)) {
			page.Tasks = append(page.Tasks, cloneRow(t))
			if full(len(page.Tasks), t.Task.Size()) {
				break
			}
		}
	case row.Leases:
		for _, l := range r.leases.Ascend(btreemap.GT(s.After.ID), btreemap.Max[task.ID]()) {
			page.Leases = append(page.Leases, l)
			if full(len(page.Leases), l.Size()) {
				break
			}
		}
	case row.Dead:
		for _, d := range r.dead.Ascend(btreemap.GT(s.After.ID), btreemap.Max[task.ID]()) {
			page.Dead = append(page.Dead, d)
			if full(len(page.Dead), d.Task.Size()) {
				break
			}
		}
	}
	return page
}

func throughBound(id task.ID) btreemap.UpperBound[task.ID] {
	if id == 0 {
		return btreemap.Max[task.ID]()
	}
	return btreemap.LE(id)
}

func untilBound(due task.Micros) btreemap.UpperBound[row.DueKey] {
	if due == 0 {
		return btreemap.Max[row.DueKey]()
	}
	return btreemap.LE(row.DueKey{Due: due, ID: ^task.ID(0)})
}
