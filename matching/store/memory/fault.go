package memory

import (
	"errors"
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// ErrFault is the cause of outcomes that a test asked for.
var ErrFault = errors.New("fault injected by a test")

// Options configures a store. The zero value is a store without faults.
//
// The functions are called without any lock of the store held, from the
// goroutine that makes the call; they may call the store.
type Options struct {
	// ID is the store's id; the zero value draws one at random.
	ID task.StoreID
	// Commit says how each mutation of a call ends: the result has one element
	// per mutation; missing ones are Normal.
	Commit func([]*row.Mutation) []CommitFault
	// Acquire says how an acquisition ends.
	Acquire func(task.Holder, []partition.ID) AcquireFault
	// Read is called before each Scan, Get and Requests. Its error is answered.
	Read func(Read) error
	// Broken is told of each law of package row that an applied mutation
	// breaks; the mutation is applied all the same. It must not call the store.
	// The check remembers every task id ever written.
	Broken func(error)
}

// CommitFault says how the commit of one mutation ends.
type CommitFault uint8

// The ways in which a commit can end. Of the faults, ApplyNow and ApplyLater
// apply the mutation only if its epoch holds at that moment; the answer is
// Unknown either way.
const (
	Normal     CommitFault = iota // stored, or lost epoch
	Refuse                        // not stored
	ApplyNow                      // unknown, and applied
	ApplyNever                    // unknown, and never applied
	ApplyLater                    // unknown, applied by ApplyLate
)

// AcquireFault makes an acquisition fail when Err is set. Taken tells whether
// the partitions were taken all the same.
type AcquireFault struct {
	Err   error
	Taken bool
}

// Read describes a read: exactly one of Scan, IDs and RequestIDs is set.
type Read struct {
	Partition  partition.ID
	Scan       *row.Scan
	IDs        []task.ID
	RequestIDs []string
}

// ApplyLate lets the oldest n mutations that were answered with [ApplyLater]
// arrive. Those whose epoch is over have no effect. It returns how many took
// effect.
func (s *Store) ApplyLate(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.mu.late))
	applied := 0
	for _, m := range s.mu.late[:n] {
		if s.applyLocked(m) {
			applied++
		}
	}
	s.mu.late = slices.Delete(s.mu.late, 0, n)
	return applied
}

// Late returns how many mutations [Store.ApplyLate] could let arrive.
func (s *Store) Late() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.late)
}

// clone copies a mutation that outlives the call it came with. Tasks are
// read-only and shared; folded leases are copied when they are applied, but the
// caller may have changed them by then.
func clone(m *row.Mutation) *row.Mutation {
	c := *m
	c.DeleteRanges = slices.Clone(m.DeleteRanges)
	c.DeleteTasks = slices.Clone(m.DeleteTasks)
	c.DeleteScheduled = slices.Clone(m.DeleteScheduled)
	c.DeleteLeases = slices.Clone(m.DeleteLeases)
	c.DeleteDead = slices.Clone(m.DeleteDead)
	c.DeleteRequests = slices.Clone(m.DeleteRequests)
	c.PutTasks = cloneRows(m.PutTasks)
	c.PutScheduled = cloneRows(m.PutScheduled)
	c.PutLeases = slices.Clone(m.PutLeases)
	c.PutDead = slices.Clone(m.PutDead)
	c.PutRequests = slices.Clone(m.PutRequests)
	if m.Meta != nil {
		meta := *m.Meta
		c.Meta = &meta
	}
	return &c
}

func cloneRows(rs []row.Task) []row.Task {
	c := slices.Clone(rs)
	for i := range c {
		c[i] = cloneRow(c[i])
	}
	return c
}

// cloneRow copies what a caller may change: the folded lease, not the task.
func cloneRow(r row.Task) row.Task {
	if r.Folded != nil {
		folded := *r.Folded
		r.Folded = &folded
	}
	return r
}
