package client

import (
	"runtime"
	"sync"
)

// slots are the free handlers of a worker, and the pollers that wait for some.
// Pollers are served in the order of their coming, so that with fewer slots than
// partitions every partition gets its turn.
//
//	8 free, 3 pollers wait: the first takes 3, the next 3, the last 2
type slots struct {
	mu struct {
		sync.Mutex
		closed  bool
		free    int
		held    int // by open polls
		waiting []*ticket
	}
}

// ticket is the place of a poller in the line.
type ticket struct {
	ready  chan struct{} // closed when it is its turn, or the slots are closed
	called bool          // ready is closed
}

func newSlots(n int) *slots {
	s := &slots{}
	s.mu.free = n
	return s
}

// take waits for free slots and returns the poller's share, and how many are
// idle in all: free, or held by polls. ok is false once the slots are closed.
//
// Between being called and taking the poller yields once: slots that are freed
// at the same time go into one poll.
func (s *slots) take(most int) (n, idle int, ok bool) {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return 0, 0, false
	}
	t := &ticket{ready: make(chan struct{})}
	s.mu.waiting = append(s.mu.waiting, t)
	s.callLocked()
	s.mu.Unlock()
	<-t.ready
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return 0, 0, false
	}
	// Only the first in line is called, so it is this one, and what was free
	// when it was called still is.
	n = (s.mu.free + len(s.mu.waiting) - 1) / len(s.mu.waiting)
	n = min(n, most)
	s.mu.free -= n
	s.mu.held += n
	s.mu.waiting = s.mu.waiting[1:]
	s.callLocked()
	return n, s.mu.free + s.mu.held, true
}

// callLocked calls the first in line if there is something to take.
func (s *slots) callLocked() {
	if len(s.mu.waiting) == 0 || s.mu.free == 0 {
		return
	}
	if t := s.mu.waiting[0]; !t.called {
		t.called = true
		close(t.ready)
	}
}

// polled ends a poll that held n slots, of which used go to handlers.
func (s *slots) polled(n, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held -= n
	s.mu.free += n - used
	s.callLocked()
}

// handled gives the slot of a handler back.
func (s *slots) handled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.free++
	s.callLocked()
}

// close lets every poller go that waits or comes.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for _, t := range s.mu.waiting {
		if !t.called {
			t.called = true
			close(t.ready)
		}
	}
	s.mu.waiting = nil
}
