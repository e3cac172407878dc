package route

import (
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
)

// Explanation is how the owner of a partition was found, step by step.
type Explanation struct {
	// BatchSize, Batch and Index are those of spread routing; all are 0 without.
	BatchSize, Batch, Index int32
	// Key is what is hashed, Slot where the hash leads.
	Key  string
	Slot int
	// List is the list of the slot up to the owner, which is the last of it. When
	// Index is beyond the nodes it is the whole list, and the owner is Position.
	List []ring.Node
	// Position is the owner's place in the list: Index, wrapped at its end.
	Position int
}

// Owner returns the node that owns the partition; ok is false when the ring is
// empty.
func (e Explanation) Owner() (n ring.Node, ok bool) {
	if e.Position >= len(e.List) {
		return ring.Node{}, false
	}
	return e.List[e.Position], true
}

// Explain tells how [Owner] finds the node of p. It is for people: it allocates.
func Explain(r *ring.Ring, p partition.ID, batchSize int32) Explanation {
	key, index := p.AppendSpreadKey(nil, batchSize)
	e := Explanation{Index: index, Key: string(key)}
	if batchSize > 0 {
		e.BatchSize, e.Batch = batchSize, p.Number/batchSize
	}
	k := ring.KeyOfBytes(key)
	e.Slot = r.Slot(k)
	e.List = r.LookupN(nil, k, int(index)+1)
	if r.Len() > 0 {
		e.Position = int(index) % r.Len()
	}
	return e
}
