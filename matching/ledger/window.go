package ledger

import (
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// minReady is how many ready tasks of a priority memory takes whatever the byte
// budget says, so that a huge task cannot block its level.
const minReady = 16

// level is one priority's part of the backlog of task rows.
type level struct {
	read      task.ID  // every task row at or below is in memory or gone (L3)
	ack       task.ID  // no task row exists at or below
	spilled   bool     // rows above read may exist that are not in memory
	spilledTo task.ID  // highest id that was left to the store alone
	ready     int      // offered tasks
	cold      []*Entry // ready but for their bodies, which are read when there is room
	deleted   int      // task rows deleted since the last sweep
}

// delayedWindow is the part of the scheduled rows that is in memory: those with
// the earliest due times.
type delayedWindow struct {
	read    row.DueKey // while spilled: every scheduled row at or below is in memory or gone (L4)
	high    row.DueKey // no entry in the window is above
	spilled bool
	items   int
	bytes   int // of the bodies
}

// admits reports whether a new task of the level joins memory.
func (l *Ledger) admits(lv *level) bool { return !lv.spilled && l.hasRoom(lv, 1) }

// hasRoom reports whether the level's read-ahead is below the given part of its limits.
func (l *Ledger) hasRoom(lv *level, part int) bool {
	return lv.ready < minReady ||
		(lv.ready < l.limits.ReadAheadItems/part && l.readyHeld < l.limits.ReadAheadBytes/part)
}

// become changes the entry's state and keeps the counts.
func (l *Ledger) become(e *Entry, s State) {
	l.count(e, -1)
	e.State = s
	l.count(e, 1)
}

// count adds n to the counts of the entry's state.
func (l *Ledger) count(e *Entry, n int) {
	l.counts.ByState[e.State] += n
	if e.State == Ready {
		l.counts.ReadyBy[e.Priority.Level()] += n
	}
}

// makeReady makes the task available to workers, once its body is in memory.
func (l *Ledger) makeReady(e *Entry) {
	l.become(e, Ready)
	if e.Task == nil {
		l.fetchLater(e)
		return
	}
	if e.Attempts >= e.maxAttempts(l.limits.MaxAttempts) {
		l.die(e, "no attempts left (max_attempts)")
		return
	}
	e.offered = true
	l.levels[e.Priority.Level()].ready++
	l.readyHeld += e.size
	l.watchExpiry(e)
	l.out.Offer = append(l.out.Offer, e)
}

func (l *Ledger) watchExpiry(e *Entry) {
	if e.Task != nil && e.Task.ExpiresAt != 0 {
		l.expiries.set(e, int64(e.Task.ExpiresAt))
	}
}

// unoffer takes the entry out of the read-ahead budget.
func (l *Ledger) unoffer(e *Entry) {
	if e.offered {
		e.offered = false
		l.levels[e.Priority.Level()].ready--
		l.readyHeld -= e.size
	}
}

// unqueue takes the entry out of whatever it waits in.
func (l *Ledger) unqueue(e *Entry) {
	if e.offered {
		l.unoffer(e)
		l.out.Withdraw = append(l.out.Withdraw, e)
	}
	if e.pos[dueTimer] > 0 {
		l.due.remove(e)
		l.uncountDelayed(e)
	}
	l.expiries.remove(e)
}

// delay puts a delayed entry into the window, or marks it to be left to the store.
func (l *Ledger) delay(e *Entry) {
	l.become(e, Delayed)
	w, key := &l.delayed, row.DueKey{Due: e.Due, ID: e.ID}
	if !w.spilled && w.items >= l.limits.DelayedItems && w.high.Less(key) {
		w.spilled, w.read = true, w.high
	}
	if w.spilled && w.read.Less(key) {
		e.spilled = true
		return
	}
	l.enterWindow(e)
}

func (l *Ledger) enterWindow(e *Entry) {
	w, key := &l.delayed, row.DueKey{Due: e.Due, ID: e.ID}
	e.spilled = false
	l.due.set(e, int64(e.Due))
	w.items++
	if e.Task != nil {
		w.bytes += e.size
	}
	if w.high.Less(key) {
		w.high = key
	}
	l.watchExpiry(e)
	if w.items > 2*l.limits.DelayedItems && !l.read.running {
		l.shrinkWindow()
	}
}

// uncountDelayed follows an entry's leaving of the due heap.
func (l *Ledger) uncountDelayed(e *Entry) {
	l.delayed.items--
	if e.Task != nil {
		l.delayed.bytes -= e.size
	}
}

// shrinkWindow leaves the later half of an overfull window to the store. It
// takes tasks that come with ever earlier due times to get here.
func (l *Ledger) shrinkWindow() {
	byDue := slices.Clone(l.due.items)
	slices.SortFunc(byDue, func(a, b *Entry) int {
		if (row.DueKey{Due: a.Due, ID: a.ID}).Less(row.DueKey{Due: b.Due, ID: b.ID}) {
			return -1
		}
		return 1
	})
	last := byDue[l.limits.DelayedItems-1]
	w := &l.delayed
	w.spilled, w.read = true, row.DueKey{Due: last.Due, ID: last.ID}
	w.high = w.read
	for _, e := range byDue[l.limits.DelayedItems:] {
		l.unqueue(e)
		e.spilled = true
		if e.settled() {
			l.evict(e)
		}
	}
}

// trim lets go of what memory need not hold of an entry that the store has.
func (l *Ledger) trim(e *Entry) {
	switch {
	case e.spilled && l.read.running:
		l.read.deferred = append(l.read.deferred, e)
	case e.spilled:
		l.evict(e)
	case e.State == Leased && e.Task != nil && l.leased > l.limits.LeasedBytes:
		l.leased -= e.size
		e.Task = nil
	case e.pos[dueTimer] > 0 && e.Task != nil && l.delayed.bytes > l.limits.DelayedBytes:
		l.delayed.bytes -= e.size
		l.expiries.remove(e)
		e.Task = nil
	}
}

// evict leaves a spilled entry to the store, unless the reader has passed it
// meanwhile: then nobody would read it again.
func (l *Ledger) evict(e *Entry) {
	if !e.spilled || e.forgotten || !e.settled() {
		return
	}
	switch {
	case e.State == Delayed && (!l.delayed.spilled || !l.delayed.read.Less(row.DueKey{Due: e.Due, ID: e.ID})):
		l.enterWindow(e)
	case e.State == Ready && e.ID <= l.levels[e.Priority.Level()].read:
		e.spilled = false
		l.makeReady(e)
	default:
		if l.has(e) {
			l.counters[e.ID] = e.lease()
		}
		l.forget(e)
		l.spilledRows++
	}
}

// has reports whether the store has a lease row that must be remembered when
// the entry leaves memory.
func (l *Ledger) has(e *Entry) bool { return !e.have.beside.none() }

// settleFresh drops the adds from the front whose fate in the store is known.
func (l *Ledger) settleFresh() {
	n := 0
	for n < len(l.fresh) && (l.fresh[n].forgotten || l.fresh[n].have.kind != 0) {
		n++
	}
	if n == 0 {
		return
	}
	rest := copy(l.fresh, l.fresh[n:])
	clear(l.fresh[rest:])
	l.fresh = l.fresh[:rest]
}

// resolvedTo is the highest id below which every add is settled (L5).
func (l *Ledger) resolvedTo() task.ID {
	if len(l.fresh) > 0 {
		return l.fresh[0].ID - 1
	}
	return task.MakeID(l.epoch, l.seq)
}
