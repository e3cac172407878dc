package route

import (
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
)

// Place is where a partition stands, on any ring.
type Place struct {
	// Key is hashed on the ring and gives a list of nodes.
	Key ring.Key
	// Index is the node's place in that list, from 0; it wraps at its end.
	Index int
}

// Buffers for keys. They stand on the stack and are cleared for each use, so the
// common key should not pay for the longest one.
const (
	commonKey  = 128
	longestKey = 2*partition.MaxNameLength + 64
	// keyOverhead is more than a key has besides the two names.
	keyOverhead = 32
)

// Of returns the place of p when partitions are spread by batches of batchSize;
// below 1 they are not spread.
func Of(p partition.ID, batchSize int32) Place {
	if len(p.Namespace)+len(p.Name) > commonKey-keyOverhead {
		return ofLong(p, batchSize)
	}
	var buf [commonKey]byte
	key, index := p.AppendSpreadKey(buf[:0], batchSize)
	return Place{Key: ring.KeyOfBytes(key), Index: int(index)}
}

// ofLong is [Of] for long names, with a stack frame of its own.
//
//go:noinline
func ofLong(p partition.ID, batchSize int32) Place {
	var buf [longestKey]byte
	key, index := p.AppendSpreadKey(buf[:0], batchSize)
	return Place{Key: ring.KeyOfBytes(key), Index: int(index)}
}

// On returns the node of the place on a ring; ok is false when the ring is empty.
func (p Place) On(r *ring.Ring) (n ring.Node, ok bool) { return r.At(p.Key, p.Index) }

// Owner returns the node that owns p; ok is false when the ring is empty. batchSize
// is the one in force for p now: whoever changes it gradually decides that first.
func Owner(r *ring.Ring, p partition.ID, batchSize int32) (n ring.Node, ok bool) {
	return Of(p, batchSize).On(r)
}

// TooWide reports whether batches are so large for a number of nodes, more than
// half of it, that far more partitions move than need to when a node joins or
// leaves. A node warns of it, naming both.
func TooWide(batchSize int32, nodes int) bool {
	return batchSize > 1 && 2*int(batchSize) > nodes
}
