package ledger

// Counts are running totals since the load, and what is in memory now.
type Counts struct {
	Memory  int            // entries in memory
	ByState [Dying + 1]int // entries in memory by state

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

// Windowed reports whether scheduled tasks exist that only the store has.
func (l *Ledger) Windowed() bool { return l.delayed.spilled }

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
	if l.delayed.spilled {
		return false
	}
	for i := range l.levels {
		if l.levels[i].spilled {
			return false
		}
	}
	return true
}
