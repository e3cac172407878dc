package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Counts returns the partition counts in force for a queue.
func (e *Engine) Counts(partition.Queue) partition.Counts {
	c := e.cfg.Settings().withDefaults().Counts
	return partition.Counts{Read: c.Read, Write: c.Write}
}

// checkCounts refuses numbers that the counts leave out.
func (e *Engine) checkCounts(p partition.ID, use Use) error {
	if use == Settle {
		return nil
	}
	c := e.Counts(p.Queue)
	switch {
	case p.Number >= c.Read:
		return stale(p, task.InvalidPartition, c, fmt.Sprintf("the queue is read from partitions 0 to %d", c.Read-1))
	case use == Add && p.Number >= c.Write:
		return stale(p, task.DrainingPartition, c, fmt.Sprintf("the queue is written to partitions 0 to %d", c.Write-1))
	}
	return nil
}

func stale(p partition.ID, why task.StaleWhy, c partition.Counts, what string) error {
	return &task.Error{
		Reason:  task.StaleCounts,
		Message: fmt.Sprintf("partition %v: %s", p, what),
		Stale:   &task.Stale{Why: why, Counts: c},
	}
}

// Lookup returns what the store's catalogue has of a partition, which need not
// be loaded; known is false when it was never added to.
func (e *Engine) Lookup(ctx context.Context, p partition.ID) (l store.Listed, known bool, err error) {
	before := p
	before.Number--
	if p.IsRoot() { // behind all partitions of the type before
		before.Type--
		before.Number = math.MaxInt32
	}
	listed, err := e.cfg.Store.List(ctx, before, 1)
	if err != nil {
		return store.Listed{}, false, task.Errorf(task.StoreUnavailable, "looking up partition %v: %w", p, err)
	}
	if len(listed) == 1 && listed[0].Partition == p {
		return listed[0], true, nil
	}
	return store.Listed{}, false, nil
}
