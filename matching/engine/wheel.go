package engine

import (
	"sync"
	"time"
)

// tickLength is how coarse the wheel is. Wake-ups are never early, and late by
// at most this much.
const tickLength = 10 * time.Millisecond

// Wheel wakes the partitions of a node when their time has come: one goroutine
// and at most one timer for all of them. See Start and Stop.
type Wheel struct {
	epoch time.Time     // tick 0; ticks go by the monotonic clock
	wake  chan struct{} // one slot: the earliest tick changed
	stop  chan struct{}
	done  chan struct{}

	mu struct {
		sync.Mutex
		timers           timers
		started, stopped bool
	}
}

// NewWheel makes a wheel that does not turn yet.
func NewWheel() *Wheel {
	w := &Wheel{
		epoch: time.Now(),
		wake:  make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	w.mu.timers = newTimers()
	return w
}

// Start starts the wheel's goroutine. Starting twice, or after Stop, does
// nothing.
func (w *Wheel) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.started || w.mu.stopped {
		return
	}
	w.mu.started = true
	go w.run()
}

// Stop waits until the tick that runs has returned; no other is made after
// that. It may be called twice and before Start.
func (w *Wheel) Stop() {
	w.mu.Lock()
	if !w.mu.stopped {
		w.mu.stopped = true
		close(w.stop)
	}
	started := w.mu.started
	w.mu.Unlock()
	if started {
		<-w.done
	}
}

// At has t woken at the given time, or at the one set before when that is
// earlier. So calls that overtake each other lose no wake-up; one that is not
// needed any more costs a Tick that finds nothing to do. At may be called by
// anyone, also under a lock that Tick takes and from Tick itself.
func (w *Wheel) At(t Ticker, at time.Time) {
	tick := int64((at.Sub(w.epoch) + tickLength - 1) / tickLength)
	w.mu.Lock()
	earliest := w.mu.timers.set(t, tick)
	w.mu.Unlock()
	if !earliest {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Forget drops the wake-up of t. A Tick that runs is not waited for.
func (w *Wheel) Forget(t Ticker) {
	w.mu.Lock()
	w.mu.timers.remove(t)
	w.mu.Unlock()
}

func (w *Wheel) run() {
	defer close(w.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []Ticker
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		case <-timer.C:
		}
		w.mu.Lock()
		due = w.mu.timers.due(int64(time.Since(w.epoch)/tickLength), due[:0])
		w.mu.Unlock()
		for _, t := range due {
			t.Tick()
		}
		clear(due)
		w.mu.Lock()
		next, ok := w.mu.timers.next()
		w.mu.Unlock()
		if ok {
			timer.Reset(time.Until(w.epoch.Add(time.Duration(next) * tickLength)))
		} else {
			timer.Stop()
		}
	}
}
