package balance

import (
	"hash/fnv"

	"github.com/taskring/taskring/partition"
)

// PickWritePartition returns the partition for an add, and the number of tasks
// over all partitions that the add stands for: 0 but at the root. Only the root
// counts what comes in, so what it counts has to be scaled up by one over its
// share, and the mean over many adds is one task an add:
//
//	4 write partitions, 1000 adds: about 250 reach the root and stand for 4 each
//
// The share is even, unless the counts have a backlog cap and a figure for every
// write partition. Then a partition is the likelier the further its backlog is
// below the cap, see [Balancer.pickByGap].
func (b *Balancer) PickWritePartition(q partition.Queue, counts partition.Counts) (number int32, estimatedTasks int64) {
	if number, ok := b.forced(q, partition.Write); ok {
		if number == 0 {
			return 0, 1
		}
		return number, 0
	}
	n := writes(counts)
	switch {
	case n == 1:
		return 0, 1
	case counts.BacklogCap > 0 && len(counts.BacklogCodes) >= int(n):
		return b.pickByGap(counts, n)
	default:
		return standsFor(int32(b.below(uint64(n))), n)
	}
}

// Even reports whether adds are picked evenly, so that those of a batch may as well
// be dealt out in turn.
func (b *Balancer) Even(q partition.Queue, counts partition.Counts) bool {
	_, forced := b.forced(q, partition.Write)
	return !forced && (counts.BacklogCap <= 0 || len(counts.BacklogCodes) < int(writes(counts)))
}

// PickRequest is [Balancer.PickWritePartition] for an add with a request id:
// equal ids go to the same partition while the write count stays, so that it
// sees the repetition. Backlogs do not matter.
func (b *Balancer) PickRequest(counts partition.Counts, requestID string) (number int32, estimatedTasks int64) {
	n := writes(counts)
	h := fnv.New64a()
	_, _ = h.Write([]byte(requestID)) // a hash takes everything
	return standsFor(int32(mix(h.Sum64())%uint64(n)), n)
}

const (
	// rootShare is what the root keeps of an even share at least, as one over it:
	// however full it is, it goes on seeing a sample of the traffic.
	rootShare = 4
	// maxCap is above every backlog figure, and small enough for sums.
	maxCap = 1 << 36
)

// pickByGap picks at random, by the gap between backlog and cap:
//
//	cap 1000, backlogs 200 1000 400 900: gaps 800 0 600 100, sum 1500
//	the root is taken with probability 800/1500 and stands for 1500/800 tasks
//
// When all are full, evenly. The root's gap is raised to a quarter of an even
// share when it is smaller: with the floor f = 1/(4n), to others * f / (1 - f),
// which is others / (4n - 1), rounded up.
//
// What the root stands for is rounded at random, to 2 with probability 0.875 in
// the example, so that the mean is exact.
func (b *Balancer) pickByGap(counts partition.Counts, n int32) (number int32, estimatedTasks int64) {
	codes, limit := counts.BacklogCodes[:n], min(counts.BacklogCap, maxCap)
	root, others := b.gap(codes[0], limit), uint64(0)
	for i := 1; i < len(codes); i++ {
		others += b.gap(codes[i], limit)
	}
	if root+others == 0 {
		return standsFor(int32(b.below(uint64(n))), n)
	}
	parts := rootShare*uint64(n) - 1
	root = max(root, (others+parts-1)/parts)
	at := b.below(root + others)
	if at < root {
		return 0, b.rounded(root+others, root)
	}
	at -= root
	for i := 1; i < len(codes); i++ {
		gap := b.gap(codes[i], limit)
		if at < gap {
			return int32(i), 0
		}
		at -= gap
	}
	return n - 1, 0 // never: the gaps add up to others
}

// gap returns how far the backlog of a code is below the limit, in tasks.
func (b *Balancer) gap(code byte, limit int64) uint64 { return uint64(max(0, limit-b.tasks[code])) }

// rounded returns a / b, rounded up as often as the fraction says.
func (b *Balancer) rounded(dividend, divisor uint64) int64 {
	whole, rest := dividend/divisor, dividend%divisor
	if rest > 0 && b.below(divisor) < rest {
		whole++
	}
	return int64(whole)
}

// standsFor adds to an evenly picked number what it stands for.
func standsFor(number, n int32) (int32, int64) {
	if number == 0 {
		return 0, int64(n)
	}
	return number, 0
}

// mix spreads the entropy of FNV, whose low bits are weak, over all bits.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// writes returns the write count, at least 1.
func writes(c partition.Counts) int32 { return max(c.Write, 1) }
