// Package row says what is written of a partition: the kinds of rows, and the
// mutation that changes them atomically. The ledger decides mutations, the
// stores apply them; this package is the values they share, and the codec of
// the variable part of a row.
//
// # Rows of a partition
//
//	kind       key             holds
//	task       priority, id    the task; its grant, when it was matched before the row was written
//	scheduled  due, id         the task: delayed by its producer, or failed and waiting for its next attempt
//	lease      id              the task's grants so far, without its payload
//	dead       id              the task, and why it died
//	request    id of request   the id of the task that was added with it, for a while
//	meta       -               one per partition: holder, levels, whether rows may exist
//
// # Laws
//
//	R1  A task has a row in at most one of task, scheduled and dead.
//	R2  A task row is written once. What changes later is in its lease row, or
//	    the task moves to scheduled.
//	R3  A lease row exists only beside a task or scheduled row, and overrules
//	    the grants folded into that row.
//	R4  No task row is written where a range was deleted: ids are never used
//	    twice, and a range covers only ids whose row is gone for good.
package row

import (
	"time"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Kind names a kind of rows that can be scanned.
type Kind uint8

// The kinds of rows that hold tasks or leases.
const (
	Tasks Kind = iota + 1
	Scheduled
	Leases
	Dead
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"none", "tasks", "scheduled", "leases", "dead"}[min(k, 5-1)]
}

// Lease is what is written of a task's grants. Duration, not deadline: after a
// load each live lease runs its whole duration again.
type Lease struct {
	ID       task.ID
	Priority task.Priority // where the task's row is: task (Due 0) ...
	Due      task.Micros   // ... or scheduled under this due time
	Delivery uint32        // the latest grant's number
	Epoch    task.Epoch    // the latest grant's epoch
	Attempts uint32        // failures and lease expiries so far
	Duration time.Duration
	Live     bool   // false: the latest grant ended, the row only keeps the counters
	Identity string // of the worker
}

// Grant returns the latest grant.
func (l *Lease) Grant() task.Grant {
	return task.Grant{ID: l.ID, Delivery: l.Delivery, Epoch: l.Epoch}
}

// Task is a task or scheduled row. Due is set in a scheduled row and 0 in a task
// row. Folded holds the task's grants so far, when there were any as the row was
// written; it costs no record of its own. The task's own Attempts and
// Deliveries are not stored: Folded or the lease row has them.
type Task struct {
	Task   *task.Task
	Due    task.Micros
	Folded *Lease
}

// DeadTask is a dead row.
type DeadTask struct {
	Task   *task.Task
	Reason string // why it died, for people
	At     task.Micros
}

// TaskKey is the key of a task row.
type TaskKey struct {
	Priority task.Priority
	ID       task.ID
}

// DueKey is the key of a scheduled row.
type DueKey struct {
	Due task.Micros
	ID  task.ID
}

// Less orders scheduled rows: by due time, then by id.
func (k DueKey) Less(o DueKey) bool {
	return k.Due < o.Due || (k.Due == o.Due && k.ID < o.ID)
}

// Range is a run of task rows of one priority, both ends included.
type Range struct {
	Priority task.Priority
	From, To task.ID
}

// Request is a request row: the task that a request id stands for.
type Request struct {
	RequestID string
	ID        task.ID
	At        task.Micros
}

// Meta is the part of a partition's metadata that its holder decides; holder
// and epoch are the store's own business (Acquire).
type Meta struct {
	// Released: the holder has written its last commit and gives the partition up.
	Released bool
	// MayHold: rows may exist. Set with or before the first row; cleared only
	// by a drained, clean unload.
	MayHold bool
	// Acks holds, per priority, an id at or below which no task row exists, so
	// that scans begin above it. Each only grows.
	Acks [task.Priorities]task.ID
	// Listed: the queue belongs in the catalogue, as it was added to once.
	Listed bool
	// Backlog is about how many task and scheduled rows there are, as of the
	// last write of the metadata: a start for the count after a load.
	Backlog int64
}

// Mutation is one atomic change of one partition. A store applies it whole, and
// only while Epoch is still the partition's epoch. Deletes of rows that do not
// exist are legal and do nothing. Within a mutation ranges are deleted first,
// then single rows, then rows are put; no key stands in both a delete and a put
// of the same kind.
type Mutation struct {
	Partition partition.ID
	Epoch     task.Epoch

	DeleteRanges    []Range
	DeleteTasks     []TaskKey
	DeleteScheduled []DueKey
	DeleteLeases    []task.ID
	DeleteDead      []task.ID
	DeleteRequests  []string

	PutTasks     []Task
	PutScheduled []Task
	PutLeases    []Lease
	PutDead      []DeadTask
	PutRequests  []Request
	Meta         *Meta // nil leaves it
}

// Records is how many records the mutation writes, the unit of the budget in
// docs/performance.md. Metadata and range deletes count as one each.
func (m *Mutation) Records() int {
	n := len(m.DeleteRanges) + len(m.DeleteTasks) + len(m.DeleteScheduled) + len(m.DeleteLeases) +
		len(m.DeleteDead) + len(m.DeleteRequests) + len(m.PutTasks) + len(m.PutScheduled) +
		len(m.PutLeases) + len(m.PutDead) + len(m.PutRequests)
	if m.Meta != nil {
		n++
	}
	return n
}

// Empty reports whether the mutation changes nothing.
func (m *Mutation) Empty() bool { return m.Records() == 0 }

// Record is all that a store has of one task. Found is false when no task,
// scheduled or dead row exists.
type Record struct {
	ID    task.ID
	Found bool
	Kind  Kind // Tasks, Scheduled or Dead
	Task  Task // Due and Folded as in the row; for Dead only Task.Task
	Dead  DeadTask
	Lease *Lease // the lease row, nil when there is none
}

// Position is where a scan of a kind goes on: exclusive, the zero value is the
// start. Tasks, leases and dead rows use ID; scheduled rows use both.
type Position struct {
	Due task.Micros
	ID  task.ID
}

// Scan asks for the rows of one kind in key order.
type Scan struct {
	Kind     Kind
	Priority task.Priority // Tasks only
	After    Position
	Through  task.ID     // Tasks only: highest id wanted; 0 = no bound
	Until    task.Micros // Scheduled only: highest due time wanted; 0 = no bound
	Items    int         // at most so many rows, at least 1
	Bytes    int         // stop after the row that reaches so many bytes of payload and overhead; 0 = no bound
}

// Page is the answer to a Scan. More tells that the scan stopped at Items or
// Bytes and is to be continued after the last row, where there may be nothing.
type Page struct {
	Tasks  []Task
	Leases []Lease
	Dead   []DeadTask
	More   bool
}
