package ledger

import (
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// maxRanges bounds the range deletes of one priority in one sweep.
const maxRanges = 128

// takeSweeps adds range deletes for priorities where many single rows were
// deleted, so that later scans do not step over what is left of them.
func (l *Ledger) takeSweeps(m *row.Mutation) {
	for i := range l.levels {
		// The threshold grows with what is in memory: a sweep walks it all.
		if lv := &l.levels[i]; lv.deleted >= max(l.limits.SweepRows, len(l.tasks)) {
			lv.deleted = 0
			l.sweep(m, task.Priority(i+1))
			l.metaDirty = true
		}
	}
}

// sweep covers the runs of ids between the tasks in memory, up to the read mark (L7).
func (l *Ledger) sweep(m *row.Mutation, p task.Priority) {
	lv := &l.levels[p.Level()]
	pinned := l.pinned(p)
	from := lv.ack + 1
	for i, id := range append(pinned, lv.read+1) {
		last := i == len(pinned)
		if id >= from+task.ID(l.limits.SweepSpan) && (last || len(m.DeleteRanges) < maxRanges) {
			m.DeleteRanges = append(m.DeleteRanges, row.Range{Priority: p, From: from, To: id - 1})
		}
		if i == 0 {
			lv.ack = max(lv.ack, id-1)
		}
		from = id + 1
	}
}

// pinned returns the ids of the priority, in order, at or below the read mark,
// that have a task row or may get one.
func (l *Ledger) pinned(p task.Priority) []task.ID {
	read := l.levels[p.Level()].read
	var ids []task.ID
	for id, e := range l.tasks {
		inTasks := e.inFlight || e.have.kind == row.Tasks || e.have.kind == 0
		if e.Priority == p && id <= read && inTasks {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
