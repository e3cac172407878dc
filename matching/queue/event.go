package queue

import (
	"time"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/ledger"
)

// followUps is what is to be done after the lock was given back.
type followUps struct {
	effects Effects     // answers and polls to hand out
	dirty   bool        // tell the lane
	read    ledger.Read // to start, when reads is set
	reads   bool
	wake    time.Time // zero: the timer stays as it is
	lost    bool      // tell that the partition is to be unloaded
	end     bool      // close done
}

// event lets f change the core under the lock and carries out what followed.
func (q *Queue) event(f func(now time.Time)) {
	q.mu.Lock()
	now := time.Now()
	q.applySettingsLocked()
	f(now)
	todo := q.settleLocked(now)
	q.mu.Unlock()
	q.carryOut(todo)
}

// applySettingsLocked hands changed settings to the core.
func (q *Queue) applySettingsLocked() {
	if q.cfg.Settings == nil {
		return
	}
	s := q.cfg.Settings()
	if s == q.mu.settings {
		return
	}
	q.mu.settings = s
	q.applyLimitsLocked()
}

// applyLimitsLocked hands the settings to the core, within the read-ahead budget.
func (q *Queue) applyLimitsLocked() {
	var s Settings
	if q.mu.settings != nil {
		s = *q.mu.settings
	}
	if q.mu.budget > 0 && (s.Limits.ReadAheadBytes == 0 || s.Limits.ReadAheadBytes > q.mu.budget) {
		s.Limits.ReadAheadBytes = q.mu.budget
	}
	q.mu.core.ledger.SetLimits(s.Limits)
	q.mu.core.matcher.Order = s.PollOrder
	q.mu.pollers.bound(s)
}

// settleLocked lets the core follow up on the event and collects what is to be
// done without the lock.
func (q *Queue) settleLocked(now time.Time) followUps {
	core := q.mu.core
	todo := followUps{effects: core.Settle(now), dirty: core.WantsTake()}
	if (core.Lost() || core.Closed()) && !q.mu.ended {
		q.mu.ended, todo.end = true, true
	}
	gone := core.Lost() || core.Ledger().Exhausted()
	if gone && !q.mu.reported {
		q.mu.reported, todo.lost = true, true
	}
	if q.mu.ended { // no reads and no timers any more, which would outlive the unload
		return todo
	}
	if todo.read, todo.reads = core.NextRead(); todo.reads {
		q.wg.Add(1)
	}
	if next, ok := core.NextTick(now); ok && (q.mu.armed.IsZero() || next.Before(q.mu.armed)) {
		q.mu.armed, todo.wake = next, next
	}
	return todo
}

// carryOut does what followed from an event. The lock is free (Q1).
func (q *Queue) carryOut(todo followUps) {
	for i := range todo.effects.Answers {
		a := &todo.effects.Answers[i]
		a.Call.(*Call).answer(*a) //nolint:forcetypeassert // the queue's tickets hold calls
	}
	for _, p := range todo.effects.Ended {
		close(p.done)
	}
	if todo.dirty {
		q.cfg.Dirty(q)
	}
	if todo.reads {
		go q.readAsked(todo.read)
	}
	if !todo.wake.IsZero() {
		q.cfg.Wake(q, todo.wake)
	}
	if todo.end {
		close(q.done)
	}
	if todo.lost {
		q.cfg.Lost(q)
	}
}

// readAsked carries out one read of the core.
func (q *Queue) readAsked(r ledger.Read) {
	defer q.wg.Done()
	page, records, err := backlog.Read(q.ctx, q.cfg.Store, q.cfg.Partition, r)
	if err != nil && q.ctx.Err() == nil {
		q.cfg.Logger.Warn("reading the backlog failed, it is tried again", "partition", q.cfg.Partition.String(), "error", err)
	}
	result := ReadResult{Read: r, Page: page, Records: records, Err: err}
	q.event(func(now time.Time) { q.mu.core.ReadDone(result, now) })
}
