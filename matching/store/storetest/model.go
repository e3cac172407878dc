package storetest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// model is what a partition's rows should be: plain maps, sorted when they are
// read, so that there is nothing in it to get wrong.
type model struct {
	epoch  task.Epoch
	holder task.Holder
	meta   row.Meta

	tasks     map[row.TaskKey]row.Task
	scheduled map[row.DueKey]row.Task
	leases    map[task.ID]row.Lease
	dead      map[task.ID]row.DeadTask
	asked     map[string]row.Request

	seenIDs      map[task.ID]bool // every id ever named, also of rows long gone
	seenRequests map[string]bool
}

func newModel() *model {
	return &model{
		tasks:        map[row.TaskKey]row.Task{},
		scheduled:    map[row.DueKey]row.Task{},
		leases:       map[task.ID]row.Lease{},
		dead:         map[task.ID]row.DeadTask{},
		asked:        map[string]row.Request{},
		seenIDs:      map[task.ID]bool{},
		seenRequests: map[string]bool{},
	}
}

// acquire is what Acquire does, and returns the epoch.
func (m *model) acquire(h task.Holder) task.Epoch {
	m.epoch++
	m.holder = h
	m.meta.Released = false
	return m.epoch
}

// apply is what a stored mutation does.
func (m *model) apply(u *row.Mutation) {
	for _, d := range u.DeleteRanges {
		maps.DeleteFunc(m.tasks, func(k row.TaskKey, _ row.Task) bool {
			return k.Priority == d.Priority && d.From <= k.ID && k.ID <= d.To
		})
	}
	deleteAll(m.tasks, u.DeleteTasks)
	deleteAll(m.scheduled, u.DeleteScheduled)
	deleteAll(m.leases, u.DeleteLeases)
	deleteAll(m.dead, u.DeleteDead)
	deleteAll(m.asked, u.DeleteRequests)
	for _, t := range u.PutTasks {
		m.tasks[row.TaskKey{Priority: t.Task.Priority, ID: t.Task.ID}] = t
		m.seenIDs[t.Task.ID] = true
	}
	for _, t := range u.PutScheduled {
		m.scheduled[row.DueKey{Due: t.Due, ID: t.Task.ID}] = t
		m.seenIDs[t.Task.ID] = true
	}
	for _, l := range u.PutLeases {
		m.leases[l.ID] = l
		m.seenIDs[l.ID] = true
	}
	for _, d := range u.PutDead {
		m.dead[d.Task.ID] = d
		m.seenIDs[d.Task.ID] = true
	}
	for _, q := range u.PutRequests {
		m.asked[q.RequestID] = q
		m.seenRequests[q.RequestID] = true
	}
	if u.Meta != nil {
		m.meta = *u.Meta
	}
}

func deleteAll[K comparable, V any](from map[K]V, keys []K) {
	for _, k := range keys {
		delete(from, k)
	}
}

func (m *model) ids() []task.ID { return slices.Sorted(maps.Keys(m.seenIDs)) }

func (m *model) requestIDs() []string { return slices.Sorted(maps.Keys(m.seenRequests)) }

func (m *model) requests(ids []string) []row.Request {
	var found []row.Request
	for _, id := range ids {
		if q, ok := m.asked[id]; ok {
			found = append(found, q)
		}
	}
	return found
}

func (m *model) get(id task.ID) row.Record {
	rec := row.Record{ID: id}
	if l, ok := m.leases[id]; ok {
		rec.Lease = &l
	}
	for k, t := range m.tasks {
		if k.ID == id {
			rec.Found, rec.Kind, rec.Task = true, row.Tasks, t
		}
	}
	for k, t := range m.scheduled {
		if k.ID == id {
			rec.Found, rec.Kind, rec.Task = true, row.Scheduled, t
		}
	}
	if d, ok := m.dead[id]; ok {
		rec.Found, rec.Kind, rec.Task, rec.Dead = true, row.Dead, row.Task{Task: d.Task}, d
	}
	return rec
}

// scan is what a scan answers.
func (m *model) scan(s row.Scan) row.Page {
	var p row.Page
	size := 0
	switch s.Kind {
	case row.Tasks:
		p.Tasks, p.More = cut(m.taskRows(s), s, &size, func(t row.Task) int { return t.Task.Size() })
	case row.Scheduled:
		p.Tasks, p.More = cut(m.scheduledRows(s), s, &size, func(t row.Task) int { return t.Task.Size() })
	case row.Leases:
		p.Leases, p.More = cut(after(m.leases, s.After.ID), s, &size, func(l row.Lease) int { return l.Size() })
	case row.Dead:
		p.Dead, p.More = cut(after(m.dead, s.After.ID), s, &size, func(d row.DeadTask) int { return d.Task.Size() })
	}
	return p
}

func (m *model) taskRows(s row.Scan) []row.Task {
	byID := map[task.ID]row.Task{}
	for k, t := range m.tasks {
		if k.Priority == s.Priority && (s.Through == 0 || k.ID <= s.Through) {
			byID[k.ID] = t
		}
	}
	return after(byID, s.After.ID)
}

func (m *model) scheduledRows(s row.Scan) []row.Task {
	var rows []row.Task
	from := row.DueKey{Due: s.After.Due, ID: s.After.ID}
	for _, k := range slices.SortedFunc(maps.Keys(m.scheduled), compareDueKeys) {
		if from.Less(k) && (s.Until == 0 || k.Due <= s.Until) {
			rows = append(rows, m.scheduled[k])
		}
	}
	return rows
}

func compareIDs(a, b task.ID) int { return cmp.Compare(a, b) }

func compareDueKeys(a, b row.DueKey) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
}

func compareTaskKeys(a, b row.TaskKey) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
}

// after returns the rows above an id, in the order of their ids.
func after[V any](rows map[task.ID]V, id task.ID) []V {
	var found []V
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if k > id {
			found = append(found, rows[k])
		}
	}
	return found
}

// cut ends rows where a limit of the scan is reached.
func cut[V any](rows []V, s row.Scan, size *int, sizeOf func(V) int) (page []V, more bool) {
	for i, r := range rows {
		*size += sizeOf(r)
		if s.Reached(i+1, *size) {
			return rows[:i+1], true
		}
	}
	return rows, false
}
