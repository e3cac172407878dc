package engine

import (
	"math/bits"
	"sync"

	"github.com/taskring/taskring/matching/queue"
)

// readAhead shares the node's budget for stored tasks in memory among the loaded
// partitions. Each gets the budget divided by the number of partitions, rounded
// up to a power of two: so the sum stays within the budget, and the shares
// change, for all at once, only when the number doubles or halves.
type readAhead struct {
	mu    sync.Mutex
	parts uint // the budget is cut into so many parts
}

// partsFor returns the smallest power of two at or above n.
func partsFor(n int) uint {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len(uint(n-1))
}

// shareOut tells q its share, and all others theirs when that changed.
func (e *Engine) shareOut(q *queue.Queue) {
	parts := partsFor(e.table.count() + 1)
	e.share.mu.Lock()
	changed := parts != e.share.parts
	e.share.parts = parts
	e.share.mu.Unlock()

	bytes := max(e.cfg.Settings().withDefaults().ReadAheadBytes/int(parts), 1)
	q.SetReadAhead(bytes)
	if !changed {
		return
	}
	for _, other := range e.table.all() {
		other.SetReadAhead(bytes)
	}
}
