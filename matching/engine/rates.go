package engine

import (
	"sync"
	"time"

	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
)

// Rates says how busy a partition was lately.
type Rates struct {
	LoadedAt time.Time
	Adds     float64 // per second
	Grants   float64 // per second

	// The same by priority, the first one first.
	AddsBy, GrantsBy [task.Priorities]float64
}

// rates remembers, of each loaded partition, what it had counted at the last two
// sweeps. A rate is taken against the older one, so it covers between one and
// two times the time between sweeps, or all time since the load when that is
// less.
type rates struct {
	mu    sync.Mutex
	byRef map[*queue.Queue]*history
}

type history struct {
	loaded       time.Time
	older, newer reading
}

type reading struct {
	at             time.Time
	added, granted [task.Priorities]uint64
}

// begin remembers a partition that is being loaded.
func (r *rates) begin(q *queue.Queue) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRef[q] = &history{loaded: now, older: reading{at: now}, newer: reading{at: now}}
}

// end forgets a partition.
func (r *rates) end(q *queue.Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byRef, q)
}

// sample takes the next reading of a partition.
func (r *rates) sample(q *queue.Queue) {
	c := q.Describe().Counts
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.byRef[q]; h != nil {
		h.older, h.newer = h.newer, reading{time.Now(), c.AddedBy, c.GrantedBy}
	}
}

// Rates returns how busy a loaded partition was lately, by what it counts now.
func (e *Engine) Rates(q *queue.Queue, now queue.Stats) Rates {
	e.rates.mu.Lock()
	defer e.rates.mu.Unlock()
	h := e.rates.byRef[q]
	if h == nil {
		return Rates{}
	}
	// Less than a second says nothing: one task in a millisecond is no rate of 1,000.
	seconds := max(time.Since(h.older.at).Seconds(), 1)
	out := Rates{LoadedAt: h.loaded}
	for i := range out.AddsBy {
		out.AddsBy[i] = float64(now.Counts.AddedBy[i]-h.older.added[i]) / seconds
		out.GrantsBy[i] = float64(now.Counts.GrantedBy[i]-h.older.granted[i]) / seconds
		out.Adds += out.AddsBy[i]
		out.Grants += out.GrantsBy[i]
	}
	return out
}
