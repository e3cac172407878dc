package ledger

import "github.com/taskring/taskring/matching/task"

// Counts are running totals since the load, and what is in memory now.
type Counts struct {
	Memory  int            // entries in memory
	ByState [Dying + 1]int // entries in memory by state

	// By priority, the first one first: ready entries in memory, and parts of the
	// totals below.
	ReadyBy            [task.Priorities]int
	AddedBy, GrantedBy [task.Priorities]uint64

	Added, Refused, Granted, Completed, Elided uint64
	Failed, Released, LeasesExpired            uint64
	Expired, Died                              uint64

	// Missing counts tasks whose row the store should have and does not. It
	// stays 0 unless the store breaks its laws or was tampered with.
	Missing uint64
}

// Counts returns the counts as of now.
func (l *Ledger) Counts() Counts { return l.counts }

// Backlog is how many tasks are not finished. It is exact while memory holds
// everything, else it leans on the estimate that was loaded.
func (l *Ledger) Backlog() int64 {
	s := &l.counts.ByState
	return int64(s[Ready]+s[Leased]+s[Delayed]) + l.spilledRows
}

// Dead is how many dead letters the store has, counted from those that were
// counted at the load.
func (l *Ledger) Dead() int64 { return l.dead }

// Bound is an id that none given out so far exceeds: the last one, or before the
// first add since the load one below all that are to come.
func (l *Ledger) Bound() task.ID { return task.MakeID(l.epoch, l.seq) }

// Level is how far a priority was read and settled.
type Level struct {
	Read task.ID // every task row at or below is in memory or gone
	Ack  task.ID // no task row exists at or below
}

// Levels returns the levels of all priorities, the first one first.
func (l *Ledger) Levels() (levels [task.Priorities]Level) {
	for i := range l.levels {
		levels[i] = Level{Read: l.levels[i].read, Ack: l.levels[i].ack}
	}
	return levels
}

// Windowed reports whether scheduled tasks exist that only the store has.
func (l *Ledger) Windowed() bool { return l.delayed.spilled }

// NextDue is when the first scheduled task is due. It is 0 when there is none, and
// for moments when only the store knows.
func (l *Ledger) NextDue() task.Micros {
	if len(l.due.items) == 0 {
		return 0
	}
	return l.due.items[0].Due
}

// ReadySpilled reports whether tasks that only the store has may be ready ones;
// otherwise all of them are scheduled.
func (l *Ledger) ReadySpilled() bool {
	for i := range l.levels {
		if l.levels[i].spilled {
			return true
		}
	}
	return false
}

// Spilled is about how many tasks only the store has. It is an estimate, of
// which only this is sure: it is not 0 while the store may have any.
func (l *Ledger) Spilled() int64 {
	if l.whole() {
		return l.spilledRows
	}
	return max(l.spilledRows, 1)
}

// whole reports whether memory has every task of the partition.
func (l *Ledger) whole() bool {
	return !l.delayed.spilled && !l.ReadySpilled()
}
