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
	bytes int // each one's share, as it was told last
}

// set remembers the share and reports whether it is another one.
func (r *readAhead) set(bytes int) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = bytes != r.bytes
	r.bytes = bytes
	return changed
}

// partsFor returns the smallest power of two at or above n.
func partsFor(n int) uint {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len(uint(n-1))
}

// shareOut tells those that are being loaded their share, and all others theirs
// when it changed, by their number or by the settings.
func (e *Engine) shareOut(loading []*queue.Queue) {
	parts := partsFor(e.table.count() + len(loading))
	bytes := max(e.settings().ReadAheadBytes/int(parts), 1)
	told := loading
	if e.share.set(bytes) {
		told = append(told, e.table.all()...)
	}
	for _, q := range told {
		q.SetReadAhead(bytes)
	}
}
