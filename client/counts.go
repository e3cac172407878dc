package client

import (
	"hash/maphash"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// PartitionCounts are partition counts as they travel with calls.
type PartitionCounts = wire.PartitionCounts

// countsCache holds the counts that nodes reported, by queue. Entries nobody
// asks for go away: there are two generations, what is found in the old one
// moves to the new one, and once an hour the old one is dropped.
type countsCache struct {
	seed   maphash.Seed
	shards [16]countsShard
}

type countsShard struct {
	mu struct {
		sync.RWMutex
		fresh, old map[partition.Queue]PartitionCounts
		rotated    time.Time
	}
}

// rotation is how long a generation is filled.
const rotation = time.Hour

func newCountsCache() *countsCache { return &countsCache{seed: maphash.MakeSeed()} }

func (c *countsCache) shard(q partition.Queue) *countsShard {
	return &c.shards[maphash.Comparable(c.seed, q)%uint64(len(c.shards))]
}

// get returns the counts of a queue, the zero value when none are known.
func (c *countsCache) get(q partition.Queue) PartitionCounts {
	s := c.shard(q)
	s.mu.RLock()
	counts, fresh := s.mu.fresh[q]
	if fresh {
		s.mu.RUnlock()
		return counts
	}
	counts, old := s.mu.old[q]
	s.mu.RUnlock()
	if old {
		c.put(q, counts, time.Now())
	}
	return counts
}

// put replaces what is known of a queue; counts that are not valid forget it.
func (c *countsCache) put(q partition.Queue, counts PartitionCounts, now time.Time) {
	s := c.shard(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.mu.rotated) >= rotation {
		s.mu.fresh, s.mu.old, s.mu.rotated = nil, s.mu.fresh, now
	}
	if !counts.Valid() {
		delete(s.mu.fresh, q)
		delete(s.mu.old, q)
		return
	}
	if s.mu.fresh == nil {
		s.mu.fresh = map[partition.Queue]PartitionCounts{}
	}
	s.mu.fresh[q] = counts
}

// countsOf returns the counts to pick a partition by: what a node reported,
// else what the settings say.
func (c *Client) countsOf(q partition.Queue) partition.Counts {
	if counts := c.counts.get(q); counts.Valid() {
		return counts.Counts
	}
	s := c.settings()
	return partition.Counts{Read: s.ReadPartitions, Write: s.WritePartitions}
}

// learn takes the counts that came with an answer. An answer without any is one
// of a node that does not know them, or came through a proxy that drops what it
// does not know.
func (c *Client) learn(q partition.Queue, counts PartitionCounts) {
	if counts != c.counts.get(q) {
		c.counts.put(q, counts, time.Now())
	}
}

// learnFrom takes the counts from the trailer of a single call that a node
// answered, well or with an error.
func (c *Client) learnFrom(q partition.Queue, trailer metadata.MD) {
	counts, err := wire.ParsePartitionCountsFromTrailer(trailer)
	if err != nil {
		c.badCounts.warn(c.log, "a node sent partition counts that cannot be read; they count as not known", "queue", q, "error", err)
	}
	c.learn(q, counts)
}

// learnIfSet takes the counts of a message, if it has any: parts of a batch
// that were not tried come without.
func (c *Client) learnIfSet(q partition.Queue, m *matchingpb.PartitionCounts) {
	if m != nil {
		c.learn(q, wire.DecodePartitionCounts(m))
	}
}
