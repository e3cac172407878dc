package balance

import (
	"hash/fnv"

	"github.com/taskring/taskring/partition"
)

// Random returns a number in [0, n), uniform; n is at least 1. rand.Int32N is
// one; a test passes that of a seeded source. It must be safe for as many
// goroutines as use the Balancer.
type Random func(n int32) int32

// PickWrite returns the partition for an add, uniform at random over the write
// partitions, and the number of tasks over all partitions that the add stands
// for: the write count at the root, 0 elsewhere. Only the root counts what
// comes in, so what it counts has to be scaled up, and the mean over many adds
// is one task an add:
//
//	4 write partitions, 1000 adds: about 250 reach the root and stand for 4 each
func (b *Balancer) PickWrite(counts partition.Counts) (number int32, estimatedTasks int64) {
	n := writes(counts)
	if n == 1 {
		return 0, 1
	}
	return standsFor(b.random(n), n)
}

// PickRequest is [Balancer.PickWrite] for an add with a request id: equal ids
// go to the same partition while the write count stays, so that it sees the
// repetition.
func (b *Balancer) PickRequest(counts partition.Counts, requestID string) (number int32, estimatedTasks int64) {
	n := writes(counts)
	h := fnv.New64a()
	_, _ = h.Write([]byte(requestID)) // a hash takes everything
	return standsFor(int32(mix(h.Sum64())%uint64(n)), n)
}

// standsFor adds to a picked number what it stands for.
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

// reads returns the read count, at least 1.
func reads(c partition.Counts) int32 { return max(c.Read, 1) }
