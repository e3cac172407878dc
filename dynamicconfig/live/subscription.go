package live

import (
	"time"

	"github.com/taskring/taskring/dynamicconfig"
)

// longestTimer bounds how late a flip is noticed when the machine's clock is set.
const longestTimer = time.Minute

// Subscription is an interest in one value. Made by [Subscribe].
type Subscription struct {
	settings *Settings
	// look tells of the value in a snapshot if it is new. It is called by one
	// goroutine at a time, without the lock.
	look func(*dynamicconfig.Snapshot) flip

	// Guarded by the lock of settings.
	queued  bool          // is among the due
	telling bool          // look runs
	again   bool          // look at it again after that
	ended   bool          // look at it no more
	idle    chan struct{} // closed when look has returned for the last time
	timer   *time.Timer   // at the next flip; nil when none is to come
}

// flip is when a value changes by itself; the zero value is never.
type flip struct {
	at      time.Time
	changes bool
}

// Subscribe calls notify whenever the value of a reading changed, see the
// package's doc for what holds. It returns the value at which this begins. The
// subscription lives until it is stopped.
func Subscribe[T any](s *Settings, r dynamicconfig.Reading[T], notify func(was, is T)) (T, *Subscription) {
	snapshot, now := s.Snapshot(), time.Now()
	first := r.Value(snapshot, now)
	last := first
	sub := &Subscription{settings: s, idle: make(chan struct{})}
	sub.look = func(in *dynamicconfig.Snapshot) flip {
		now := time.Now()
		if value := r.Value(in, now); !r.Equal(last, value) {
			was := last
			last = value
			notify(was, value)
		}
		at, changes := r.Next(in, now) // of then: a flip during notify is still to be told
		return flip{at, changes}
	}
	at, changes := r.Next(snapshot, now)
	s.add(sub, snapshot, flip{at, changes})
	return first, sub
}

// add begins a subscription whose value was read from a snapshot that may have
// been replaced meanwhile.
func (s *Settings) add(sub *Subscription, seen *dynamicconfig.Snapshot, next flip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		sub.ended = true
		close(sub.idle)
		return
	}
	if s.mu.followers == nil {
		s.mu.followers = map[*Subscription]struct{}{}
	}
	s.mu.followers[sub] = struct{}{}
	sub.armLocked(next)
	if s.Snapshot() != seen {
		s.enqueueLocked(sub)
	}
}

// Cancel ends the subscription without waiting: a callback that runs goes on, no
// further one begins. A callback may cancel its own subscription.
func (sub *Subscription) Cancel() {
	s := sub.settings
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub.ended {
		return
	}
	sub.ended = true
	delete(s.mu.followers, sub)
	sub.armLocked(flip{})
	if !sub.telling {
		close(sub.idle)
	}
}

// Stop ends the subscription and waits for a callback that runs. It must not be
// called from the subscription's own callback, which would wait for itself: use
// Cancel there. It may be called more than once.
func (sub *Subscription) Stop() {
	sub.Cancel()
	<-sub.idle
}

// armLocked sets the timer to the next flip.
func (sub *Subscription) armLocked(next flip) {
	if sub.timer != nil {
		sub.timer.Stop()
		sub.timer = nil
	}
	if !next.changes {
		return
	}
	sub.timer = time.AfterFunc(min(max(0, time.Until(next.at)), longestTimer), func() {
		sub.settings.mu.Lock()
		defer sub.settings.mu.Unlock()
		sub.settings.enqueueLocked(sub)
	})
}
