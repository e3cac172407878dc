package client

import (
	"context"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// PartitionCounts are partition counts as they travel with calls.
type PartitionCounts = wire.PartitionCounts

// ParsePartitionCountsFromIncomingContext returns the counts that a caller sent,
// for servers; see package wire.
func ParsePartitionCountsFromIncomingContext(ctx context.Context) (PartitionCounts, error) {
	return wire.ParsePartitionCountsFromIncomingContext(ctx)
}

// ParseEstimatedTasksAllPartitions returns how many tasks over all partitions an
// add stands for, for servers; see package wire.
func ParseEstimatedTasksAllPartitions(ctx context.Context) (tasks int64, ok bool) {
	return wire.ParseEstimatedTasksAllPartitions(ctx)
}

// rotation is how long a generation of the counts cache is filled.
const rotation = time.Hour

// tend rotates the counts cache, shard by shard, until the client stops.
func (c *Client) tend() {
	tick := time.NewTicker(rotation / countsShards)
	defer tick.Stop()
	for shard := 0; ; shard++ {
		select {
		case <-c.stopping:
			return
		case <-tick.C:
			c.counts.rotate(shard % countsShards)
		}
	}
}

// countsOf returns the counts to pick a partition by: what a node reported,
// else what the settings say.
func (c *Client) countsOf(q partition.Queue) partition.Counts {
	if counts := c.counts.get(q); counts.Valid() {
		return counts.Counts
	}
	return c.sources.countsOf(q)
}

// learn takes the counts that came with an answer; zeros are those of a node that
// does not know them.
func (c *Client) learn(q partition.Queue, counts PartitionCounts) {
	if counts != c.counts.get(q) {
		c.counts.put(q, counts)
	}
}

// learnFrom takes the counts from the trailer of a single call that a node
// answered, well or with an error. A trailer without any came through a proxy that
// drops what it does not know: then what came in messages stays.
func (c *Client) learnFrom(q partition.Queue, trailer metadata.MD) {
	if len(trailer[wire.CountsHeader]) == 0 {
		return
	}
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
