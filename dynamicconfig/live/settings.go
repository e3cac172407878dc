package live

import (
	"sync"
	"sync/atomic"

	"github.com/taskring/taskring/dynamicconfig"
)

// maxTellers is how many callbacks run at a time.
const maxTellers = 8

// Settings holds the snapshot in force. Made by [New]; the zero value has all
// defaults and works too.
type Settings struct {
	current atomic.Pointer[dynamicconfig.Snapshot]

	mu struct {
		sync.Mutex
		followers map[*Subscription]struct{}
		due       []*Subscription // to be looked at, each once
		tellers   int             // goroutines that do
		closed    bool
	}
}

// New returns settings with a first snapshot; nil is all defaults.
func New(first *dynamicconfig.Snapshot) *Settings {
	s := &Settings{}
	s.current.Store(first)
	return s
}

// Snapshot returns what is in force; nil is all defaults. It takes no lock. Read
// the settings of one decision from one snapshot.
func (s *Settings) Snapshot() *dynamicconfig.Snapshot { return s.current.Load() }

// Publish puts a snapshot in force and has subscribers told of what changed for
// them. It waits for no callback. Of concurrent calls either may win: one source
// publishes.
func (s *Settings) Publish(next *dynamicconfig.Snapshot) {
	s.current.Store(next)
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.mu.followers {
		s.enqueueLocked(sub)
	}
}

// Close ends all subscriptions and waits for callbacks that run; it must not be
// called from one. Reading goes on, subscribing gives subscriptions that are
// never called.
func (s *Settings) Close() {
	s.mu.Lock()
	s.mu.closed = true
	open := make([]*Subscription, 0, len(s.mu.followers))
	for sub := range s.mu.followers {
		open = append(open, sub)
	}
	s.mu.Unlock()
	for _, sub := range open {
		sub.Stop()
	}
}

// enqueueLocked has a subscription looked at, soon.
func (s *Settings) enqueueLocked(sub *Subscription) {
	switch {
	case sub.ended || sub.queued:
		return
	case sub.telling: // by the one who tells, when it has told
		sub.again = true
		return
	}
	sub.queued = true
	s.mu.due = append(s.mu.due, sub)
	if s.mu.tellers < maxTellers {
		s.mu.tellers++
		go s.tell()
	}
}

// tell looks at subscriptions until none is due.
func (s *Settings) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.due) > 0 {
		sub := s.mu.due[0]
		s.mu.due[0] = nil
		s.mu.due = s.mu.due[1:]
		sub.queued = false
		if sub.ended {
			continue
		}
		sub.telling = true
		flip := s.lookUnlocked(sub)
		sub.telling = false
		s.afterLocked(sub, flip)
	}
	s.mu.due = nil // lets go of what it grew to
	s.mu.tellers--
}

// lookUnlocked lets the subscription look without the lock, which the caller
// holds. The lock is taken again also when a callback panics, so that the panic is
// what the process ends with.
func (s *Settings) lookUnlocked(sub *Subscription) flip {
	s.mu.Unlock()
	defer s.mu.Lock()
	return sub.look(s.Snapshot())
}

// afterLocked settles what happened to a subscription while it was told.
func (s *Settings) afterLocked(sub *Subscription, flip flip) {
	if sub.ended {
		close(sub.idle)
		return
	}
	sub.armLocked(flip)
	if sub.again {
		sub.again = false
		s.enqueueLocked(sub)
	}
}
