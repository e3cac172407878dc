package engine

import "container/heap"

// Ticker is what the wheel wakes; it must be comparable.
type Ticker interface {
	// Tick does what is due. It is called with no lock held, by one goroutine for
	// the whole node, so it has to be short.
	Tick()
}

// timers is the pure part of the wheel: at most one due tick per Ticker, the
// earliest first. It is an indexed heap rather than a ring of buckets: a
// partition brings its one wake-up forward often, and a heap leaves nothing behind
// when it does.
type timers struct {
	heap  entries
	index map[Ticker]*entry
}

type entry struct {
	ticker Ticker
	tick   int64
	at     int // position in the heap
}

func newTimers() timers { return timers{index: map[Ticker]*entry{}} }

// set makes t due at tick, unless it is due earlier already, and reports whether
// that changed the earliest of all.
func (ts *timers) set(t Ticker, tick int64) bool {
	e := ts.index[t]
	switch {
	case e == nil:
		e = &entry{ticker: t, tick: tick}
		ts.index[t] = e
		heap.Push(&ts.heap, e)
	case tick < e.tick:
		e.tick = tick
		heap.Fix(&ts.heap, e.at)
	default:
		return false
	}
	return ts.heap[0] == e
}

// remove forgets t.
func (ts *timers) remove(t Ticker) {
	if e := ts.index[t]; e != nil {
		heap.Remove(&ts.heap, e.at)
		delete(ts.index, t)
	}
}

// due removes what is due at or before now and appends it to dst, earliest
// first.
func (ts *timers) due(now int64, dst []Ticker) []Ticker {
	for len(ts.heap) > 0 && ts.heap[0].tick <= now {
		e := heap.Pop(&ts.heap).(*entry) //nolint:forcetypeassert // only entries are in it
		delete(ts.index, e.ticker)
		dst = append(dst, e.ticker)
	}
	return dst
}

// next returns the earliest due tick.
func (ts *timers) next() (tick int64, ok bool) {
	if len(ts.heap) == 0 {
		return 0, false
	}
	return ts.heap[0].tick, true
}

// entries is a heap of them; Len, Less, Swap, Push and Pop are for
// container/heap.
type entries []*entry

func (h *entries) Len() int           { return len(*h) }
func (h *entries) Less(i, j int) bool { return (*h)[i].tick < (*h)[j].tick }

func (h *entries) Swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push implements heap.Interface.
func (h *entries) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // only set pushes, and only entries
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
