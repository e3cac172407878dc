package balance

import (
	"sync/atomic"

	"github.com/taskring/taskring/partition"
)

// Token is an outstanding poll. It counts at its partition until it is
// released.
type Token struct {
	// Partition is where to poll.
	Partition int32
	open      atomic.Pointer[atomic.Int64] // the counter that it counts in; nil once released
}

// Release ends the poll. Further calls do nothing.
func (t *Token) Release() {
	if counter := t.open.Swap(nil); counter != nil {
		counter.Add(-1)
	}
}

// PickRead returns the read partition with the fewest outstanding polls of this
// Balancer. The scan begins at a random partition and stops at the first one
// without any, so that equals share alike:
//
//	outstanding  2 1 0 1, start at 3: looks at 3 (1), 0 (2), 1 (1), 2 (0): takes 2
//	outstanding  1 1 1 1, start at 2: looks at all, keeps the first: takes 2
//
// Two picks at the same moment may take the same partition; the next ones make
// up for it.
func (b *Balancer) PickRead(q partition.Queue, counts partition.Counts) *Token {
	for {
		if t := b.queue(q).pick(reads(counts), b.random); t != nil {
			return t
		}
	}
}

// Hold counts a poll at a partition that the caller chose by itself.
func (b *Balancer) Hold(id partition.ID) *Token {
	for {
		if t := b.queue(id.Queue).hold(max(id.Number, 0)); t != nil {
			return t
		}
	}
}

// pick returns nil when the queue's counters were thrown away meanwhile.
func (q *counters) pick(n int32, random Random) *Token {
	open := q.grown(n)
	start := int32(0)
	if n > 1 {
		start = random(n)
	}
	best, fewest := start, open[start].Load()
	for i := int32(1); i < n && fewest > 0; i++ {
		at := (start + i) % n
		if polls := open[at].Load(); polls < fewest {
			best, fewest = at, polls
		}
	}
	return q.hold(best)
}

// hold returns nil when the queue's counters were thrown away meanwhile.
func (q *counters) hold(number int32) *Token {
	counter := q.grown(number + 1)[number]
	counter.Add(1)
	if q.gone.Load() {
		counter.Add(-1)
		return nil
	}
	t := &Token{Partition: number}
	t.open.Store(counter)
	return t
}

// grown returns at least n counters. Counters are never taken away while the
// queue is kept: a count that shrank may grow again, and the polls that are
// still out at the upper partitions must be found there (B1).
func (q *counters) grown(n int32) []*atomic.Int64 {
	for {
		old := q.open.Load()
		if old != nil && int(n) <= len(*old) {
			return *old
		}
		more := make([]*atomic.Int64, n)
		kept := 0
		if old != nil {
			kept = copy(more, *old)
		}
		for i := kept; i < len(more); i++ {
			more[i] = new(atomic.Int64)
		}
		if q.open.CompareAndSwap(old, &more) {
			return more
		}
	}
}
