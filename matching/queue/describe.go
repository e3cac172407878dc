package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// Stats describes a loaded partition. Ready, Leased and Delayed count what is in
// memory; Spilled is about how many tasks only the store has.
type Stats struct {
	Epoch   task.Epoch
	Ready   int64
	Leased  int64
	Delayed int64
	Spilled int64
	// ReadySpilled: ready tasks may be among those; otherwise all are delayed.
	ReadySpilled bool
	Backlog      int64 // tasks not finished: all of the above

	Dead     int64 // dead letters; counted up to a bound at the load, and from there on
	DeadMore bool  // there were more at the load than were counted

	Bound      task.ID // no id above it was given out
	Priorities [task.Priorities]PriorityStats

	// OldestReady is since when the longest-waiting ready task waits; 0 = none.
	OldestReady task.Micros
	// NextDue is when the first delayed task is due; 0 = there is none, or only
	// the store knows.
	NextDue task.Micros
	// Empty is certain: the partition holds no task, ready, delayed or leased.
	Empty bool
	// LeasesLimited: ready tasks wait because matching.maxLeases is reached.
	LeasesLimited bool

	WaitingPolls int
	Pollers      []Poller
	LastUsed     time.Time
	Counts       ledger.Counts
}

// PriorityStats describes one priority of a loaded partition.
type PriorityStats struct {
	Ready       int64       // in memory
	OldestReady task.Micros // as in [Stats]
	Level       ledger.Level
}

// Estimate returns how many tasks are ready and how many are delayed. What only
// the store has counts as ready, unless it is surely delayed: more is not known
// of it.
func (s *Stats) Estimate() (ready, delayed int64) {
	if s.ReadySpilled {
		return s.Ready + s.Spilled, s.Delayed
	}
	return s.Ready, s.Delayed + s.Spilled
}

// Describe returns what the partition looks like now.
func (q *Queue) Describe() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	core := q.mu.core
	c := core.ledger.Counts()
	oldest, _ := core.matcher.Oldest()
	s := Stats{
		Epoch: core.ledger.Epoch(), Dead: core.ledger.Dead(), DeadMore: q.cfg.Opened.DeadMore, Bound: core.ledger.Bound(),
		Ready: int64(c.ByState[ledger.Ready]), Leased: int64(c.ByState[ledger.Leased]), Delayed: int64(c.ByState[ledger.Delayed]),
		Spilled: core.ledger.Spilled(), Backlog: core.ledger.Backlog(),
		ReadySpilled: core.ledger.ReadySpilled(), NextDue: core.ledger.NextDue(),
		OldestReady: oldest, Empty: core.ledger.Drained(), LeasesLimited: core.matcher.Tasks() > 0 && !core.ledger.CanGrant(),
		WaitingPolls: core.matcher.Polls(), Pollers: q.mu.pollers.recent(time.Now()),
		LastUsed: q.mu.active, Counts: c,
	}
	for i, level := range core.ledger.Levels() {
		oldest, _ := core.matcher.OldestOf(task.Priority(i + 1))
		s.Priorities[i] = PriorityStats{Ready: int64(c.ReadyBy[i]), OldestReady: oldest, Level: level}
	}
	return s
}

// IdleSince returns since when nobody uses the partition, or false while polls
// wait, workers hold tasks, or something is on its way to the store.
func (q *Queue) IdleSince() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	core := q.mu.core
	busy := core.matcher.Polls() > 0 || core.ledger.Counts().ByState[ledger.Leased] > 0 || core.WantsTake()
	return q.mu.active, !busy
}

// Description is one task as it stands.
type Description struct {
	Task        *task.Task
	State       ledger.State
	Attempts    uint32
	Deliveries  uint32
	Due         task.Micros
	Identity    string        // of the worker that has, or last had, the task
	Lease       task.Grant    // Leased: the grant ...
	Duration    time.Duration // ... how long its lease runs between heartbeats ...
	Left        time.Duration // ... and still runs now
	DeathReason string
	DiedAt      task.Micros
}

// Get describes a task of the partition, or returns a NotFound error.
func (q *Queue) Get(ctx context.Context, id task.ID) (Description, error) {
	if d, ok := q.inMemory(id); ok {
		return d, nil
	}
	records, err := q.cfg.Store.Get(ctx, q.cfg.Partition, []task.ID{id})
	if err != nil {
		return Description{}, task.Errorf(task.StoreUnavailable, "reading task %s: %w", id, err)
	}
	if d, ok := q.inMemory(id); ok { // it came into memory meanwhile; memory is newer
		return d, nil
	}
	if !records[0].Found {
		return Description{}, task.Errorf(task.NotFound, "partition %s has no task %s: it is finished, or never was", q.cfg.Partition, id)
	}
	return q.current(describe(records[0])), nil
}

// inMemory describes a task whose body is in memory.
func (q *Queue) inMemory(id task.ID) (Description, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.mu.core.ledger.Find(id)
	if e == nil || e.Task == nil || e.State == ledger.Finished {
		return Description{}, false
	}
	d := Description{Task: e.Task}
	q.fromBooksLocked(&d, e)
	if e.State == ledger.Delayed {
		d.Due = e.Due
	}
	return d, true
}

// fromBooksLocked fills in what the ledger knows better than the store.
func (q *Queue) fromBooksLocked(d *Description, e *ledger.Entry) {
	d.State, d.Attempts, d.Deliveries, d.Identity = e.State, e.Attempts, e.Delivery, e.Identity
	if e.State == ledger.Leased {
		d.Lease, d.Duration, d.Left = e.Grant(), e.Duration, q.mu.core.ledger.LeaseLeft(e, time.Now())
	}
}

// describe describes a task from what the store has of it.
func describe(r row.Record) Description {
	if r.Kind == row.Dead {
		t := r.Dead.Task
		return Description{
			Task: t, State: ledger.Dying, Attempts: t.Attempts, Deliveries: t.Deliveries,
			DeathReason: r.Dead.Reason, DiedAt: r.Dead.At,
		}
	}
	d := Description{Task: r.Task.Task, State: ledger.Ready}
	if r.Task.Due != 0 {
		d.State, d.Due = ledger.Delayed, r.Task.Due
	}
	lease := r.Lease
	if lease == nil {
		lease = r.Task.Folded
	}
	if lease != nil {
		d.Attempts, d.Deliveries, d.Identity = lease.Attempts, lease.Delivery, lease.Identity
		if lease.Live {
			d.State = ledger.Leased
		}
	}
	return d
}

// PeekRequest asks for a page of tasks in the order of hand-out, without taking
// them: first task rows by priority, then scheduled rows by due time, or dead
// rows alone.
type PeekRequest struct {
	Kind     row.Kind      // Tasks, Scheduled or Dead
	Priority task.Priority // Tasks only
	After    row.Position
	Items    int
}

// Peek returns a page of the tasks that the store has, and whether there are
// more. Tasks that were added within the last moments may be missing.
func (q *Queue) Peek(ctx context.Context, r PeekRequest) ([]Description, bool, error) {
	const maxBytes = 2 << 20
	page, err := q.cfg.Store.Scan(ctx, q.cfg.Partition, row.Scan{
		Kind: r.Kind, Priority: r.Priority, After: r.After, Items: r.Items, Bytes: maxBytes,
	})
	if err != nil {
		return nil, false, fmt.Errorf("reading partition %s: %w", q.cfg.Partition, err)
	}
	var ds []Description
	for _, t := range page.Tasks {
		ds = append(ds, q.current(describe(row.Record{Found: true, Kind: r.Kind, Task: t})))
	}
	for _, d := range page.Dead {
		ds = append(ds, describe(row.Record{Found: true, Kind: row.Dead, Dead: d}))
	}
	return ds, page.More, nil
}

// current brings a description up to date with memory, which knows leases.
func (q *Queue) current(d Description) Description {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.mu.core.ledger.Find(d.Task.ID); e != nil {
		q.fromBooksLocked(&d, e)
	}
	return d
}
