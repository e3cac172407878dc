package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// After a failed read the next one waits this long.
const readRetry = 200 * time.Millisecond

// Read is a read that the ledger wants: of single tasks, or of the next rows of
// a kind.
type Read struct {
	IDs  []task.ID // when not empty, else Scan
	Scan row.Scan
}

// op is an operation on a task that must be looked up first.
type op struct {
	tk      Ticket
	run     func(*Entry, time.Time)
	missing func(task.ID, Ticket)
}

// reading is the state of the one read that may run at a time.
type reading struct {
	running  bool
	now      Read
	done     map[task.ID]struct{} // left memory while the read ran (L6)
	deferred []*Entry             // to be evicted after the read
	wanted   []task.ID            // to be looked up next
	ops      map[task.ID][]op
	waiting  int // ops in all
}

func (r *reading) init() {
	r.done, r.ops = make(map[task.ID]struct{}), make(map[task.ID][]op)
}

func (r *reading) remember(id task.ID) {
	if r.running {
		r.done[id] = struct{}{}
	}
}

// lookUp runs the operation once the store was asked for the task.
func (l *Ledger) lookUp(id task.ID, o op) {
	a := Answer{Ticket: o.tk, ID: id}
	switch {
	case l.lost:
		a.Err = l.lostErr
	case l.closing:
		a.Err = l.closingErr()
	case id > task.MakeID(l.epoch, l.seq) || id.Seq() == 0:
		a.Err = task.Errorf(task.Invalid, "task id %s was never given out by partition %s", id, l.partition)
	case l.read.waiting >= l.limits.Lookups:
		a.Err = quota("matching.maxLookups", "%d operations wait for a look into the store, the limit is %d", l.read.waiting, l.limits.Lookups)
	default:
		if len(l.read.ops[id]) == 0 {
			l.read.wanted = append(l.read.wanted, id)
		}
		l.read.ops[id] = append(l.read.ops[id], o)
		l.read.waiting++
		return
	}
	l.answer(a)
}

// fetch wants the body of an entry that only the store has.
func (l *Ledger) fetch(e *Entry) {
	if !e.fetching {
		e.fetching = true
		l.read.wanted = append(l.read.wanted, e.ID)
	}
}

// fetchLater wants the body of a ready entry as soon as the read-ahead has room:
// when the workers of many tasks die, their bodies must not all come at once.
func (l *Ledger) fetchLater(e *Entry) {
	if !e.fetching && !e.cold {
		e.cold = true
		lv := &l.levels[e.Priority.Level()]
		lv.cold = append(lv.cold, e)
	}
}

// nextCold returns the next few tasks of a level whose bodies it has room for.
func (l *Ledger) nextCold(lv *level) []task.ID {
	var ids []task.ID
	for len(lv.cold) > 0 && len(ids) < minReady && l.hasRoom(lv, 2) {
		e := lv.cold[0]
		lv.cold[0], lv.cold = nil, lv.cold[1:]
		e.cold = false
		if !e.forgotten && !e.fetching && e.Task == nil {
			e.fetching = true
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func (l *Ledger) failLookups(err error) {
	for _, id := range slices.Sorted(maps.Keys(l.read.ops)) {
		for _, o := range l.read.ops[id] {
			l.answer(Answer{Ticket: o.tk, ID: id, Err: err})
		}
	}
	clear(l.read.ops)
	l.read.waiting = 0
}

// NextRead returns the read that is wanted now. It is then running, until
// [Ledger.LookedUp] or [Ledger.Scanned] brings its result; only one runs at a time.
func (l *Ledger) NextRead() (Read, bool) {
	if l.read.running || l.lost || l.retryReadAt != 0 {
		return Read{}, false
	}
	r, ok := l.nextRead()
	if ok {
		l.read.running, l.read.now = true, r
	}
	return r, ok
}

func (l *Ledger) nextRead() (Read, bool) {
	if n := min(len(l.read.wanted), 1000); n > 0 {
		ids := append([]task.ID(nil), l.read.wanted[:n]...)
		l.read.wanted = append(l.read.wanted[:0], l.read.wanted[n:]...)
		return Read{IDs: ids}, true
	}
	through := l.resolvedTo()
	for i := range l.levels {
		lv := &l.levels[i]
		if ids := l.nextCold(lv); len(ids) > 0 {
			return Read{IDs: ids}, true
		}
		if lv.spilled && lv.read < through && l.hasRoom(lv, 2) {
			return Read{Scan: row.Scan{
				Kind: row.Tasks, Priority: task.Priority(i + 1), After: row.Position{ID: lv.read}, Through: through,
				Items: max(l.limits.ReadAheadItems-lv.ready, minReady),
				Bytes: max(l.limits.ReadAheadBytes-l.readyHeld, 1),
			}}, true
		}
	}
	if w := &l.delayed; w.spilled && w.items <= l.limits.DelayedItems/2 {
		return Read{Scan: row.Scan{
			Kind: row.Scheduled, After: row.Position{Due: w.read.Due, ID: w.read.ID},
			Items: l.limits.DelayedItems - w.items, Bytes: max(l.limits.DelayedBytes-w.bytes, 1),
		}}, true
	}
	return Read{}, false
}

// ReadFailed ends the running read without a result. Operations that waited for
// it are answered; what else was wanted is tried again later.
func (l *Ledger) ReadFailed(err error, now time.Time) {
	for _, id := range l.read.now.IDs {
		for _, o := range l.read.ops[id] {
			l.answer(Answer{Ticket: o.tk, ID: id, Err: task.Errorf(task.StoreUnavailable, "looking up task %s: %w", id, err)})
			l.read.waiting--
		}
		delete(l.read.ops, id)
		if e := l.tasks[id]; e != nil && e.fetching {
			l.read.wanted = append(l.read.wanted, id)
		}
	}
	l.retryReadAt = l.mono(now) + int64(readRetry)
	l.endRead()
}

// endRead lets go of what had to stay while the read ran.
func (l *Ledger) endRead() {
	l.read.running, l.read.now = false, Read{}
	clear(l.read.done)
	deferred := l.read.deferred
	l.read.deferred = nil
	for _, e := range deferred {
		l.evict(e)
	}
	if l.delayed.items > 2*l.limits.DelayedItems {
		l.shrinkWindow()
	}
}

// LookedUp brings the records of the running lookup.
func (l *Ledger) LookedUp(records []row.Record, now time.Time) {
	for _, r := range records {
		if l.lost {
			break
		}
		e, held := l.tasks[r.ID], true
		if e == nil {
			_, gone := l.read.done[r.ID]
			if e, held = nil, false; r.Found && !gone {
				e = l.adopt(r)
			}
		} else if e.fetching {
			l.warm(e, r)
		}
		l.runOps(r.ID, e, now)
		if e != nil && !held {
			l.release(e)
		}
	}
	l.endRead()
}

func (l *Ledger) runOps(id task.ID, e *Entry, now time.Time) {
	ops := l.read.ops[id]
	delete(l.read.ops, id)
	l.read.waiting -= len(ops)
	for _, o := range ops {
		if e == nil || e.forgotten {
			o.missing(id, o.tk)
			continue
		}
		o.run(e, now)
	}
}

// adopt takes a task into memory that was looked up ahead of the reader.
func (l *Ledger) adopt(r row.Record) *Entry {
	e := &Entry{ID: r.ID, have: formOf(r)}
	lease := r.Lease
	switch r.Kind {
	case row.Dead:
		e.setBody(r.Dead.Task)
		e.death = r.Dead.Reason
		e.Attempts, e.Delivery = r.Dead.Task.Attempts, r.Dead.Task.Deliveries
		l.become(e, Dying)
	default:
		e.setBody(r.Task.Task)
		e.Due = r.Task.Due
		if lease == nil {
			lease = r.Task.Folded
		}
		l.become(e, Ready)
		if e.Due != 0 {
			l.become(e, Delayed)
		}
		l.spilledRows = max(l.spilledRows-1, 0)
	}
	l.insert(e)
	delete(l.counters, e.ID)
	if lease != nil {
		l.takeLease(e, *lease)
	}
	return e
}

// takeLease applies the grants that the store has to an entry that comes into memory.
func (l *Ledger) takeLease(e *Entry, lease row.Lease) {
	e.setGrants(lease)
	if lease.Live {
		l.become(e, Leased)
		l.leased += e.size
		l.leases.set(e, int64(lease.Duration)) // its whole duration, since the load
	}
}

// release lets go of an adopted entry that no operation changed and no worker
// holds: the reader will come to it in its turn.
func (l *Ledger) release(e *Entry) {
	idle := e.State == Ready || e.State == Delayed || e.State == Dying
	if e.forgotten || !idle || e.offered || e.pos[dueTimer] > 0 || e.spilled || !e.settled() {
		return
	}
	if e.State != Dying {
		l.spilledRows++
	}
	if l.has(e) {
		l.counters[e.ID] = e.lease()
	}
	l.forget(e)
	delete(l.read.done, e.ID) // it is not finished: the next read may bring it
}

// warm gives an entry in memory the body that was fetched for it.
func (l *Ledger) warm(e *Entry, r row.Record) {
	e.fetching = false
	t := r.Task.Task
	if r.Kind == row.Dead {
		t = r.Dead.Task
	}
	switch {
	case e.Task != nil || e.State == Finished:
		return
	case !r.Found: // against the laws of the store; holding on to it would help nobody
		l.counts.Missing++
		l.forget(e)
		return
	}
	e.setBody(t)
	e.setFailure(e.failed)
	e.failed = ""
	switch e.State {
	case Ready:
		l.makeReady(e)
	case Leased:
		l.leased += e.size
	case Delayed:
		if e.pos[dueTimer] > 0 {
			l.delayed.bytes += e.size
			l.watchExpiry(e)
		}
	case Finished, Dying: // nobody is to be offered it; its row is written below
	}
	if !e.settled() && !e.inFlight {
		l.markDirty(e)
	}
}

// Scanned brings the rows of the running scan.
func (l *Ledger) Scanned(page row.Page, now time.Time) {
	if l.lost {
		l.endRead()
		return
	}
	s := l.read.now.Scan
	for _, r := range page.Tasks {
		l.scanRow(r, now)
	}
	if s.Kind == row.Tasks {
		l.scannedTasks(s, page)
	} else {
		l.scannedDelayed(page)
	}
	l.endRead()
}

func (l *Ledger) scannedTasks(s row.Scan, page row.Page) {
	lv := &l.levels[s.Priority.Level()]
	to := s.Through
	if page.More {
		to = page.Tasks[len(page.Tasks)-1].Task.ID
	}
	lv.read = max(lv.read, to)
	if lv.read >= lv.spilledTo {
		lv.spilled = false
		l.recount()
	}
}

func (l *Ledger) scannedDelayed(page row.Page) {
	w := &l.delayed
	if !page.More {
		w.spilled = false
		l.recount()
		return
	}
	last := page.Tasks[len(page.Tasks)-1]
	w.read = row.DueKey{Due: last.Due, ID: last.Task.ID}
}

// recount sets the estimate right when memory holds everything.
func (l *Ledger) recount() {
	if l.whole() {
		l.spilledRows = 0
	}
}

// scanRow takes a row that the reader came to into memory.
func (l *Ledger) scanRow(r row.Task, now time.Time) {
	id := r.Task.ID
	if _, gone := l.read.done[id]; gone || l.tasks[id] != nil {
		return
	}
	e := &Entry{ID: id, Due: r.Due, have: form{kind: row.Tasks, inRow: grantsOf(r.Folded)}}
	if r.Due != 0 {
		e.have.kind, e.have.due = row.Scheduled, r.Due
	}
	e.setBody(r.Task)
	l.insert(e)
	l.become(e, Ready)
	l.spilledRows = max(l.spilledRows-1, 0)
	lease := r.Folded
	if ended, ok := l.counters[id]; ok {
		delete(l.counters, id)
		e.have.beside = grantsOf(&ended)
		lease = &ended
	}
	if lease != nil {
		l.takeLease(e, *lease)
	}
	switch wall := l.wall(now); {
	case e.State == Leased:
		l.trim(e)
	case r.Task.ExpiresAt != 0 && r.Task.ExpiresAt <= wall:
		l.counts.Expired++
		l.finish(e)
	case e.Due > wall:
		l.become(e, Delayed)
		l.enterWindow(e)
	default:
		l.makeReady(e)
	}
}
