package ledger

import (
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// State is where a task stands in its life, as far as the partition wants it.
type State uint8

// The states. A finished or dying entry leaves memory as soon as the store has it.
const (
	Ready    State = iota + 1 // may be handed out
	Leased                    // with a worker
	Delayed                   // waits for its due time
	Finished                  // completed or expired: no row is wanted
	Dying                     // to become a dead row
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"none", "ready", "leased", "delayed", "finished", "dying"}[min(s, Dying)]
}

// Entry is one task in memory. Its fields are for reading; the ledger alone
// changes them.
type Entry struct {
	ID       task.ID
	Priority task.Priority
	Task     *task.Task // nil while only the store has the body
	State    State
	AddedAt  task.Micros // 0 while the body was never in memory

	Delivery uint32     // grants so far, also the latest grant's number
	Epoch    task.Epoch // of the latest grant
	Attempts uint32     // failures and lease expiries so far
	Duration time.Duration
	Identity string // of the worker that has or had the latest grant

	// Due is set once the task belongs in a scheduled row.
	Due task.Micros

	// Slot is for the owner of the ledger; offered tasks are found by it.
	Slot any

	have   form // what the store has, as far as known
	sent   form // what the mutation in flight makes of it
	key    [timerKinds]int64
	pos    [timerKinds]int32 // position in the timer heap + 1; 0 = not in it
	size   int               // of the body, for the budgets
	death  string
	failed string // the last failure of an entry whose body is not in memory

	add   Ticket // of the add, while its answer is due
	waits int32  // answers that wait for a commit of this entry, the add's aside

	adding    bool // add is set
	dirty     bool
	inFlight  bool // part of the mutation with the store
	offered   bool // counted in the read-ahead budget and offered to workers
	spilled   bool // leaves memory once stored
	cold      bool // ready, waits for room to have its body looked up
	fetching  bool // a lookup for the body is wanted or running
	pending   bool // counted as an add that the store does not have
	forgotten bool // removed from memory
}

// Grant returns the latest grant.
func (e *Entry) Grant() task.Grant {
	return task.Grant{ID: e.ID, Delivery: e.Delivery, Epoch: e.Epoch}
}

// Offered reports whether the task may be granted now.
func (e *Entry) Offered() bool { return e.offered }

// Fresh reports whether the store does not have the task yet.
func (e *Entry) Fresh() bool { return e.have.kind == 0 }

// Since is the time by which ready tasks of one priority are ordered: when it
// was added, or when it became due.
func (e *Entry) Since() task.Micros { return max(e.Due, e.AddedAt) }

// grants is what the store has, or should have, of an entry's grants. The zero
// value means that there were none.
type grants struct {
	delivery uint32
	attempts uint32
	live     bool
	epoch    task.Epoch // only while live
}

func (g grants) none() bool { return g == grants{} }

// form is what the store has of one task.
type form struct {
	kind   row.Kind    // Tasks, Scheduled, Dead, or 0 for no row
	due    task.Micros // key of a scheduled row
	inRow  grants      // folded into the row
	beside grants      // in the lease row
}

// grants returns what counts: the lease row overrules the row (law R3).
func (f form) grants() grants {
	if !f.beside.none() {
		return f.beside
	}
	return f.inRow
}

// wanted is the row and the grants that the entry's state calls for.
func (e *Entry) wanted() (kind row.Kind, due task.Micros, g grants) {
	switch e.State {
	case Finished:
		return 0, 0, grants{}
	case Dying:
		return row.Dead, 0, grants{}
	case Ready, Leased, Delayed: // a row with the grants so far, as follows
	}
	g = grants{delivery: e.Delivery, attempts: e.Attempts}
	if e.State == Leased {
		g.live, g.epoch = true, e.Epoch
	}
	if e.Due != 0 {
		return row.Scheduled, e.Due, g
	}
	return row.Tasks, 0, g
}

// setGrants takes over what a lease record says.
func (e *Entry) setGrants(lease row.Lease) {
	e.Delivery, e.Epoch, e.Attempts = lease.Delivery, lease.Epoch, lease.Attempts
	e.Duration, e.Identity = lease.Duration, lease.Identity
}

// setBody gives the entry its task.
func (e *Entry) setBody(t *task.Task) {
	e.Task, e.size, e.AddedAt, e.Priority = t, t.Size(), t.AddedAt, t.Priority
}

// settled reports whether the store has what the entry wants.
func (e *Entry) settled() bool {
	kind, due, g := e.wanted()
	return !e.inFlight && kind == e.have.kind && due == e.have.due && g == e.have.grants()
}

// needsBody reports whether writing the entry takes its body.
func (e *Entry) needsBody() bool {
	kind, due, _ := e.wanted()
	return kind != 0 && (kind != e.have.kind || due != e.have.due)
}

// lacksBody reports whether the entry cannot be written before its body is read.
func (e *Entry) lacksBody() bool { return e.Task == nil && !e.forgotten && e.needsBody() }

// lease returns the lease record of the entry's grants.
func (e *Entry) lease() row.Lease {
	return row.Lease{
		ID: e.ID, Priority: e.Priority, Due: e.Due,
		Delivery: e.Delivery, Epoch: e.Epoch, Attempts: e.Attempts,
		Duration: e.Duration, Live: e.State == Leased, Identity: e.Identity,
	}
}

func grantsOf(l *row.Lease) grants {
	if l == nil {
		return grants{}
	}
	g := grants{delivery: l.Delivery, attempts: l.Attempts, live: l.Live}
	if l.Live {
		g.epoch = l.Epoch
	}
	return g
}

// formOf is the form that a record of the store shows.
func formOf(r row.Record) form {
	if !r.Found {
		return form{}
	}
	f := form{kind: r.Kind, inRow: grantsOf(r.Task.Folded), beside: grantsOf(r.Lease)}
	if r.Kind == row.Scheduled {
		f.due = r.Task.Due
	}
	return f
}

// view returns the entry's task with the counters filled in, for a worker or a
// reader. It is nil while the body is not in memory.
func (e *Entry) view() *task.Task {
	if e.Task == nil {
		return nil
	}
	t := *e.Task
	t.Attempts, t.Deliveries = e.Attempts, e.Delivery
	return &t
}
