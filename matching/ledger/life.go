package ledger

import (
	"time"

	"github.com/taskring/taskring/matching/task"
)

// maxWaits bounds the callers that repeat themselves while the store is slow.
const maxWaits = 16

// maxSeq is the last sequence number that an epoch can give out.
const maxSeq = 1<<task.SeqBits - 1

// Failure is what a worker says when a task failed.
type Failure struct {
	Message      string
	NonRetryable bool          // the task is dead at once
	RetryAfter   time.Duration // > 0 replaces the retry policy's rest
}

// Admit reports why new tasks of so many items and bytes cannot be accepted
// now, or nil.
func (l *Ledger) Admit(items, bytes int) error {
	switch {
	case l.lost:
		return l.lostErr
	case l.closing:
		return l.closingErr()
	case l.seq+uint64(items) > maxSeq:
		return task.Errorf(task.NotReady, "partition %s has used up the ids of epoch %d and must be loaded again", l.partition, l.epoch)
	case l.pending.items > 0 && l.pending.items+items > l.limits.PendingItems:
		return quota("matching.maxPendingItems", "%d adds wait for the store already, the limit is %d", l.pending.items, l.limits.PendingItems)
	case l.pending.bytes > 0 && l.pending.bytes+bytes > l.limits.PendingBytes:
		return quota("matching.maxPendingBytes", "adds of %d bytes wait for the store already, the limit is %d", l.pending.bytes, l.limits.PendingBytes)
	}
	return nil
}

// Exhausted reports whether the epoch is out of ids: the partition must be
// unloaded and loaded again.
func (l *Ledger) Exhausted() bool { return l.seq >= maxSeq }

func (l *Ledger) closingErr() error {
	return task.Errorf(task.PartitionClosing, "partition %s is being unloaded", l.partition)
}

func quota(limit, format string, args ...any) error {
	err := task.Errorf(task.Quota, format, args...)
	err.Limit = &task.Limit{Name: limit, RetryAfter: 100 * time.Millisecond}
	return err
}

// Add accepts a task: it gives it its id and promises an answer by the ticket.
// The caller asked [Ledger.Admit] first, and hands the task over.
func (l *Ledger) Add(t *task.Task, now time.Time, tk Ticket) *Entry {
	wall := l.wall(now)
	l.seq++
	t.ID = task.MakeID(l.epoch, l.seq)
	if t.AddedAt == 0 {
		t.AddedAt = wall
	}
	e := &Entry{ID: t.ID, add: tk, adding: true, pending: true}
	e.setBody(t)
	l.insert(e)
	l.counts.Added++
	l.counts.AddedBy[e.Priority.Level()]++
	l.pending.items++
	l.pending.bytes += e.size
	l.fresh = append(l.fresh, e)
	l.markDirty(e)
	switch lv := &l.levels[e.Priority.Level()]; {
	case t.NotBefore > wall:
		e.Due = t.NotBefore
		l.delay(e)
	case l.admits(lv):
		lv.read = e.ID
		l.makeReady(e)
	default:
		lv.spilled, lv.spilledTo = true, e.ID
		l.become(e, Ready)
		e.spilled = true
	}
	return e
}

// Grant hands a ready task to a worker for duration (0 = what the task or the
// limits say). It is false when the task turned out not to be deliverable: it
// expired or its deliveries are used up.
func (l *Ledger) Grant(e *Entry, identity string, duration time.Duration, now time.Time) (task.Grant, bool) {
	if e.Task.ExpiresAt != 0 && e.Task.ExpiresAt <= l.wall(now) {
		l.expire(e)
		return task.Grant{}, false
	}
	if e.Delivery >= l.limits.MaxDeliveries {
		l.die(e, "delivered too often (matching.maxDeliveries)")
		return task.Grant{}, false
	}
	l.unoffer(e)
	l.expiries.remove(e)
	l.become(e, Leased)
	e.Delivery++
	e.Epoch = l.epoch
	e.Identity = identity
	e.Duration = firstPositive(duration, e.Task.LeaseDuration, l.limits.LeaseDuration)
	l.leased += e.size
	l.leases.set(e, l.mono(now)+int64(e.Duration))
	l.markDirty(e)
	l.counts.Granted++
	l.counts.GrantedBy[e.Priority.Level()]++
	return e.Grant(), true
}

func firstPositive(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d > 0 {
			return d
		}
	}
	return 0
}

// CanGrant reports whether one more task may be with a worker.
func (l *Ledger) CanGrant() bool { return len(l.leases.items) < l.limits.MaxLeases }

// Complete settles a grant as done. See the answer table in
// docs/reliability.md, which has one test per row.
func (l *Ledger) Complete(g task.Grant, tk Ticket) {
	if e := l.tasks[g.ID]; e != nil && !l.lost {
		l.completeEntry(e, g, tk)
		return
	}
	l.lookUp(g.ID, op{tk: tk, missing: l.completeMissing, run: func(e *Entry, _ time.Time) {
		l.completeEntry(e, g, tk)
	}})
}

func (l *Ledger) completeMissing(id task.ID, tk Ticket) {
	l.answer(Answer{Ticket: tk, ID: id, AlreadyFinished: true})
}

func (l *Ledger) completeEntry(e *Entry, g task.Grant, tk Ticket) {
	a := Answer{Ticket: tk, ID: e.ID}
	switch {
	case e.State == Leased && e.Grant() != g:
		a.Err = leaseLost(g, e)
		l.answer(a)
	case e.State == Finished && e.waits >= maxWaits:
		a.Err = task.Errorf(task.OutcomeUnknown, "%d callers wait for the completion of task %s to be stored already", e.waits, e.ID)
		l.answer(a)
	case e.State == Finished:
		a.AlreadyFinished = true
		l.await(e, a)
	default:
		l.finish(e)
		l.counts.Completed++
		l.afterFinish(e, a)
	}
}

// afterFinish answers the caller that finished the task: at once when the store
// never saw the task, else with the commit that deletes its row.
func (l *Ledger) afterFinish(e *Entry, a Answer) {
	if e.have.kind == 0 && !e.inFlight {
		l.elide(e)
		l.answer(a)
		return
	}
	l.await(e, a)
}

// await gives the answer once a commit covers what e is now.
func (l *Ledger) await(e *Entry, a Answer) {
	e.waits++
	l.waits = append(l.waits, wait{entry: e, Answer: a})
}

// elide forgets a finished task that the store never saw, and answers everybody
// who waits for it.
func (l *Ledger) elide(e *Entry) {
	l.counts.Elided++
	l.answerAdd(e, nil)
	l.forget(e)
	if e.waits == 0 {
		return
	}
	kept := l.waits[:0]
	for _, w := range l.waits {
		if w.entry == e {
			l.answer(w.Answer)
			continue
		}
		kept = append(kept, w)
	}
	clear(l.waits[len(kept):])
	l.waits = kept
}

// answerAdd answers the add of e, when that is still due.
func (l *Ledger) answerAdd(e *Entry, err error) {
	if e.pending {
		e.pending = false
		l.pending.items--
		l.pending.bytes -= e.size
	}
	if e.adding {
		e.adding = false
		l.answer(Answer{Ticket: e.add, ID: e.ID, Err: err, Matched: e.Delivery > 0})
		e.add = Ticket{}
	}
}

// Fail settles a grant as failed: the task rests and is tried again, or dies.
func (l *Ledger) Fail(g task.Grant, f Failure, now time.Time, tk Ticket) {
	l.withEntry(g.ID, now, op{tk: tk, missing: l.missing, run: func(e *Entry, now time.Time) {
		if e.State != Leased || e.Grant() != g {
			l.answer(Answer{Ticket: tk, ID: e.ID, Err: leaseLost(g, e)})
			return
		}
		a := Answer{Ticket: tk, ID: e.ID}
		a.Dead, a.NextAttempt = l.failEntry(e, f, now)
		l.await(e, a)
	}})
}

func (l *Ledger) failEntry(e *Entry, f Failure, now time.Time) (dead bool, next task.Micros) {
	l.endLease(e)
	e.Attempts++
	e.setFailure(f.Message)
	l.counts.Failed++
	policy, limit := task.RetryPolicy{}, l.limits.MaxAttempts
	if e.Task != nil {
		policy = e.Task.Retry
		limit = e.maxAttempts(limit)
	}
	switch {
	case f.NonRetryable:
		l.die(e, "failed, not to be retried: "+f.Message)
		return true, 0
	case e.Attempts >= limit && e.Task != nil:
		l.die(e, "failed in its last attempt (max_attempts): "+f.Message)
		return true, 0
	}
	rest := f.RetryAfter
	if rest <= 0 {
		rest = l.backoff(policy, e.Attempts)
	}
	// A due time of its own even when the rest is nothing: the row moves.
	e.Due = max(l.wall(now).Add(rest), e.Due+1)
	l.delay(e)
	l.markDirty(e)
	return false, e.Due
}

// maxAttempts is the task's own limit, or the default.
func (e *Entry) maxAttempts(limit uint32) uint32 {
	if e.Task.MaxAttempts > 0 {
		return e.Task.MaxAttempts
	}
	return limit
}

// setFailure records what the last failure said, in a copy of the task: others
// may be reading the old one.
func (e *Entry) setFailure(message string) {
	if message == "" {
		return
	}
	if e.Task == nil {
		e.failed = message
		return
	}
	t := *e.Task
	t.LastFailure = message
	e.Task = &t
}

// withEntry runs the operation on a task in memory, or once it was looked up.
func (l *Ledger) withEntry(id task.ID, now time.Time, o op) {
	if e := l.tasks[id]; e != nil && !l.lost {
		o.run(e, now)
		return
	}
	l.lookUp(id, o)
}

// Release gives a grant back: the task is ready again, no attempt is counted.
func (l *Ledger) Release(g task.Grant, now time.Time, tk Ticket) {
	l.withEntry(g.ID, now, op{tk: tk, missing: l.missing, run: func(e *Entry, _ time.Time) {
		if e.State != Leased || e.Grant() != g {
			l.answer(Answer{Ticket: tk, ID: e.ID, Err: leaseLost(g, e)})
			return
		}
		l.endLease(e)
		l.counts.Released++
		l.makeReady(e)
		l.markDirty(e)
		l.await(e, Answer{Ticket: tk, ID: e.ID})
	}})
}

// Heartbeat runs the lease of a grant anew.
func (l *Ledger) Heartbeat(g task.Grant, now time.Time, tk Ticket) {
	l.withEntry(g.ID, now, op{tk: tk, missing: l.missing, run: func(e *Entry, now time.Time) {
		if e.State != Leased || e.Grant() != g {
			l.answer(Answer{Ticket: tk, ID: e.ID, Err: leaseLost(g, e)})
			return
		}
		l.leases.set(e, l.mono(now)+int64(e.Duration))
		l.answer(Answer{Ticket: tk, ID: e.ID, Duration: e.Duration})
	}})
}

func (l *Ledger) missing(id task.ID, tk Ticket) {
	l.answer(Answer{Ticket: tk, ID: id, Err: task.Errorf(task.LeaseLost, "task %s is finished, or dead", id)})
}

func leaseLost(g task.Grant, e *Entry) error {
	if e.State != Leased {
		return task.Errorf(task.LeaseLost, "the lease of delivery %d of task %s has ended; the task is %s", g.Delivery, g.ID, e.State)
	}
	return task.Errorf(task.LeaseLost, "delivery %d of task %s was followed by delivery %d", g.Delivery, g.ID, e.Delivery)
}

// endLease takes a leased entry out of the lease books.
func (l *Ledger) endLease(e *Entry) {
	l.leases.remove(e)
	if e.Task != nil {
		l.leased -= e.size
	}
}

// expireLease makes a task whose worker was not heard of ready again, or dead.
func (l *Ledger) expireLease(e *Entry) {
	l.endLease(e)
	l.counts.LeasesExpired++
	e.Attempts++
	l.markDirty(e)
	if e.Task != nil && e.Attempts >= e.maxAttempts(l.limits.MaxAttempts) {
		l.die(e, "its lease expired in its last attempt (max_attempts)")
		return
	}
	l.makeReady(e)
}

// expire finishes a task whose expiry passed before it was handed out.
func (l *Ledger) expire(e *Entry) {
	l.counts.Expired++
	l.finish(e)
	if e.have.kind == 0 && !e.inFlight {
		l.elide(e)
	}
}

// finish makes the store's copy go away.
func (l *Ledger) finish(e *Entry) {
	if e.State == Leased {
		l.endLease(e)
	}
	l.unqueue(e)
	l.become(e, Finished)
	e.spilled = false
	l.markDirty(e)
}

// die makes the task a dead letter.
func (l *Ledger) die(e *Entry, reason string) {
	l.unqueue(e)
	l.become(e, Dying)
	e.death, e.spilled = reason, false
	l.counts.Died++
	l.markDirty(e)
	if e.Task == nil {
		l.fetch(e)
	}
}
