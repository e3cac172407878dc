package ledger

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// metaEvery is how often metadata rides along with other changes.
const metaEvery = 5 * time.Second

// WantsTake reports whether [Ledger.Take] may have something to write or to
// answer. It is false while all that is left needs bodies that are being read:
// they make their entries dirty.
func (l *Ledger) WantsTake() bool {
	switch {
	case l.lost || l.writing():
		return false
	case len(l.dirty) > 0:
		return true
	case len(l.waits) > 0:
		return slices.ContainsFunc(l.waits, func(w wait) bool { return !w.entry.lacksBody() })
	default:
		return l.closing && !l.closed && l.read.waiting == 0
	}
}

// writing reports whether a mutation is with the store.
func (l *Ledger) writing() bool { return len(l.flight) > 0 || l.metaSent }

// Take returns the mutation that brings the store to what the partition wants,
// or nil when there is nothing to write. The mutation belongs to the ledger; it
// is good until the matching call of [Ledger.Stored], [Ledger.NotStored],
// [Ledger.Lose] or [Ledger.Resolve], one of which must follow.
func (l *Ledger) Take(now time.Time) *row.Mutation {
	if l.lost || l.writing() {
		return nil
	}
	l.settleFresh()
	m := l.resetMutation()
	l.takeEntries(m)
	l.takeWaits()
	l.takeSweeps(m)
	l.takeMeta(m, now)
	if m.Empty() {
		return nil
	}
	m.Partition, m.Epoch = l.partition, l.epoch
	return m
}

func (l *Ledger) resetMutation() *row.Mutation {
	m := &l.mutation
	clear(m.PutTasks)
	clear(m.PutScheduled)
	clear(m.PutDead)
	*m = row.Mutation{
		DeleteRanges: m.DeleteRanges[:0], DeleteTasks: m.DeleteTasks[:0], DeleteScheduled: m.DeleteScheduled[:0],
		DeleteLeases: m.DeleteLeases[:0], DeleteDead: m.DeleteDead[:0],
		PutTasks: m.PutTasks[:0], PutScheduled: m.PutScheduled[:0], PutLeases: m.PutLeases[:0], PutDead: m.PutDead[:0],
	}
	l.folds = l.folds[:0]
	return m
}

func (l *Ledger) takeEntries(m *row.Mutation) {
	bytes, taken := 0, 0
	for _, e := range l.dirty {
		if len(l.flight) >= l.limits.MutationItems || bytes >= l.limits.MutationBytes {
			break
		}
		taken++
		e.dirty = false
		if e.forgotten || e.settled() {
			continue
		}
		if e.lacksBody() {
			l.fetch(e) // the body makes it dirty again
			continue
		}
		if e.needsBody() {
			bytes += e.size
		}
		l.write(m, e)
		e.inFlight = true
		l.flight = append(l.flight, e)
	}
	rest := copy(l.dirty, l.dirty[taken:])
	clear(l.dirty[rest:])
	l.dirty = l.dirty[:rest]
}

// write adds the difference between what the store has of e and what e wants.
func (l *Ledger) write(m *row.Mutation, e *Entry) {
	kind, due, g := e.wanted()
	e.sent = form{kind: kind, due: due, inRow: e.have.inRow, beside: e.have.beside}
	if kind == e.have.kind && due == e.have.due {
		m.PutLeases = append(m.PutLeases, e.lease())
		e.sent.beside = g
		return
	}
	l.unwrite(m, e)
	e.sent.inRow, e.sent.beside = g, grants{}
	switch kind {
	case row.Tasks:
		m.PutTasks = append(m.PutTasks, row.Task{Task: e.Task, Folded: l.fold(e, g)})
	case row.Scheduled:
		m.PutScheduled = append(m.PutScheduled, row.Task{Task: e.Task, Due: due, Folded: l.fold(e, g)})
	case row.Dead:
		m.PutDead = append(m.PutDead, row.DeadTask{Task: e.view(), Reason: e.death, At: l.lastWall})
	case row.Leases: // no task's own row
	}
}

// unwrite deletes the rows that the store has of e.
func (l *Ledger) unwrite(m *row.Mutation, e *Entry) {
	switch e.have.kind {
	case row.Tasks:
		m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: e.Priority, ID: e.ID})
		l.levels[e.Priority.Level()].deleted++
	case row.Scheduled:
		m.DeleteScheduled = append(m.DeleteScheduled, row.DueKey{Due: e.have.due, ID: e.ID})
	case row.Dead:
		m.DeleteDead = append(m.DeleteDead, e.ID)
	case row.Leases: // no task's own row
	}
	if !e.have.beside.none() {
		m.DeleteLeases = append(m.DeleteLeases, e.ID)
	}
}

// fold returns the lease record to put into a row, nil for a task without grants.
func (l *Ledger) fold(e *Entry, g grants) *row.Lease {
	if g.none() {
		return nil
	}
	l.folds = append(l.folds, e.lease())
	return &l.folds[len(l.folds)-1]
}

// takeWaits answers the callers whose entries need no commit any more, and puts
// those aside whose entries are in the mutation.
func (l *Ledger) takeWaits() {
	kept := l.waits[:0]
	for _, w := range l.waits {
		switch {
		case w.entry.inFlight:
			l.flightWaits = append(l.flightWaits, w)
		case w.entry.forgotten || w.entry.settled():
			w.entry.waits--
			l.answer(w.Answer)
		default:
			kept = append(kept, w)
		}
	}
	clear(l.waits[len(kept):])
	l.waits = kept
}

// takeMeta adds metadata when it must change, or when it is time and something
// is written anyway.
func (l *Ledger) takeMeta(m *row.Mutation, now time.Time) {
	switch {
	case len(m.PutTasks)+len(m.PutScheduled) > 0 && !l.meta.MayHold:
		l.meta.MayHold, l.meta.Listed = true, true
	case l.metaDirty:
	case l.mayRelease(m):
		l.meta.Released = true
		l.meta.MayHold = l.meta.MayHold && !l.Drained()
	case m.Empty() || l.mono(now)-l.metaAt < int64(metaEvery):
		return
	}
	l.metaAt = l.mono(now)
	l.metaDirty, l.metaSent = true, true
	l.meta.Backlog = l.Backlog()
	for i := range l.levels {
		l.meta.Acks[i] = l.levels[i].ack
	}
	meta := l.meta
	m.Meta = &meta
}

// mayRelease reports whether nothing but the release itself is left to write,
// and nobody waits for a lookup, who could not be answered after it.
func (l *Ledger) mayRelease(m *row.Mutation) bool {
	return l.closing && !l.closed && m.Empty() && len(l.dirty) == 0 && len(l.waits) == 0 && l.read.waiting == 0
}

// Close begins the end: no adds and no lookups any more, and once all is written
// a last commit that releases the partition. [Ledger.Closed] tells when that is
// stored.
func (l *Ledger) Close() { l.closing = true }

// Closed reports whether the partition was released in the store.
func (l *Ledger) Closed() bool { return l.closed }

// Drained reports whether the partition surely holds no task.
func (l *Ledger) Drained() bool { return len(l.tasks) == 0 && l.whole() }

// Stored tells that the mutation taken last is durable.
func (l *Ledger) Stored() {
	for _, e := range l.flight {
		l.learn(e, e.sent)
		l.landed(e)
	}
	for _, w := range l.flightWaits {
		w.entry.waits--
		l.answer(w.Answer)
	}
	clear(l.flightWaits)
	l.flightWaits = l.flightWaits[:0]
	if l.metaSent {
		l.metaSent, l.metaDirty = false, false
		l.closed = l.closed || l.meta.Released
	}
	l.endFlight()
}

// learn takes over what the store has of an entry, and counts dead rows.
func (l *Ledger) learn(e *Entry, now form) {
	if e.have.kind == row.Dead {
		l.dead--
	}
	if now.kind == row.Dead {
		l.dead++
	}
	e.have = now
}

// landed follows up on an entry whose form is known again.
func (l *Ledger) landed(e *Entry) {
	e.inFlight = false
	if e.have.kind != 0 || e.State == Finished {
		l.answerAdd(e, nil)
	}
	switch {
	case e.State == Finished && e.have.kind == 0, e.State == Dying && e.have.kind == row.Dead:
		l.forget(e)
	case !e.settled():
		l.markDirty(e)
	default:
		l.trim(e)
	}
}

// NotStored tells that the mutation taken last is surely not stored. Adds that
// no worker has seen are refused with err; all else joins the next mutation.
func (l *Ledger) NotStored(err error) {
	for _, e := range l.flight {
		l.bounced(e, err)
	}
	l.waitAgain()
	l.metaSent = false
	l.endFlight()
}

// bounced follows up on an entry whose change the store does not have.
func (l *Ledger) bounced(e *Entry, err error) {
	e.inFlight = false
	switch {
	case e.have.kind != 0:
		l.markDirty(e)
	case e.State == Finished:
		l.elide(e)
	case e.Delivery == 0 && e.adding:
		l.counts.Refused++
		l.answerAdd(e, task.Errorf(task.StoreUnavailable, "the store did not take the task: %w", err))
		l.forget(e)
	default:
		l.markDirty(e)
	}
}

// waitAgain puts the answers of the flight back to those that wait for the next one.
func (l *Ledger) waitAgain() {
	for _, w := range l.flightWaits {
		if w.entry.forgotten {
			l.answer(w.Answer) // elided: done without the store
			continue
		}
		l.waits = append(l.waits, w)
	}
	clear(l.flightWaits)
	l.flightWaits = l.flightWaits[:0]
}

func (l *Ledger) endFlight() {
	clear(l.flight)
	l.flight = l.flight[:0]
	l.settleFresh()
}

// Unresolved returns the ids of the mutation taken last, whose outcome is
// unknown. The partition must be acquired again, the ids read, and
// [Ledger.Resolve] called.
func (l *Ledger) Unresolved() []task.ID {
	ids := make([]task.ID, len(l.flight))
	for i, e := range l.flight {
		ids[i] = e.ID
	}
	return ids
}

// Resolve ends a mutation of unknown outcome: the partition was acquired again
// under epoch, and records tell what the store has of the unresolved ids. An
// epoch other than the next one means that somebody else held the partition in
// between; then nothing in memory can be trusted and the partition is lost.
func (l *Ledger) Resolve(epoch task.Epoch, meta row.Meta, records []row.Record) {
	if epoch != l.epoch+1 {
		l.Lose(task.Ownership{}, "another holder had the partition meanwhile")
		return
	}
	l.epoch, l.seq = epoch, 0
	l.metaSent = false
	l.metaDirty = meta.MayHold != l.meta.MayHold || meta.Listed != l.meta.Listed
	if l.meta.Released {
		l.meta.Released, l.meta.MayHold = false, true
		l.metaDirty = true
	}
	found := make(map[task.ID]form, len(records))
	for _, r := range records {
		found[r.ID] = formOf(r)
	}
	for _, e := range l.flight {
		if now := found[e.ID]; now != e.have {
			l.learn(e, now)
			l.landed(e)
		} else {
			l.bounced(e, errNotStored)
		}
	}
	l.waitAgain()
	l.endFlight()
}

// errNotStored is why adds are refused after an unknown outcome was resolved.
var errNotStored = errors.New("the outcome of its commit was unknown, and it turned out not to be stored")

// LostEpoch tells that another run holds the partition; the mutation taken last
// is surely not stored.
func (l *Ledger) LostEpoch(owner task.Ownership) {
	for _, e := range l.flight {
		e.inFlight = false
	}
	l.Lose(owner, "its lease epoch was taken over")
}

// Lose gives the partition up. Nothing that waits for the store will ever be
// stored by this run; what of a mutation in flight was, stays unknown.
func (l *Ledger) Lose(owner task.Ownership, why string) {
	if l.lost {
		return
	}
	l.lost = true
	notOwner := task.Errorf(task.NotOwner, "this node does not hold partition %s: %s", l.partition, why)
	notOwner.Owner = &owner
	l.lostErr = notOwner
	unknown := task.Errorf(task.OutcomeUnknown, "partition %s was lost before it was known whether the task is stored", l.partition)
	for _, id := range slices.Sorted(maps.Keys(l.tasks)) {
		e := l.tasks[id]
		l.unqueue(e)
		switch {
		case !e.adding:
		case e.State == Finished && !e.inFlight:
			l.answerAdd(e, nil) // the work was done; nothing is left to store
		case e.Delivery > 0 || e.inFlight:
			l.answerAdd(e, unknown)
		default:
			l.answerAdd(e, notOwner)
		}
	}
	for _, w := range append(l.flightWaits, l.waits...) {
		if e := w.entry; e.have.kind != 0 || e.inFlight || e.State != Finished {
			w.Err = notOwner
		}
		l.answer(w.Answer)
	}
	l.flightWaits, l.waits, l.flight, l.dirty = nil, nil, nil, nil
	l.failLookups(notOwner)
	l.metaSent = false
}
