package balance

import (
	"sync/atomic"

	"github.com/taskring/taskring/partition"
)

// Token is an outstanding poll. It counts at its partition until it is
// released. It is a value to save an allocation: do not copy it.
type Token struct {
	// Partition is where to poll.
	Partition int32

	open     *atomic.Int64 // the counter that it counts in
	released atomic.Bool
}

// Release ends the poll. Further calls do nothing.
func (t *Token) Release() {
	if t.open != nil && !t.released.Swap(true) {
		t.open.Add(-1)
	}
}

// move makes t the token of another poll in place of its own.
func (t *Token) move(number int32, open *atomic.Int64) {
	t.Release()
	t.Partition, t.open = number, open
	t.released.Store(false)
}

// PickReadPartition returns the read partition for a poll: by backlogs when the
// counts have a backlog cap and a figure that is not zero, see
// [Balancer.byBacklog], else the one with the fewest outstanding polls of this
// Balancer. That scan begins at a random partition and stops at the first one
// without any, so that equals share alike:
//
//	outstanding  2 1 0 1, start at 3: looks at 3 (1), 0 (2), 1 (1), 2 (0): takes 2
//	outstanding  1 1 1 1, start at 2: looks at all, keeps the first: takes 2
//
// Two picks at the same moment may take the same partition; the next ones make
// up for it.
func (b *Balancer) PickReadPartition(q partition.Queue, counts partition.Counts) Token {
	for {
		if number, open := b.pickRead(q, counts); open != nil {
			return Token{Partition: number, open: open}
		}
	}
}

// MoveRead picks anew for a poll that is tried again. It still counts while the
// next partition is picked, which makes the pick avoid the one that it was at.
// Only the caller of PickReadPartition may use t meanwhile.
func (b *Balancer) MoveRead(t *Token, q partition.Queue, counts partition.Counts) {
	for {
		if number, open := b.pickRead(q, counts); open != nil {
			t.move(number, open)
			return
		}
	}
}

// Hold counts a poll at a partition that the caller chose by itself.
func (b *Balancer) Hold(id partition.ID) Token {
	number := max(id.Number, 0)
	for {
		if open := b.queue(id.Queue).hold(number); open != nil {
			return Token{Partition: number, open: open}
		}
	}
}

// pickRead returns no counter when the queue's counters were thrown away
// meanwhile.
func (b *Balancer) pickRead(q partition.Queue, counts partition.Counts) (int32, *atomic.Int64) {
	of := b.queue(q)
	n := reads(counts)
	open := of.grown(n)[:n]
	number, ok := b.forced(q, partition.Read)
	if !ok {
		number, ok = b.byBacklog(open, counts)
	}
	if !ok {
		number = b.fewest(open)
	}
	return number, of.hold(number)
}

func (b *Balancer) fewest(open []*atomic.Int64) int32 {
	n := len(open)
	start := 0
	if n > 1 {
		start = int(b.below(uint64(n)))
	}
	best, fewest := start, open[start].Load()
	for i := 1; i < n && fewest > 0; i++ {
		at := start + i
		if at >= n {
			at -= n
		}
		if polls := open[at].Load(); polls < fewest {
			best, fewest = at, polls
		}
	}
	return int32(best)
}

const (
	// emptyWeight is what a partition without backlog weighs: the smallest figure
	// that is reported, so that what is reported as empty keeps some polls.
	emptyWeight = 32
	// steered of steeredOf picks go by backlog, the rest by outstanding polls.
	steered, steeredOf = 3, 4
)

// byBacklog picks at random, a partition weighing its backlog + 32: under a
// backlog every poll returns at once, and the outstanding ones say nothing. But
// a figure may be seconds old, its partition empty by now, and then a poll that
// goes there stays. So it is combined with the outstanding polls, in two ways:
//
//   - a quarter of the picks does not look at backlogs at all
//   - a partition gets no poll by its backlog while it has more than three quarters
//     of this Balancer's outstanding polls, and its even share of the last one:
//     polls to where there is a backlog come back and do not count for long, so
//     many that stay are fresher news than the figure
//
// With backlogs 6400 and 0, 0, 0: the first one weighs 6432 of 6528 and is taken in
// 98.5 % of three quarters of all picks. When all polls stay there nonetheless,
// those of one Balancer that has many stop at 3/4 + 1/16, 81 %.
//
// It returns false when the pick is to go by outstanding polls alone.
func (b *Balancer) byBacklog(open []*atomic.Int64, counts partition.Counts) (int32, bool) {
	if counts.BacklogCap <= 0 || len(counts.BacklogCodes) == 0 || len(open) == 1 {
		return 0, false
	}
	codes := counts.BacklogCodes[:min(len(counts.BacklogCodes), len(open))]
	backlogs := uint64(0)
	for i := range len(codes) {
		backlogs += uint64(b.tasks[codes[i]])
	}
	if backlogs == 0 || b.below(steeredOf) >= steered {
		return 0, false
	}
	at := b.below(backlogs + emptyWeight*uint64(len(open)))
	number := 0
	for ; number < len(open)-1; number++ {
		weight := uint64(emptyWeight)
		if number < len(codes) {
			weight += uint64(b.tasks[codes[number]])
		}
		if at < weight {
			break
		}
		at -= weight
	}
	return int32(number), !crowded(open, number)
}

// crowded reports whether one poll more at a partition would give it more than
// (3n + 1) / 4n of all. The first one never does.
func crowded(open []*atomic.Int64, number int) bool {
	here := open[number].Load()
	if here == 0 {
		return false
	}
	all := int64(0)
	for _, counter := range open {
		all += counter.Load()
	}
	n := int64(len(open))
	return steeredOf*n*(here+1) > (steered*n+1)*(all+1)
}

// hold returns nil when the queue's counters were thrown away meanwhile.
func (q *counters) hold(number int32) *atomic.Int64 {
	counter := q.grown(number + 1)[number]
	counter.Add(1)
	if q.gone.Load() {
		counter.Add(-1)
		return nil
	}
	return counter
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

// reads returns the read count, at least 1.
func reads(c partition.Counts) int32 { return max(c.Read, 1) }
