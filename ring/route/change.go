package route

import (
	"time"

	"github.com/taskring/taskring/partition"
)

// Change is what a gradual change makes of the batch size of one partition. Before
// and After are the same when there is none.
type Change struct {
	Before, After int32
	// When is the instant at which the partition changes; the zero time when no time
	// decides, but a percentage of all partitions or nothing.
	When time.Time
	// Included: the partition has the new batch size, or will have it at When. It is
	// not when it does not belong to the percentage that changes.
	Included bool
}

// Change returns what becomes of p. It is for people, who want to know before it
// happens: it allocates.
func (s BatchSizes) Change(p partition.ID) Change {
	before, after := s.size.Values()
	c := Change{Before: int32(before), After: int32(after)}
	key := p.GradualKey()
	if when, timed := s.size.When(key); timed {
		c.When, c.Included = when, true
	} else {
		c.Included = s.size.Changed(key, time.Time{})
	}
	return c
}
