package engine

import (
	"context"
	"fmt"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Counts returns the partition counts in force for a queue: those of the
// settings, the read count raised to the highest partition that may still hold
// tasks, so that pollers find what was added under higher counts.
func (e *Engine) Counts(q partition.Queue) partition.Counts {
	c := e.perQueue(q).Counts
	if raised := e.raised.Load(); raised != nil {
		c.Read = max(c.Read, (*raised)[q])
	}
	return c
}

func (e *Engine) perQueue(q partition.Queue) PerQueue { return e.cfg.PerQueue(q).withDefaults() }

// raise looks through the catalogue for partitions beyond the read count of their
// queue that may hold tasks. each, when set, is told of every partition that is
// listed, and ends the listing by returning false.
func (e *Engine) raise(ctx context.Context, each func(store.Listed) bool) error {
	raised := map[partition.Queue]int32{}
	err := e.eachListed(ctx, partition.ID{}, func(l store.Listed) bool {
		if p := l.Partition; l.Meta.MayHold && p.Number >= e.perQueue(p.Queue).Counts.Read {
			raised[p.Queue] = max(raised[p.Queue], p.Number+1)
		}
		return each == nil || each(l)
	})
	if err == nil {
		e.raised.Store(&raised)
	}
	return err
}

// maybeRaise does so when the settings changed, or some queue was raised before
// and may be drained by now. It takes and returns the version of the settings
// that the raised counts go by.
func (e *Engine) maybeRaise(before any) any {
	now := e.cfg.Version()
	raised := e.raised.Load()
	if now == before && (raised == nil || len(*raised) == 0) {
		return now
	}
	if err := e.raise(e.ctx, nil); err != nil {
		e.cfg.Logger.Warn("partitions cannot be listed, it is tried again", "error", err)
		return before
	}
	return now
}

// checkCounts refuses numbers that the counts leave out.
func (e *Engine) checkCounts(p partition.ID, use Use) error {
	if use == Settle {
		return nil
	}
	c := e.Counts(p.Queue)
	return stale(p, c, c.Check(p, accessOf(use), partition.Counts{}))
}

// CheckCaller refuses a caller who picked p by counts that are too far off from
// those in force. Zeros always pass. Whether p may be used at all is checked when
// it is asked for.
func (e *Engine) CheckCaller(p partition.ID, use Use, caller partition.Counts) error {
	if use == Settle || !caller.Valid() {
		return nil
	}
	c := e.Counts(p.Queue)
	if drift := c.Check(p, accessOf(use), caller); drift == partition.TooFarOff {
		return stale(p, c, drift)
	}
	return nil
}

func accessOf(use Use) partition.Access {
	if use == Add {
		return partition.Write
	}
	return partition.Read
}

// stale returns the error of a drift; nil for none.
func stale(p partition.ID, c partition.Counts, drift partition.Drift) error {
	var why task.StaleWhy
	var what string
	switch drift {
	case partition.BeyondRead:
		why, what = task.InvalidPartition, fmt.Sprintf("the queue is read from partitions 0 to %d", c.Read-1)
	case partition.Draining:
		why, what = task.DrainingPartition, fmt.Sprintf("the queue is written to partitions 0 to %d", c.Write-1)
	case partition.TooFarOff:
		why, what = task.CountsTooDifferent, fmt.Sprintf("it was picked by counts too far off: the queue has %d read and %d write partitions", c.Read, c.Write)
	default:
		return nil
	}
	return &task.Error{
		Reason:  task.StaleCounts,
		Message: fmt.Sprintf("partition %v: %s", p, what),
		Stale:   &task.Stale{Why: why, Counts: c},
	}
}
