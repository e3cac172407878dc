package route

import (
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

// maxBatchSize is far beyond what any number of nodes can use.
const maxBatchSize = 1024

var spreadBatchSize = dynamicconfig.PerQueue(dynamicconfig.GradualOf(dynamicconfig.Int{
	Key: "matching.spreadRoutingBatchSize", Default: 0, Max: maxBatchSize, Unit: "partitions",
	Doc: "How many partitions of a queue are kept on different nodes, batch by batch; 0 places each by itself. " +
		"A change moves most partitions, so give it as a gradual one. Keep it well below the number of nodes. " +
		"All nodes and clients have to have the same value.",
}))

// Declared lists the settings of this package, which nodes and clients share.
func Declared() []dynamicconfig.Declared { return []dynamicconfig.Declared{spreadBatchSize} }

// BatchSizes is the batch size of a queue, which may be about to change partition
// by partition. The zero value means that nothing is spread.
type BatchSizes struct{ size dynamicconfig.Gradual[int] }

// BatchSizesIn returns what the settings give a queue.
func BatchSizesIn(in *dynamicconfig.Snapshot, q partition.Queue) BatchSizes {
	return BatchSizes{spreadBatchSize.Get(in, q)}
}

// SpreadBy returns a batch size that does not change; below 1 nothing is spread.
func SpreadBy(batchSize int) BatchSizes { return BatchSizes{dynamicconfig.Constant(batchSize)} }

// SpreadGradually returns a batch size that changes.
func SpreadGradually(change dynamicconfig.Gradual[int]) BatchSizes { return BatchSizes{change} }

// Changes reports whether the batch size may be another at another time, or for
// another partition.
func (s BatchSizes) Changes() bool { return s.size.Changes() }

// At returns the batch size in force for p at a time. now counts only when
// [BatchSizes.Changes].
func (s BatchSizes) At(p partition.ID, now time.Time) int32 {
	if s.size.Changes() {
		return s.changing(p, now)
	}
	_, size := s.size.Values()
	return int32(size)
}

// changing is At during a change; apart, so that At itself costs nothing.
func (s BatchSizes) changing(p partition.ID, now time.Time) int32 {
	if len(p.Namespace)+len(p.Name) > commonKey-keyOverhead {
		return s.atLong(p, now)
	}
	var buf [commonKey]byte
	return int32(s.size.ValueOf(p.AppendGradualKey(buf[:0]), now))
}

// atLong is changing for long names, with a stack frame of its own.
//
//go:noinline
func (s BatchSizes) atLong(p partition.ID, now time.Time) int32 {
	var buf [longestKey]byte
	return int32(s.size.ValueOf(p.AppendGradualKey(buf[:0]), now))
}
